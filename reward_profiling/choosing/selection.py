"""Selection: which task rows a trainer should see, and what a selection came to."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from annotated_types import Ge

from reward_profiling.choosing.selecting.pass_rates import Band, rate_text
from reward_profiling.errors import ConfigError
from reward_profiling.fitting import ReadAs
from reward_profiling.values import Checked, Name
from reward_profiling.wire import AGENT_REF, NG_PREFIX, PARAMS, TASK_ID, TASK_INPUT

Order = Literal["input", "hard-first", "easy-first", "informative-first"]
_OF_A_TASK = frozenset({AGENT_REF, PARAMS, TASK_ID, TASK_INPUT})
_OLD = "pass_rate"
Verdict = Literal["kept", "rejected", "undetermined"]
VERDICTS: tuple[Verdict, ...] = ("kept", "rejected", "undetermined")
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
    def band(self) -> Band:
        """The pass rates that are kept."""
        return Band(
            Fraction(self.min_pass_rate or "0"),
            Fraction(self.max_pass_rate or "1"),
            open_low=self.open_ends or self.open_min,
            open_high=self.open_ends or self.open_max,
        )


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
