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


def percent(share: float) -> str:
    """Return a share in percent, never rounded to none or to all."""
    said = f"{100 * share:.0f} %"
    if said == "0 %" and share > 0:
        return "under 1 %"
    return "over 99 %" if said == "100 %" and share < 1 else said
