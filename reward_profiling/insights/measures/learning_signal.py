"""Signal: whether a task's rewards differ, and how many groups of rollouts would teach.

GRPO's advantage is zero in a group of equal rewards, whatever their value. Equal means
max - min <= tolerance, not std == 0 and not mean in {0, 1}. Formulas:
`statistics.md` D3 and D4.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import msgspec

from reward_profiling.insights.measures.components import Component, components_of
from reward_profiling.insights.units import PassCounts, Signature, Unit, pass_counts
from reward_profiling.numerics.uncertainty import counted_mean, zero_upper_bound
from reward_profiling.profiling.passes import MIN_ROLLOUTS
from reward_profiling.profiling.rollout_table import RolloutTable

GROUP_SIZES = (4, 8, 16, 32)

TaskClass = Literal["never", "sometimes", "always", "undetermined"]
"""How many of a task's scored rollouts passed: none, some or all; "undetermined" below
two scored rollouts."""


class UsefulGroups(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How many groups of `group_size` rollouts of a task would teach (GRPO)."""

    group_size: int
    """G: rollouts of one task in a group."""

    useful_share: float | None
    """Expected share of groups whose rewards differ: unbiased, over tasks with G scored
    rollouts or more; None where there is none."""

    mixed_share: float | None
    """The same, of groups with both passes and misses (DAPO's dynamic sampling)."""

    num_tasks: int
    """Tasks behind both."""

    plug_in_useful_share: float | None
    """Like `useful_share`, over all tasks with two scored rollouts or more. Tasks with
    fewer than G use their observed frequencies, which overstates certainty."""

    plug_in_mixed_share: float | None
    """Like `mixed_share`, over the same tasks."""

    num_plug_in_tasks: int
    """Tasks behind the two plug-in shares."""

    num_short_tasks: int
    """Of those, tasks with fewer than G rollouts, which use frequencies."""


class RateBand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many tasks a published difficulty band would keep."""

    name: str
    """Who published it."""

    rule: str
    """The rule on the pass rate."""

    num_kept: int
    """Tasks inside the band, compared as exact fractions."""

    num_tasks: int
    """Tasks judged: those with two scored rollouts or more."""


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the tasks can teach: a task whose rewards are all the same cannot."""

    never: int
    """Tasks none of whose rollouts passed."""

    sometimes: int
    """Tasks with passes and misses."""

    always: int
    """Tasks all of whose rollouts passed."""

    undetermined: int
    """Tasks with fewer than two scored rollouts."""

    num_signal: int
    """Tasks whose rewards differ by more than the tolerance."""

    num_zero_signal: int
    """Tasks with two scored rollouts or more whose rewards are all the same, whatever
    their value."""

    zero_signal_share: float | None
    """num_zero_signal / (num_signal + num_zero_signal); None where both are 0."""

    num_signal_in_components_only: int
    """Of the zero-signal tasks, those with a component that differs."""

    never_upper_bound: float | None
    """Pass rate that a "never" task may still have: the one-sided bound for the
    smallest number of rollouts among them; None without such a task."""

    never_rollouts: int | None
    """That smallest number."""

    groups: tuple[UsefulGroups, ...]
    """For group sizes 4, 8, 16 and 32."""

    components: tuple[Component, ...] = ()
    """In order of name."""

    bands: tuple[RateBand, ...] = ()
    """Published difficulty bands, and how many tasks they would keep."""


def signal_of(table: RolloutTable, units: Sequence[Unit], tolerance: float) -> Signal:
    """Return how many of some units can teach.

    Rewards that differ by no more than `tolerance` are the same.
    """
    passes = pass_counts(units)
    classes: Counter[str] = Counter(task_class(unit.n, unit.c) for unit in units)
    told = [unit for unit in units if unit.n >= MIN_ROLLOUTS]
    num_signal = sum(unit.has_signal for unit in told)
    never = [unit.n for unit in told if not unit.c]
    components, only = components_of(table, units, tolerance)
    return Signal(
        never=classes["never"],
        sometimes=classes["sometimes"],
        always=classes["always"],
        undetermined=classes["undetermined"],
        num_signal=num_signal,
        num_zero_signal=len(told) - num_signal,
        zero_signal_share=(len(told) - num_signal) / len(told) if told else None,
        num_signal_in_components_only=only,
        never_upper_bound=zero_upper_bound(min(never)) if never else None,
        never_rollouts=min(never, default=None),
        groups=useful_groups(Counter(unit.signature for unit in units), passes),
        components=components,
        bands=bands(passes),
    )


def task_class(n: int, c: int) -> TaskClass:
    """Return never, sometimes or always, for c of n passing; undetermined below two."""
    if n < MIN_ROLLOUTS:
        return "undetermined"
    if c == 0:
        return "never"
    return "always" if c == n else "sometimes"


def informativeness(n: int, c: int) -> float | None:
    """Return p(1 - p) of the pass rate, which bounds the gain of a training step.

    Source: arXiv 2504.03380. None below two rollouts.
    """
    return None if n < MIN_ROLLOUTS else c * (n - c) / (n * n)


def useful_share(counts: Signature, group_size: int) -> float:
    """Return the unbiased share of a task's groups whose rewards differ.

    1 - sum of C(n_v, G) / C(n, G) over the distinct rewards v; for passes and misses
    this is D3's 1 - C(c,G)/C(n,G) - C(n-c,G)/C(n,G).

    Raises:
        ValueError: the task has fewer rollouts than a group.
    """
    n = sum(counts)
    if n < group_size:
        raise ValueError(f"{n} rollouts make no group of {group_size}")
    ways = math.comb(n, group_size)
    return (ways - sum(math.comb(count, group_size) for count in counts)) / ways


def plug_in_share(counts: Signature, group_size: int) -> float:
    """Return the same from observed frequencies: 1 - sum of p_v^G.

    Frequencies of few rollouts overstate certainty: a task that showed only one reward
    may show another later.
    """
    n = sum(counts)
    # Exact: floats would make 1 - (1/2)^32 - (1/2)^32 depend on the order of terms.
    kept = sum(Fraction(count, n) ** group_size for count in counts)
    return float(1 - kept)


class _Shares(NamedTuple):
    """A mean over tasks, unbiased and with plug-ins."""

    unbiased: float | None
    plug_in: float | None


def useful_groups(
    signatures: Mapping[Signature, int], passes: PassCounts
) -> tuple[UsefulGroups, ...]:
    """Return the expected share of useful groups for each group size.

    `signatures` and `passes` count tasks. Tasks below two rollouts do not count.
    """
    mixed: Counter[Signature] = Counter()
    for (n, c), tasks in passes.items():
        mixed[tuple(sorted(part for part in (c, n - c) if part))] += tasks
    return tuple(_groups(signatures, mixed, size) for size in GROUP_SIZES)


def _groups(
    signatures: Mapping[Signature, int], mixed: Mapping[Signature, int], size: int
) -> UsefulGroups:
    useful, by_passes = _shares(signatures, size), _shares(mixed, size)
    told = {
        counts: k for counts, k in signatures.items() if sum(counts) >= MIN_ROLLOUTS
    }
    short = sum(tasks for counts, tasks in told.items() if sum(counts) < size)
    return UsefulGroups(
        group_size=size,
        useful_share=useful.unbiased,
        mixed_share=by_passes.unbiased,
        num_tasks=sum(told.values()) - short,
        plug_in_useful_share=useful.plug_in,
        plug_in_mixed_share=by_passes.plug_in,
        num_plug_in_tasks=sum(told.values()),
        num_short_tasks=short,
    )


def _shares(signatures: Mapping[Signature, int], size: int) -> _Shares:
    unbiased, plug_in = [], []
    for counts, tasks in signatures.items():
        if sum(counts) < MIN_ROLLOUTS:
            continue
        if sum(counts) < size:
            plug_in.append((plug_in_share(counts, size), tasks))
        else:
            unbiased.append((useful_share(counts, size), tasks))
    both = [*unbiased, *plug_in]
    return _Shares(
        counted_mean(unbiased) if unbiased else None,
        counted_mean(both) if both else None,
    )


_BANDS: tuple[tuple[str, str, Callable[[Fraction], bool]], ...] = (
    (
        "DAPO, Skywork-OR1",
        "0 < pass rate < 1",
        lambda rate: 0 < rate < 1,
    ),
    (
        "20-80 % band",
        "0.2 <= pass rate <= 0.8",
        lambda rate: Fraction(1, 5) <= rate <= Fraction(4, 5),
    ),
    (
        "POLARIS",
        "pass rate <= 0.9",
        lambda rate: rate <= Fraction(9, 10),
    ),
)


def bands(passes: PassCounts) -> tuple[RateBand, ...]:
    """Return how many tasks the bands of `statistics.md` D4 would keep.

    Tasks below two rollouts do not count.
    """
    # Fractions, since 3/10 must not fall out of a band for being 0.30000000000000004.
    judged = {Fraction(c, n): 0 for n, c in passes if n >= MIN_ROLLOUTS}
    for (n, c), tasks in passes.items():
        if n >= MIN_ROLLOUTS:
            judged[Fraction(c, n)] += tasks
    return tuple(
        RateBand(
            name=name,
            rule=rule,
            num_kept=sum(tasks for rate, tasks in judged.items() if keeps(rate)),
            num_tasks=sum(judged.values()),
        )
        for name, rule, keeps in _BANDS
    )
