"""A finding: something to know before the numbers are trusted."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "warning", "note"]
"""How bad a finding is: the numbers mislead; some may mislead; or it is a note."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "note")
"""The worst first."""

Evidence = int | float | str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something to know before the numbers are trusted."""

    name: str
    """What kind, in snake_case; stable: `insights.checks.check_list.NAMES` lists them.
    """

    severity: Severity
    """How bad."""

    agent: str | None
    """Whose; None for the run as a whole."""

    sentence: str
    """What was found, in plain words with its numbers."""

    evidence: dict[str, Evidence]
    """The numbers behind it, by name."""

    remedy: str
    """What to do about it."""
