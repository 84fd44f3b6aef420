"""Figures in text: enough digits to tell, whatever the scale of the rewards."""

_PLAIN_FROM, _PLAIN_TO = 0.001, 1e6
"""Sizes that three decimals show; a smaller one would read as 0.000."""


def figure(value: float) -> str:
    """Return a number with three decimals, or with three digits where those say none.

    An error of 0.0002 is not shown as 0.000: it is small, and not none.
    """
    if value and not _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return f"{value:.3g}"
    return f"{value:.3f}"


def signed_figure(value: float) -> str:
    """Return the same with its sign, "+" included."""
    return figure(value) if value < 0 else f"+{figure(value + 0.0)}"
