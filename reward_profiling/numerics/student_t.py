"""The 97.5 % quantile of Student's t, without SciPy.

It must give Gym's last bits, and those are SciPy's: degrees of freedom up to the
table's end are looked up. Beyond it the expansion about the normal quantile
(Abramowitz and Stegun 26.7.5) is right to the last place or two, and SciPy's own
deviation from it is looked up, as far as 65,536.
"""

from reward_profiling.numerics.student_t_table import T_975

Z_975 = 1.959963984540054
_LAST_PLACE = 2.0**-52
_STEP_OFFSET = 8


def t_975(degrees: int) -> float:
    """Return t with P(T <= t) = 0.975 for `degrees` >= 1 degrees of freedom."""
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    from reward_profiling.numerics.student_t_steps import STEPS  # noqa: PLC0415 - seldom needed

    beyond = degrees - len(T_975) - 1
    step = STEPS[beyond] - _STEP_OFFSET if beyond < len(STEPS) else 0
    return _expanded(float(degrees)) + step * _LAST_PLACE


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


def _expanded(degrees: float) -> float:
    total = 0.0
    for term in reversed(_TERMS):
        total = (total + term) / degrees
    return Z_975 + total
