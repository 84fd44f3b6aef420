"""Selection: which task rows a trainer should see, by how often they were passed.

Rates are fractions of whole numbers, never floats that were added up: 3 of 10 is not
above 0.3 (`statistics.md` D4). Rollouts that are masked, failed or without a reward
decide nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge

from reward_profiling.errors import ConfigError
from reward_profiling.fitting import ReadAs
from reward_profiling.insights.lengths import pearson
from reward_profiling.numerics.uncertainty import mean_of
from reward_profiling.values import Checked, Name
from reward_profiling.wire import AGENT_REF, NG_PREFIX, PARAMS, TASK_ID, TASK_INPUT

Order = Literal["input", "hard-first", "easy-first", "informative-first"]
_OF_A_TASK = frozenset({AGENT_REF, PARAMS, TASK_ID, TASK_INPUT})
_OLD = "pass_rate"
Verdict = Literal["kept", "rejected", "undetermined"]
VERDICTS: tuple[Verdict, ...] = ("kept", "rejected", "undetermined")


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


Rate = Annotated[str, ReadAs(rate_text)]


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectOptions(Checked):
    """Which task rows are kept, and how they are written."""

    min_pass_rate: Rate | None = None
    """Keep tasks that pass at least this often, such as 0.2, 20% or 1/5."""

    max_pass_rate: Rate | None = None
    """Keep tasks that pass at most this often."""

    open_ends: bool = False
    """Leave both ends out: --open-ends alone keeps what passes sometimes, not never
    and not always."""

    open_min: bool = False
    """Leave only the lower end out."""

    open_max: bool = False
    """Leave only the upper end out."""

    drop_zero_signal: bool = False
    """Reject tasks whose rewards are all the same, whatever their value."""

    min_rollouts: Annotated[int, Ge(1)] = 2
    """Scored rollouts below which a task is undetermined."""

    annotate: Name | None = None
    """Write the pass rate into each row under this name; one that is there already is
    replaced. Nothing else of a row changes."""

    old_pass_rate: Name | None = None
    """Column of an earlier pass rate to compare with the new one. Default: that of
    --annotate, or pass_rate."""

    order: Order = "input"
    """Order of the kept rows: as in the input, or by pass rate: hardest first, easiest
    first, or those nearest to one half first."""

    agent: Name | None = None
    """Whose rollouts decide, where a task was run by several agents."""

    pass_threshold: float = 1.0
    """A rollout passes when its reward is at least this, give or take 1e-9."""

    signal_tolerance: Annotated[float, Ge(0)] = 1e-6
    """Rewards of a task that differ by no more than this are the same."""

    leave_out_empty: bool = False
    """Let records without an answer, neither text nor a call of a tool, decide nothing,
    as masked ones do."""

    def check(self) -> None:
        """Refuse a band that holds no rate, and a column that is the task's own.

        Raises:
            ConfigError: it is one of them.
        """
        low, high = self.band.low, self.band.high
        if low > high or (low == high and (self.band.open_low or self.band.open_high)):
            raise ConfigError(
                f"no pass rate lies between {float(low):g} and {float(high):g}"
            )
        if self.annotate is not None and self.annotate.startswith(NG_PREFIX):
            raise ConfigError(f"annotate: {NG_PREFIX}… names are Gym's own")
        if self.annotate in _OF_A_TASK:
            raise ConfigError(f"annotate: {self.annotate} is a part of the task itself")

    def require_rule(self) -> None:
        """Refuse a selection that would keep everything.

        Raises:
            ConfigError: no option says what to keep.
        """
        if not (self.has_band or self.drop_zero_signal):
            raise ConfigError(
                "nothing says what to keep: give --min-pass-rate, --max-pass-rate,"
                " --open-ends (what passes sometimes) or --drop-zero-signal"
            )

    @property
    def old_column(self) -> str:
        """Column of the earlier pass rate."""
        return self.old_pass_rate or self.annotate or _OLD

    @property
    def notes(self) -> frozenset[str]:
        """Columns that are no part of a task: the rates, the old one and the new."""
        return frozenset({self.old_column, self.annotate or _OLD})

    @property
    def has_band(self) -> bool:
        """Whether pass rates decide."""
        bounds = (self.min_pass_rate, self.max_pass_rate)
        opens = self.open_ends or self.open_min or self.open_max
        return opens or any(bound is not None for bound in bounds)

    @property
    def band(self) -> "Band":
        """The pass rates that are kept."""
        return Band(
            Fraction(self.min_pass_rate or "0"),
            Fraction(self.max_pass_rate or "1"),
            open_low=self.open_ends or self.open_min,
            open_high=self.open_ends or self.open_max,
        )


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


class Counts(NamedTuple):
    """What decides about a task."""

    n: int
    """Scored rollouts."""
    c: int
    """Of those, the ones that pass."""
    has_signal: bool
    """Whether their rewards differ."""

    @property
    def rate(self) -> Fraction:
        """Pass rate; n >= 1."""
        return Fraction(self.c, self.n)


class Judged(NamedTuple):
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def judge(counts: Counts | None, options: SelectOptions) -> Judged:
    """Decide about one task; None for a row that was not planned."""
    if counts is None:
        return Judged("undetermined", "not in the plan")
    if not counts.n:
        return Judged("undetermined", "no scored rollout")
    if counts.n < options.min_rollouts:
        return Judged(
            "undetermined", f"fewer than {options.min_rollouts} scored rollouts"
        )
    place = options.band.place(counts.rate)
    if options.has_band and place:
        return Judged(
            "rejected", "passes too seldom" if place < 0 else "passes too often"
        )
    if options.drop_zero_signal and not counts.has_signal:
        return Judged("rejected", "all rewards are the same")
    return Judged("kept", "")


_SORT: Mapping[Order, Callable[[Fraction], Fraction]] = {
    "input": lambda _: Fraction(),
    "hard-first": lambda rate: rate,
    "easy-first": lambda rate: -rate,
    "informative-first": lambda rate: abs(rate - Fraction(1, 2)),
}


def ordered(rates: Sequence[Fraction], order: Order) -> list[int]:
    """Return positions in the order asked for; equal ones stay as they stand."""
    return sorted(range(len(rates)), key=lambda place: _SORT[order](rates[place]))


@dataclass(frozen=True, kw_only=True, slots=True)
class OldRates:
    """An earlier pass rate of the same rows, against the new one."""

    field: str
    """The rows' column."""

    num_rows: int
    """Rows with a number there and a scored rollout: the n of all that follows."""

    old_mean: float
    """Mean of the earlier rates."""

    new_mean: float
    """Mean of the new ones."""

    correlation: float | None
    """Between the two; None where one is constant."""

    num_moved: int
    """Rows that the band would have judged otherwise by the earlier rate."""


def compare_rates(
    field: str, pairs: Sequence[tuple[float, Fraction]], band: Band
) -> OldRates | None:
    """Compare (earlier rate, new rate) of rows; None for no rows."""
    if not pairs:
        return None
    old, new = [pair[0] for pair in pairs], [float(pair[1]) for pair in pairs]
    moved = sum(
        bool(band.place(Fraction(str(before)))) != bool(band.place(after))
        for before, after in pairs
    )
    return OldRates(
        field=field,
        num_rows=len(pairs),
        old_mean=mean_of(old),
        new_mean=mean_of(new),
        correlation=pearson(old, new),
        num_moved=moved,
    )


def earlier_rate(value: object) -> float | None:
    """Return an earlier rate, a number in 0..1 or text such as "3/8"; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(Fraction(str(rate_text(value))))
    except ValueError:
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionSummary:
    """What a selection came to; the three kinds add up to the input's rows."""

    num_rows: int
    """Task rows of the input."""

    kept: int
    """Rows that were kept."""

    rejected: int
    """Rows outside the band, or without signal."""

    undetermined: int
    """Rows that too few scored rollouts say anything of."""

    num_tasks: int
    """Different tasks among the rows; identical rows are one."""

    reasons: dict[str, int]
    """Rows that were not kept, by reason."""

    band: str
    """The pass rates that were kept, in the notation of intervals."""

    mean_pass_rate: float | None
    """Mean pass rate of the kept rows; None for none."""

    old_rates: OldRates | None
    """An earlier pass rate against the new one; None where rows have none."""

    files: tuple[str, ...]
    """The files that were written: kept, rejected, undetermined, and more."""

    warnings: tuple[str, ...] = ()
    """What a person should know, one sentence each."""


def mean_rate(rates: Iterable[Fraction]) -> float | None:
    """Return the mean of exact rates; None for none."""
    listed = list(rates)
    return float(sum(listed, Fraction()) / len(listed)) if listed else None
