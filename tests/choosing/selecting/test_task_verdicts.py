from fractions import Fraction

import pytest

from reward_profiling.choosing.selecting.task_verdicts import Counts, decide, ordered
from reward_profiling.choosing.selection import SelectOptions


def options(**given: object) -> SelectOptions:
    return SelectOptions.made(given)


def kept(n: int, chosen: SelectOptions) -> list[int]:
    found = [decide(Counts(n, c, 0 < c < n), chosen).verdict for c in range(n + 1)]
    return [c for c, verdict in enumerate(found) if verdict == "kept"]


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"open_ends": True}, [1, 2, 3, 4, 5, 6, 7]),
        ({"min_pass_rate": 0.2, "max_pass_rate": 0.8}, [2, 3, 4, 5, 6]),
        ({"max_pass_rate": "0.9"}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"min_pass_rate": "25%", "max_pass_rate": "3/4"}, [2, 3, 4, 5, 6]),
        ({"min_pass_rate": 0.25, "max_pass_rate": 0.75, "open_ends": True}, [3, 4, 5]),
        ({"min_pass_rate": 0.25, "open_min": True}, [3, 4, 5, 6, 7, 8]),
        ({"max_pass_rate": 0.75, "open_max": True}, [0, 1, 2, 3, 4, 5]),
        ({"drop_zero_signal": True}, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_bands_keep_known_counts_of_eight(
    given: dict[str, object], counts: list[int]
) -> None:
    assert kept(8, options(**given)) == counts


def test_three_tenths_is_not_above_itself() -> None:
    assert sum([0.1] * 3) > 0.3
    assert kept(10, options(max_pass_rate=0.3)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (None, "not in the plan"),
        (Counts(0, 0, has_signal=False), "no scored rollout"),
        (Counts(3, 1, has_signal=True), "fewer than 4 scored rollouts"),
    ],
)
def test_too_few_rollouts_are_undetermined(counts: Counts | None, reason: str) -> None:
    found = decide(counts, options(open_ends=True, min_rollouts=4))

    assert (found.verdict, found.reason) == ("undetermined", reason)


def test_rows_are_ordered_by_rate() -> None:
    rates = [Fraction(c, 8) for c in (4, 1, 7, 1, 5)]

    assert ordered(rates, "input") == [0, 1, 2, 3, 4]
    assert ordered(rates, "hard-first") == [1, 3, 0, 4, 2]
    assert ordered(rates, "easy-first") == [2, 4, 0, 1, 3]
    assert ordered(rates, "informative-first") == [0, 4, 1, 2, 3]
