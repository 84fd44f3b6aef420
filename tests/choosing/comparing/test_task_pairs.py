import pytest

from reward_profiling.choosing.comparing.paired_difference import (
    difference_of,
)
from reward_profiling.choosing.comparing.task_pairs import (
    flips_of,
    mcnemar_p,
)
from reward_profiling.choosing.comparison import CompareOptions
from tests.choosing.comparing.pairs_of_rates import pairs_of


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [(9, 2, 0.065430), (5, 0, 0.0625), (3, 3, 1.0), (0, 1, 1.0), (0, 0, None)],
)
def test_flips_have_an_exact_p_value(gained: int, lost: int, p: float | None) -> None:
    expected = None if p is None else pytest.approx(p, abs=5e-7)

    assert mcnemar_p(gained, lost) == expected
    assert mcnemar_p(lost, gained) == expected


def test_flips_are_listed_lost_ones_first() -> None:
    pairs = pairs_of([(4, 4), (0, 3), (4, 0), (3, 1), (2, 4), (0, 0)])

    found = difference_of(None, pairs, CompareOptions()).mcnemar
    flips = flips_of(pairs)

    assert (found.gained, found.lost, found.both, found.neither) == (1, 2, 1, 1)
    assert found.undecided == 1
    assert [(flip.candidate_task, flip.is_lost) for flip in flips] == [
        (2, True), (3, True), (1, False),
    ]  # fmt: skip
