from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.insights.measures.learning_signal import (
    GROUP_SIZES,
    bands,
    informativeness,
    plug_in_share,
    task_class,
    useful_groups,
    useful_share,
)
from reward_profiling.insights.units import reward_signature

TOLERANCE = 1e-6


@pytest.mark.parametrize(
    ("p", "shares"),
    [
        ((1, 100), (0.039404, 0.077255, 0.148542, 0.275020)),
        ((5, 100), (0.185488, 0.336580, 0.559873, 0.806289)),
        ((10, 100), (0.343800, 0.569533, 0.814698, 0.965663)),
        ((90, 100), (0.343800, 0.569533, 0.814698, 0.965663)),
        ((25, 100), (0.679688, 0.899872, 0.989977, 0.999900)),
        ((50, 100), (0.875000, 0.992188, 0.999969, 1.0)),
    ],
)
def test_a_pass_rate_gives_a_known_share(
    p: tuple[int, int], shares: tuple[float, ...]
) -> None:
    c, n = p
    found = [plug_in_share((c, n - c), size) for size in GROUP_SIZES]

    assert found == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize(
    ("c", "share"), [(0, 0), (1, 0.5), (4, 0.971429), (7, 0.5), (8, 0)]
)
def test_eight_rollouts_give_a_known_share(c: int, share: float) -> None:
    counts = tuple(part for part in (c, 8 - c) if part)

    assert useful_share(counts, 4) == pytest.approx(share, abs=5e-7)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=8), st.data())
def test_the_share_is_that_of_all_groups(
    rewards: list[float], data: st.DataObject
) -> None:
    size = data.draw(st.integers(2, len(rewards)))
    groups = list(combinations(rewards, size))

    found = useful_share(reward_signature(rewards, TOLERANCE), size)

    useful = sum(len(set(group)) > 1 for group in groups)
    assert found == pytest.approx(useful / len(groups))


def test_short_tasks_give_no_unbiased_share() -> None:
    with pytest.raises(ValueError, match="3 rollouts make no group of 4"):
        useful_share((1, 2), 4)


def test_groups_tell_if_frequencies_fill_in() -> None:
    signatures = Counter({(4, 4): 1, (1, 3): 1, (1,): 5})
    passes = {(8, 4): 1, (4, 1): 1, (1, 0): 5}

    four, eight, _, more = useful_groups(signatures, passes)

    assert (four.num_tasks, four.num_short_tasks, four.num_plug_in_tasks) == (2, 0, 2)
    assert four.useful_share == pytest.approx((0.971429 + 1.0) / 2, abs=5e-7)
    assert (eight.num_tasks, eight.num_short_tasks) == (1, 1)
    assert eight.useful_share == 1.0
    assert eight.plug_in_useful_share == pytest.approx((1 + 0.8998718) / 2)
    assert (more.useful_share, more.num_tasks, more.num_short_tasks) == (None, 0, 2)


def test_useful_partial_rewards_need_no_pass() -> None:
    (four, *_) = useful_groups(Counter({(2, 2): 1}), {(4, 0): 1})

    assert (four.useful_share, four.mixed_share) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("n", "c", "expected", "variance"),
    [
        (0, 0, "undetermined", None), (1, 1, "undetermined", None),
        (8, 0, "never", 0), (8, 8, "always", 0), (8, 4, "sometimes", 0.25),
        (8, 1, "sometimes", 0.109375), (8, 2, "sometimes", 0.1875),
        (8, 3, "sometimes", 0.234375),
    ],
)  # fmt: skip
def test_a_task_is_classed_by_its_counts(
    n: int, c: int, expected: str, variance: float | None
) -> None:
    assert (task_class(n, c), informativeness(n, c)) == (expected, variance)


def test_bands_keep_known_counts_of_eight() -> None:
    passes = {(8, c): 1 for c in range(9)} | {(1, 1): 7}

    kept = {band.rule: (band.num_kept, band.num_tasks) for band in bands(passes)}

    assert kept == {
        "0 < pass rate < 1": (7, 9),
        "0.2 <= pass rate <= 0.8": (5, 9),
        "pass rate <= 0.9": (8, 9),
    }
