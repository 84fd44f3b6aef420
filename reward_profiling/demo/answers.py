r"""The answer that a text states last: `Answer: …`, `The answer is …`, `\boxed{…}`.

What a model thinks aloud between `<think>` tags is no part of its answer, and a
thought that never ends leaves no answer at all.
"""

import re
from dataclasses import dataclass

LABELLED = re.compile(r"\banswer[\s*]*[:=\uff1a][*:\s]*(?P<said>[^\n]*)", re.IGNORECASE)
IN_PROSE = re.compile(
    r"(?<!\bthis )(?<!\bthat )\banswer\s+is\b[*:\s]*(?P<said>[^\n]*)", re.IGNORECASE
)
BOX_OR_BRACE = re.compile(r"\\f?box(?:ed)?\s*\{|[{}]")
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
TYPESET = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|operatorname)\{([^{}]*)\}")
THOUGHT_OPENS, THOUGHT_ENDS = "<think>", "</think>"


@dataclass(frozen=True)
class Statement:
    """One place where a text says what its answer is."""

    start: int
    """Offset of the statement in the text."""

    said: str
    """What is stated: the rest of the line, or what the box holds."""

    is_prose: bool = False
    """The answer stands in a sentence, which may go on after it."""


def visible_text(text: str) -> str:
    """Give the text without the model's thoughts, stripped."""
    _, _, after = text.rpartition(THOUGHT_ENDS)
    return after.partition(THOUGHT_OPENS)[0].strip()


def last_statement(text: str) -> Statement | None:
    """Find the answer that is stated last; empty statements do not count."""
    found = [Statement(m.start(), m["said"]) for m in LABELLED.finditer(text)]
    found += [
        Statement(m.start(), m["said"], is_prose=True) for m in IN_PROSE.finditer(text)
    ]
    found += _boxes(text)
    return max(
        (one for one in found if one.said.strip(" .*")),
        key=lambda one: one.start,
        default=None,
    )


def plain_text(text: str) -> str:
    r"""Take typesetting off an answer: `$`, `\(…\)` and `\text{…}`."""
    unset = TYPESET.sub(r"\1", text)
    return re.sub(r"\\[()\[\]]|\$", "", unset).strip()


def last_line(text: str) -> str:
    """Give the last line that holds anything."""
    return text.strip().rpartition("\n")[2].strip()


def first_sentence(text: str) -> str:
    """Give the text up to its first full stop, or all of it."""
    end = SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _boxes(text: str) -> list[Statement]:
    """Give what every closed box holds; braces inside must balance."""
    boxes, open_braces = [], []
    for token in BOX_OR_BRACE.finditer(text):
        if token[0] != "}":
            open_braces.append(token)
        elif open_braces:
            opening = open_braces.pop()
            if opening[0] != "{":
                said = text[opening.end() : token.start()]
                boxes.append(Statement(opening.start(), said))
    return boxes
