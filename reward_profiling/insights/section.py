"""A section: all numbers of a run, or of one agent."""

from collections.abc import Sequence

import msgspec

from reward_profiling.insights.measures.coverage import Coverage, coverage_of
from reward_profiling.insights.measures.learning_signal import Signal, signal_of
from reward_profiling.insights.measures.length import Length, length_of
from reward_profiling.insights.measures.passing import Passing, passing_of
from reward_profiling.insights.measures.reward import RewardEstimate, reward_of
from reward_profiling.insights.units import Unit
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import RolloutTable


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All numbers of a run, or of one agent."""

    agent: str | None
    """Name of the agent; None for the run as a whole."""

    coverage: Coverage
    """How much of the plan was collected. Read it first."""

    reward: RewardEstimate
    """The mean reward and its precision."""

    passing: Passing
    """Pass rates."""

    signal: Signal
    """Whether the tasks can teach."""

    length: Length
    """Length, truncation, empty answers."""


def section_of(
    agent: str | None,
    table: RolloutTable,
    units: Sequence[Unit],
    options: ProfileOptions,
    answers: Sequence[int] | None,
) -> Section:
    """Return all numbers of some units; `agent` is the one they belong to.

    `answers[row]` is a digest of the extracted answer, 0 if a record has none; None if
    no answer field is given.
    """
    return Section(
        agent=agent,
        coverage=coverage_of(table, units),
        reward=reward_of(table, units, options.pass_threshold),
        passing=passing_of(table, units, options, answers),
        signal=signal_of(table, units, options.signal_tolerance),
        length=length_of(table, units, options),
    )
