"""Signal: whether a task's rewards differ, and how many groups of rollouts would teach.

GRPO's advantage is zero in a group of equal rewards, whatever their value; equal is
max - min <= tolerance, not std == 0 and not mean in {0, 1}. Formulas:
`statistics.md` D3 and D4.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from reward_profiling.insights.passing import PassCounts
from reward_profiling.insights.schema import Band, TaskClass, UsefulGroups
from reward_profiling.numerics.uncertainty import counted_mean

GROUP_SIZES = (4, 8, 16, 32)
TELLING = 2
"""Scored rollouts below which a task is undetermined."""

Signature = tuple[int, ...]
"""How often each distinct reward of a task occurs, ascending."""


def signature_of(rewards: Sequence[float], tolerance: float) -> Signature:
    """Return how often each distinct reward occurs; `()` for none.

    Rewards within the tolerance of the smallest of a kind are of that kind.
    """
    counts: list[int] = []
    first = -math.inf
    for reward in sorted(rewards):
        if not counts or reward - first > tolerance:
            counts.append(0)
            first = reward
        counts[-1] += 1
    return tuple(sorted(counts))


def task_class(n: int, c: int) -> TaskClass:
    """Return never, sometimes or always, for c of n passing; undetermined below two."""
    if n < TELLING:
        return "undetermined"
    if c == 0:
        return "never"
    return "always" if c == n else "sometimes"


def informativeness(n: int, c: int) -> float | None:
    """Return p(1 - p) of the pass rate, which bounds what a step can gain.

    Source: arXiv 2504.03380. None below two rollouts.
    """
    return None if n < TELLING else c * (n - c) / (n * n)


def useful_share(counts: Signature, group_size: int) -> float:
    """Return the unbiased share of groups whose rewards differ, of all in a task.

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
    """Return the same by the frequencies seen: 1 - sum of p_v^G.

    Frequencies of few rollouts claim too much: a task that showed one reward only
    might show another.
    """
    n = sum(counts)
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

    `signatures` and `passes` count tasks; those below two rollouts are left out.
    """
    mixed: Counter[Signature] = Counter()
    for (n, c), tasks in passes.items():
        mixed[tuple(sorted(part for part in (c, n - c) if part))] += tasks
    return tuple(_groups(signatures, mixed, size) for size in GROUP_SIZES)


def _groups(
    signatures: Mapping[Signature, int], mixed: Mapping[Signature, int], size: int
) -> UsefulGroups:
    useful, by_passes = _shares(signatures, size), _shares(mixed, size)
    told = {counts: k for counts, k in signatures.items() if sum(counts) >= TELLING}
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
        if sum(counts) < TELLING:
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


def bands(passes: PassCounts) -> tuple[Band, ...]:
    """Return what the bands of `statistics.md` D4 would keep, judged by counts.

    Tasks below two rollouts are not judged.
    """
    judged = {Fraction(c, n): 0 for n, c in passes if n >= TELLING}
    for (n, c), tasks in passes.items():
        if n >= TELLING:
            judged[Fraction(c, n)] += tasks
    return tuple(
        Band(
            name=name,
            rule=rule,
            num_kept=sum(tasks for rate, tasks in judged.items() if keeps(rate)),
            num_tasks=sum(judged.values()),
        )
        for name, rule, keeps in _BANDS
    )
