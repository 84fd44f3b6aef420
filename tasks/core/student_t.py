"""The 97.5 % quantile of Student's t, without SciPy.

It must give Gym's last bits, and those are SciPy's: degrees of freedom up to the
table's end are looked up. Beyond it the expansion about the normal quantile
(Abramowitz and Stegun 26.7.5) is right to the last place or two.
"""

from tasks.core.student_t_table import T_975

Z_975 = 1.959963984540054


def t_975(degrees: int) -> float:
    """Return t with P(T <= t) = 0.975 for `degrees` >= 1 degrees of freedom."""
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    return _expanded(degrees)


def _expanded(degrees: int) -> float:
    z, n = Z_975, float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    total = 0.0
    for term in reversed(terms):
        total = (total + term) / n
    return z + total
