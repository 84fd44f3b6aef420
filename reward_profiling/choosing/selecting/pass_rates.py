"""Pass rates as exact fractions: written by people, and in bands.

Rates are fractions of whole numbers, never floats that were added up: 3 of 10 is not
above 0.3 (`statistics.md` D4).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


def rate_text(value: object) -> object:
    """Return a rate as exact text: 0.2 as written, "20%" and "1/3" as fractions.

    Raises:
        ValueError: it is none, or not in 0..1.
    """
    text = str(value).strip()
    try:
        percent = text.removesuffix("%")
        rate = Fraction(percent.strip()) / (1 if percent == text else 100)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{value!r} is no rate, such as 0.2, 20% or 1/5") from error
    if not 0 <= rate <= 1:
        raise ValueError(f"{value!r} is not between 0 and 1")
    return str(rate)


def earlier_rate(value: object) -> float | None:
    """Return an earlier rate in 0..1, given as a number or as text such as "3/8".

    None for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(Fraction(str(rate_text(value))))
    except ValueError:
        return None


def mean_rate(rates: Iterable[Fraction]) -> float | None:
    """Return the mean of exact rates, in 0..1; None for none."""
    listed = list(rates)
    return float(sum(listed, Fraction()) / len(listed)) if listed else None


@dataclass(frozen=True, slots=True)
class Band:
    """A range of pass rates, in whole numbers; each end is in it unless open."""

    low: Fraction
    high: Fraction
    open_low: bool
    open_high: bool

    def place(self, rate: Fraction) -> int:
        """Return -1 for a rate below the band, 1 for one above, 0 inside."""
        if rate < self.low or (self.open_low and rate == self.low):
            return -1
        return int(rate > self.high or (self.open_high and rate == self.high))

    def __str__(self) -> str:
        """Give the band in the notation of intervals."""
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"{left}{float(self.low):g}, {float(self.high):g}{right}"
