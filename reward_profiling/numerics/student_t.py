"""The 97.5 % quantile of Student's t, without SciPy.

Gym's intervals come from SciPy, and equal bytes need SciPy's last bits: its quantile is
off the true one by up to four units in the last place. `student_t.f64` holds what
SciPy 1.18.1's `t.ppf(0.975, n)` gives for n = 1 … 65,536, as little-endian doubles.
Beyond that the expansion about the normal quantile (Abramowitz and Stegun 26.7.5) is
right to the last place or two.
"""

import sys
from array import array
from functools import cache
from pkgutil import get_data  # a tenth of the time that importlib.resources takes

Z_975 = 1.959963984540054


def t_975(degrees: int) -> float:
    """Return t with P(T <= t) = 0.975 for `degrees` >= 1 degrees of freedom."""
    listed = _quantiles()
    if degrees <= len(listed):
        return listed[degrees - 1]
    total = 0.0
    for term in reversed(_TERMS):
        total = (total + term) / degrees
    return Z_975 + total


@cache
def _quantiles() -> "array[float]":
    """Return SciPy's quantiles, that of n degrees of freedom at n - 1."""
    found = array("d", get_data(__package__, "student_t.f64") or b"")
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _terms(z: float) -> tuple[float, ...]:
    # Products, not powers: `**` may differ by a last place between C libraries.
    z3 = z * z * z
    z5 = z3 * z * z
    z7 = z5 * z * z
    z9 = z7 * z * z
    return (
        (z3 + z) / 4,
        (5 * z5 + 16 * z3 + 3 * z) / 96,
        (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384,
        (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / 92160,
    )


_TERMS = _terms(Z_975)
