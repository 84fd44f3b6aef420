"""The version of this project, as it is installed."""

from functools import cache

_NAME = "gym-reward-profiling"


@cache  # reading it parses the whole README, a few milliseconds each time
def own_version() -> str:
    """Return the version, such as "0.1.0"."""
    from importlib.metadata import version  # noqa: PLC0415 - reads mail, and costs so

    return version(_NAME)


def made_by() -> str:
    """Return what files say of the tool that wrote them: its name and version."""
    return f"{_NAME} {own_version()}"
