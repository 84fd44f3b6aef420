"""Three verifiers: an answer text and a row's expectation in, a verdict out.

A verifier never guesses in favour of the policy: an empty answer, or one in which
nothing can be found, is worth 0.0. What it cannot use is the row's fault, and it says
so with a `DatasetError`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext

from reward_profiling.demo.answers import (
    first_sentence,
    last_line,
    last_statement,
    plain_text,
    visible_text,
)
from reward_profiling.demo.verifying.choices import (
    chosen_letter,
    expected_letter,
    normalized,
    option_texts,
)
from reward_profiling.demo.verifying.numerals import DIGITS_KEPT, Numeral, read_numerals
from reward_profiling.errors import DatasetError

DEFAULT_RELATIVE_TOLERANCE = Decimal("1e-6")

EQUALS = re.compile(r"=|\u2248|\\approx\b")


@dataclass(frozen=True)
class Verdict:
    """What a verifier says of one answer."""

    reward: float
    """1.0 for a match, else 0.0."""

    extracted_answer: str | None
    """The part of the text that was compared; none when there was nothing to."""


NOTHING = Verdict(0.0, None)


def exact_match(answer: str, expected: object) -> Verdict:
    """Compare the stated answer, or else the last line, with the accepted texts.

    Case, width, surrounding punctuation, spacing and a leading article do not count.

    Args:
        answer: What the policy wrote.
        expected: A string, a number, or a list of them, any of which is right.

    Raises:
        DatasetError: `expected` holds nothing to compare with.
    """
    accepted = {normalized(one) for one in _accepted_texts(expected)}
    candidates = _candidates(visible_text(answer))
    for candidate in candidates:
        if normalized(candidate) in accepted:
            return Verdict(1.0, candidate)
    return Verdict(0.0, candidates[0]) if candidates else NOTHING


def number_match(answer: str, expected: object, tolerance: object = None) -> Verdict:
    """Compare the stated number, or else the last one, with the accepted numbers.

    A per cent answer is also right as a fraction: `50%` is 50 and 0.5.

    Args:
        answer: What the policy wrote.
        expected: A number, a text with one number, or a list of them.
        tolerance: A number is absolute; `{"absolute": …}` and `{"relative": …}` say
            so. None asks for equality of whole numbers and 1e-6 relative otherwise.

    Raises:
        DatasetError: `expected` or `tolerance` is not a finite number.
    """
    accepted = [_expected_numeral(one) for one in _accepted_texts(expected)]
    allowed = [_allowed_distance(one.value, tolerance) for one in accepted]
    found = _stated_numeral(visible_text(answer))
    if found is None:
        return NOTHING
    is_right = any(map(_is_near, [found] * len(accepted), accepted, allowed))
    return Verdict(float(is_right), found.written)


def multiple_choice(answer: str, expected: object, options: object = None) -> Verdict:
    """Compare the chosen letter with the accepted letters.

    Args:
        answer: What the policy wrote.
        expected: A letter, the text of an option, or a list of them.
        options: `[{"A": "…"}, …]`, `{"A": "…"}` or `["…", …]`; without them the
            letters A to J are choices.

    Raises:
        DatasetError: `options` has another shape, or `expected` is not among them.
    """
    texts = option_texts(options)
    accepted = {expected_letter(one, texts) for one in _accepted_texts(expected)}
    chosen = chosen_letter(visible_text(answer), texts)
    return Verdict(float(chosen in accepted), chosen)


def _accepted_texts(expected: object) -> list[str]:
    """Give the accepted answers as texts; a whole float loses its `.0`."""
    several = expected if isinstance(expected, list) else [expected]
    texts = [_as_text(one) for one in several]
    if not texts or not all(text.strip() for text in texts):
        raise DatasetError("expected_answer: a text or a number is needed")
    return texts


def _as_text(expected: object) -> str:
    if isinstance(expected, bool):
        return "true" if expected else "false"
    if isinstance(expected, float):
        return f"{expected:.0f}" if expected.is_integer() else repr(expected)
    if isinstance(expected, str | int):
        return str(expected)
    raise DatasetError(f"expected_answer: {type(expected).__name__} cannot be compared")


def _candidates(text: str) -> list[str]:
    """Give the texts that may be the answer, the likeliest first."""
    statement = last_statement(text)
    said = plain_text(statement.said if statement else last_line(text))
    candidates = [said]
    if statement and statement.is_prose:
        candidates.append(first_sentence(said))
    return [one.strip(" *") for one in candidates if one.strip(" *")]


def _stated_numeral(text: str) -> Numeral | None:
    statement = last_statement(text)
    if statement is None:
        return next(reversed(read_numerals(text)), None)
    tail = EQUALS.split(statement.said)[-1]
    stated = read_numerals(tail) or read_numerals(statement.said)
    if stated:
        return stated[0]
    return next(reversed(read_numerals(text[statement.start :])), None)


def _expected_numeral(text: str) -> Numeral:
    numerals = read_numerals(text)
    if len(numerals) != 1 or not numerals[0].value.is_finite():
        raise DatasetError(f"expected_answer: {text!r} is not one finite number")
    return numerals[0]


def _allowed_distance(expected: Decimal, tolerance: object) -> Decimal:
    """Give the greatest distance that still matches; never negative."""
    if tolerance is None:
        is_whole = expected == expected.to_integral_value()
        return Decimal(0) if is_whole else abs(expected) * DEFAULT_RELATIVE_TOLERANCE
    if isinstance(tolerance, Mapping):
        kinds = set(tolerance)
        if kinds == {"relative"}:
            return abs(expected) * _tolerance(tolerance["relative"])
        if kinds == {"absolute"}:
            return _tolerance(tolerance["absolute"])
        raise DatasetError("tolerance: give either `absolute` or `relative`")
    return _tolerance(tolerance)


def _tolerance(value: object) -> Decimal:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    size = Decimal(repr(value)) if is_number else Decimal("NaN")
    if not size.is_finite() or size.is_signed():
        raise DatasetError(f"tolerance: {value!r} is not a number of at least 0")
    return size


def _is_near(found: Numeral, expected: Numeral, allowed: Decimal) -> bool:
    if not found.value.is_finite():
        return False
    with localcontext(prec=DIGITS_KEPT):
        distances = [abs(found.value - expected.value)]
        if found.is_percent and not expected.is_percent:
            distances.append(abs(found.value / 100 - expected.value))
        if expected.is_percent and not found.is_percent:
            distances.append(abs(found.value * 100 - expected.value))
        return min(distances) <= allowed


def _by_exact_match(answer: str, row: Mapping[str, object]) -> Verdict:
    return exact_match(answer, row["expected_answer"])


def _by_number_match(answer: str, row: Mapping[str, object]) -> Verdict:
    return number_match(answer, row["expected_answer"], row.get("tolerance"))


def _by_multiple_choice(answer: str, row: Mapping[str, object]) -> Verdict:
    return multiple_choice(answer, row["expected_answer"], row.get("options"))


VERIFIERS: dict[str, Callable[[str, Mapping[str, object]], Verdict]] = {
    "exact_match": _by_exact_match,
    "number_match": _by_number_match,
    "multiple_choice": _by_multiple_choice,
}
"""The verifier of each environment, called with the answer and the row."""
