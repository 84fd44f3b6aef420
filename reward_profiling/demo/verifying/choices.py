"""Which letter of a choice an answer names, and how texts are compared."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from reward_profiling.demo.answers import (
    last_line,
    last_statement,
    plain_text,
)
from reward_profiling.errors import DatasetError

DEFAULT_LETTERS = "ABCDEFGHIJ"
QUOTES = "\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
SURROUNDING = " \t\r\n.,;:!?*_~$()[]{}<>\u00bf\u00a1" + QUOTES
LEADING_ARTICLE = re.compile(r"^(?:(?:a|an|the)\s+)+")
# "A cat" and "I think" are words, not choices, unless they are called a choice.
WORD_FOLLOWS = re.compile(r"[ \t]+(?!(?:is|was|because|since|and|or|nor)\b)[^\W\d_]")
CALLED_A_CHOICE = re.compile(r"(?:option|choice|letter)[ \t:*(]*$", re.IGNORECASE)


def normalized(text: str) -> str:
    """Give the text as it is compared; idempotent."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = folded = " ".join(unicodedata.normalize("NFKC", folded).split())
    while (barer := _barer(bare)) != bare:
        bare = barer
    return bare or folded


def _barer(text: str) -> str:
    spaced = " ".join(plain_text(text).split())
    return LEADING_ARTICLE.sub("", spaced.strip(SURROUNDING))


def option_texts(options: object) -> dict[str, str]:
    """Give the options' texts by upper-case letter; empty texts without options."""
    if options is None:
        return dict.fromkeys(DEFAULT_LETTERS, "")
    texts: dict[str, str] = {}
    for letter, text in _option_pairs(options):
        if not (isinstance(text, str) and _is_letter(letter)):
            raise DatasetError(f"options: {letter!r} is not a letter with a text")
        texts[str(letter).upper()] = text
    if not texts:
        raise DatasetError("options: none given")
    return texts


def _is_letter(value: object) -> bool:
    is_one = isinstance(value, str) and len(value) == 1
    return is_one and str(value).isascii() and str(value).isalnum()


def _option_pairs(options: object) -> list[tuple[object, object]]:
    if isinstance(options, Mapping):
        return list(options.items())
    if not isinstance(options, Sequence) or isinstance(options, str):
        raise DatasetError("options: a list or an object is needed")
    if all(isinstance(one, str) for one in options):
        return list(zip(DEFAULT_LETTERS, options, strict=False))
    if not all(isinstance(one, Mapping) for one in options):
        raise DatasetError("options: every entry must be {letter: text}, or a text")
    return [pair for one in options for pair in one.items()]


def expected_letter(expected: str, texts: Mapping[str, str]) -> str:
    """Return the letter that a row expects: itself, or of the option that it quotes.

    Raises:
        DatasetError: it is none of the options.
    """
    letter = _sole_letter(expected, texts) or _letter_of_option(expected, texts)
    if letter is None:
        raise DatasetError(
            f"expected_answer: {expected!r} is not one of {'/'.join(texts)}"
        )
    return letter


def chosen_letter(text: str, texts: Mapping[str, str]) -> str | None:
    """Return the letter that an answer settles on; None where it names none."""
    statement = last_statement(text)
    said = plain_text(statement.said) if statement else last_line(text)
    named = _sole_letter(said, texts) or _letter_of_option(said, texts)
    if named is None and (statement or said == text):
        named = _opening_letter(said, texts)
    if named is None and statement:
        named = next(iter(_letters(said, texts)), None)
    rest = text[statement.start :] if statement else text
    return named or next(reversed(_letters(rest, texts)), None)


def _sole_letter(text: str, texts: Mapping[str, str]) -> str | None:
    bare = text.strip(SURROUNDING).upper()
    return bare if bare in texts else None


def _letter_of_option(text: str, texts: Mapping[str, str]) -> str | None:
    """Give the letter of the only option whose text this is."""
    wanted = normalized(text)
    letters = [
        letter
        for letter, option in texts.items()
        if option and normalized(option) == wanted
    ]
    return letters[0] if len(letters) == 1 else None


def _opening_letter(said: str, texts: Mapping[str, str]) -> str | None:
    """Read `(b) Paris` and `b) Paris`; a bracket makes a small letter a choice."""
    opening = re.match(r"\W*([^\W\d_])\)", said)
    return opening[1].upper() if opening and opening[1].upper() in texts else None


def _letters(text: str, texts: Mapping[str, str]) -> list[str]:
    """Give every capital letter of an option that stands alone, in order."""
    choices = re.escape("".join(texts))
    alone = rf"(?<![\w'\u2019\\-])(?<!\w\.)[{choices}](?![\w'\u2019-])(?!\.\w)"
    found = re.finditer(alone, text)
    return [match[0] for match in found if not _is_word(match)]


def _is_word(match: re.Match[str]) -> bool:
    text = match.string
    before = text[max(0, match.start() - 12) : match.start()]
    return (
        match[0] in "AI"
        and WORD_FOLLOWS.match(text, match.end()) is not None
        and CALLED_A_CHOICE.search(before) is None
    )
