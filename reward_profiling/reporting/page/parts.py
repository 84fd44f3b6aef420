"""What a page is made of: small values of words, and the data that plots draw."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table in words."""

    head: tuple[str, ...]
    """One heading a column; the first column names the row."""

    rows: tuple[tuple[str, ...], ...]
    """One cell for each heading."""

    note: str = ""
    """What it says beneath, such as what was left out."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot: its finding in words, its data, and the same as a table."""

    name: str
    """Which function of `charts.js` draws it."""

    title: str
    """What it shows, as a finding with its n."""

    caption: str
    """How to read it, and what is left out."""

    axes: str
    """What the axes show, for readers who cannot see them."""

    data: dict[str, Any]
    """What is drawn, as JSON."""

    table: TextTable
    """The same numbers in words."""

    legend: tuple[tuple[str, str], ...] = ()
    """Pairs of a colour's name in the style sheet and what it stands for."""

    is_wide: bool = False
    """Whether it takes the page's whole width."""


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """One headline number; nothing of it stands without its n."""

    label: str
    """What it is."""

    value: str
    """The number, or "unknown"."""

    spread: str
    """Its interval or error in words; empty where none is known."""

    basis: str
    """What it was taken over: its n."""

    caution: str = ""
    """A reason to trust it less; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding, ready to be shown."""

    name: str
    """What kind, as in the insights."""

    severity: str
    """One of "critical", "warning" and "note"."""

    agent: str
    """Whose; empty for the run as a whole."""

    sentence: str
    """What was found."""

    remedy: str
    """What to do about it."""

    evidence: tuple[tuple[str, str], ...]
    """Names of numbers, and the numbers."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table with a title of its own."""

    title: str
    """What it says."""

    table: TextTable
    """Its cells."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that a report shows, but for the table of tasks."""

    title: str
    """The first sentence."""

    subtitle: str
    """Of what: the rollouts file and the model."""

    cards: tuple[Card, ...]
    """Findings, the worst first."""

    key_numbers: tuple[KeyNumber, ...]
    """Headline numbers."""

    agents: TextTable
    """One row for each agent."""

    charts: tuple[Chart, ...]
    """The plots that there is something to draw for."""

    absent: tuple[str, ...]
    """Why other plots are not there."""

    tables: tuple[NamedTable, ...]
    """Further numbers."""

    reading: tuple[str, ...]
    """How rewards were read, in sentences."""

    made_by: str
    """Name and version of what wrote the insights."""
