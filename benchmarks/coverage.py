"""How often intervals hold what they claim, and what adaptive repeats save.

Tasks get a pass rate from a beta distribution, rollouts are drawn from it, and the
functions that a profile uses are asked; no server is needed. Run as
`python benchmarks/coverage.py [RUNS]`; 2,000 runs take about a minute. The share that
holds is out of the runs in which an interval is given at all.
"""

import sys
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from reward_profiling.choosing.adaptive_rounds import (
    AdaptiveOptions,
    TaskState,
    next_round,
)
from reward_profiling.choosing.comparing.paired_difference import difference_of
from reward_profiling.choosing.comparing.task_pairs import Pair, Side
from reward_profiling.choosing.comparison import CompareOptions
from reward_profiling.numerics.uncertainty import (
    Interval,
    clopper_pearson,
    mean_interval,
    mean_of,
    variance,
    wilson,
)

ABILITIES = {
    "hard or easy": (0.5, 0.5),
    "evenly spread": (1.0, 1.0),
    "mostly hard": (0.3, 1.2),
    "a few solved": (0.2, 2.0),
}
"""Beta distributions of the tasks' pass rates."""
SEED = 20_260_101


class Held(NamedTuple):
    """How often an interval held the truth, how often there was one, and its width."""

    share: float
    given: float
    width: float


def passes(rate: float, repeats: int, random: Random) -> int:
    """Draw how many of some rollouts pass."""
    return sum(random.random() < rate for _ in range(repeats))


def of_the_mean(
    ability: tuple[float, float], tasks: int, runs: int, random: Random
) -> Held:
    """Return how often the interval of a mean over tasks held, at 8 repeats."""
    truth = ability[0] / sum(ability)
    found = []
    for _ in range(runs):
        rates = [random.betavariate(*ability) for _ in range(tasks)]
        means = [passes(rate, 8, random) / 8 for rate in rates]
        found.append(mean_interval(means, Interval(0.0, 1.0)))
    told = [bounds for bounds in found if bounds is not None]
    return Held(
        sum(one.low <= truth <= one.high for one in told) / max(1, len(told)),
        len(told) / runs,
        sum(one.high - one.low for one in told) / max(1, len(told)),
    )


def of_a_difference(
    ability: tuple[float, float], tasks: int, runs: int, random: Random
) -> Held:
    """Return the same for a paired difference, the candidate 0.05 better or worse."""
    held, widths = 0, 0.0
    for _ in range(runs):
        pairs, truth = [], 0.0
        for index in range(tasks):
            before = random.betavariate(*ability)
            after = min(1.0, max(0.0, before + random.choice((-0.05, 0.05, 0.2))))
            truth += (after - before) / tasks
            sides = [side(index, passes(rate, 8, random)) for rate in (before, after)]
            pairs.append(Pair("a", *sides))
        found = difference_of(None, pairs, CompareOptions()).interval
        if found is not None:
            held += found.low <= truth <= found.high
            widths += found.high - found.low
    return Held(held / runs, 1.0, widths / runs)


def side(index: int, passed: int) -> Side:
    """Return one run of a task with 8 repeats."""
    spread = variance([1.0] * passed + [0.0] * (8 - passed))
    return Side(index, 8, passed, passed / 8, spread)


def of_a_rate(n: int) -> Iterator[tuple[str, float, float]]:
    """Yield how often the intervals of a task's rate hold: mean and worst over rates.

    Summed over all outcomes, not drawn.
    """
    rates = [step / 200 for step in range(1, 200)]
    for name, interval in (("Wilson", wilson), ("Clopper-Pearson", clopper_pearson)):
        held = [
            sum(
                chance(n, c, rate)
                for c in range(n + 1)
                if interval(c, n).low <= rate <= interval(c, n).high
            )
            for rate in rates
        ]
        yield name, mean_of(held), min(held)


def chance(n: int, c: int, rate: float) -> float:
    """Return the binomial probability of c of n."""
    ways = 1
    for k in range(c):
        ways = ways * (n - k) // (k + 1)
    return ways * rate**c * (1 - rate) ** (n - c)


class Spent(NamedTuple):
    """What an adaptive plan cost, beside equal repeats with the same answers."""

    rounds: int
    planned: int
    uniform: int
    settled: float


def adaptively(
    rates: Sequence[float], options: AdaptiveOptions, random: Random
) -> Spent:
    """Play an adaptive plan that begins with 4 repeats to its end."""
    states = [
        TaskState(place, 4, 4, passes(rate, 4, random))
        for place, rate in enumerate(rates)
    ]
    rounds = 0
    while True:
        more, summary = next_round(states, options)
        if not more:
            settled = summary.num_settled / len(states)
            return Spent(rounds, summary.planned, summary.uniform, settled)
        rounds += 1
        for place, rate in enumerate(rates):
            added = more.get(place, 0)
            old = states[place]
            passed = old.c + passes(rate, added, random)
            states[place] = TaskState(place, old.planned + added, old.n + added, passed)


def main(runs: int) -> None:
    """Print the tables."""
    random = Random(SEED)
    print(f"Interval of a mean over tasks, 8 repeats, {runs} runs: holds, given, width")
    sizes = (5, 10, 30, 100)
    print("| tasks |", " | ".join(map(str, sizes)), "|")
    for name, ability in ABILITIES.items():
        cells = [of_the_mean(ability, size, runs, random) for size in sizes]
        told = (f"{c.share:.1%}, {c.given:.0%}, {c.width:.2f}" for c in cells)
        print("|", name, "|", " | ".join(told), "|")
    print("\nInterval of a paired difference")
    for name, ability in ABILITIES.items():
        cells = [of_a_difference(ability, size, runs, random) for size in sizes]
        told = (f"{c.share:.1%}, {c.width:.2f}" for c in cells)
        print("|", name, "|", " | ".join(told), "|")
    print("\nInterval of one task's pass rate: holds on average, at worst")
    for n in (4, 8, 16, 64):
        for name, average, worst in of_a_rate(n):
            print(f"| {n} rollouts | {name} | {average:.1%} | {worst:.1%} |")
    print("\nAdaptive repeats of 1,000 tasks, from 4 to at most 64")
    for name, ability in ABILITIES.items():
        rates = [random.betavariate(*ability) for _ in range(1000)]
        for width in (None, 0.5, 0.3):
            options = AdaptiveOptions(adaptive=True, target_width=width)
            spent = adaptively(rates, options, random)
            saved = 1 - spent.planned / spent.uniform
            goal = "class" if width is None else f"width {width}"
            print(
                f"| {name} | {goal} | {spent.planned:,} of {spent.uniform:,} rollouts |"
                f" {saved:.0%} saved | {spent.rounds} rounds |"
                f" {spent.settled:.0%} settled |"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
