"""Numbers as people and models write them, read as exact decimals.

Read: signs in every dash, `1,234.5`, `1_000`, `6.02e23`, `3 x 10^8`, `10⁻³`, `3/4`,
`1 3/4`, `½`, LaTeX fractions, currency signs and per cent. Not read: a comma as the
decimal mark, a digit inside a word (`H2O`), an exponent or index (`m²`, `x_1`), a
power of anything but ten.
"""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, localcontext

DIGITS_KEPT = 60
LARGEST_EXPONENT = 400
INFINITE = Decimal("Infinity")

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
SYMBOLS = str.maketrans(
    "\u2212\u2013\u2012\u2010\u2011\ufe63\u2044\u00d7\u00b7\u22c5", "------/***"
)

REWRITES = (
    (re.compile(r"(?<=\d)(?:[\u00a0\u202f\u2009]|\\,|\{,\}|,\\!)(?=\d{3}(?!\d))"), ","),
    (re.compile(r"(?<=\d)([\u00bc-\u00be\u2150-\u215e])"), r" \1"),
    (re.compile(r"(?<=\d)\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}"), r" \1/\2"),
    (re.compile(r"\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}"), r"\1/\2"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\([%$])"), r"\1"),
)
RAISED = re.compile(r"([\^_])\s*[{(]([^{}()]*)[})]")
SUPERSCRIPT_RUN = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")

DIGITS = r"(?>(?:\d{1,3}(?:[,_]\d{3})++(?!\d)|\d++)(?:\.\d++)?+|\.\d++)"
NUMERAL = re.compile(
    rf"""
    (?P<sign>(?<![\w)\]}}%.^])[+-])?
    [$€£¥]?
    (?<![\w^])(?<!\d\.)(?<!\^[+-])
    (?:
        (?P<whole>\d++)[ ]+(?P<over>\d++)/(?P<under>\d++)
      | 10\s?\^\s?(?P<power>[+-]?\d++)
      | (?P<digits>{DIGITS})
        (?:[eE](?P<exponent>[+-]?\d++)(?!\w)
          |\s?[*x]\s?10\s?\^\s?(?P<times_ten>[+-]?\d++)
          |(?!\s?\^)\s?/\s?(?P<divisor>{DIGITS})
        )?+
    )
    (?!\s?\^)
    (?P<percent>\s?(?:%|per\s?cent\b))?
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Numeral:
    """One number in a text."""

    written: str
    """The number as the text has it, with minus signs and fractions made plain."""

    value: Decimal
    """Its value; infinite when the number is beyond ±400 powers of ten."""

    is_percent: bool
    """A per cent sign follows; `value` is the number before it."""


def read_numerals(text: str) -> list[Numeral]:
    """Give every number of a text, in order; a division by zero is none."""
    found = []
    for match in NUMERAL.finditer(_made_plain(text)):
        value = _value(match)
        if value is not None:
            found.append(Numeral(match[0].strip(), value, match["percent"] is not None))
    return found


def _made_plain(text: str) -> str:
    """Write typeset and typographic numbers with plain characters."""
    for pattern, plain in REWRITES:
        text = pattern.sub(plain, text)
    text = SUPERSCRIPT_RUN.sub(lambda run: "^" + run[0].translate(SUPERSCRIPTS), text)
    text = unicodedata.normalize("NFKC", text).translate(SYMBOLS)
    return RAISED.sub(r"\1\2", text)


def _value(match: re.Match[str]) -> Decimal | None:
    with localcontext(prec=DIGITS_KEPT):
        size = _mixed(match) if match["whole"] else _scaled(match)
        return -size if size is not None and match["sign"] == "-" else size


def _mixed(match: re.Match[str]) -> Decimal | None:
    part = _quotient(Decimal(match["over"]), Decimal(match["under"]))
    return None if part is None else Decimal(match["whole"]) + part


def _scaled(match: re.Match[str]) -> Decimal | None:
    size = _decimal(match["digits"] or "1")
    if match["divisor"]:
        return _quotient(size, _decimal(match["divisor"]))
    exponent = match["exponent"] or match["times_ten"] or match["power"] or "0"
    return _shifted(size, exponent)


def _decimal(digits: str) -> Decimal:
    return _shifted(Decimal(digits.replace(",", "").replace("_", "")), "0")


def _shifted(size: Decimal, exponent: str) -> Decimal:
    """Multiply by a power of ten, or say that the number is out of all bounds."""
    if size.is_zero() or not size.is_finite():
        return size
    if len(exponent.lstrip("+-0")) > len(str(LARGEST_EXPONENT)):
        return INFINITE
    shift = int(exponent)
    beyond = abs(size.adjusted() + shift) > LARGEST_EXPONENT
    return INFINITE if beyond else size.scaleb(shift)


def _quotient(over: Decimal, under: Decimal) -> Decimal | None:
    if under.is_zero() or not (over.is_finite() and under.is_finite()):
        return None
    return over / under
