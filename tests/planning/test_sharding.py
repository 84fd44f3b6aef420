from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.planning.on_disk.planned_rollouts import dealt


@given(st.integers(0, 500), st.integers(1, 64))
def test_every_item_is_in_exactly_one_shard(planned: int, count: int) -> None:
    shards = [dealt(range(planned), index, count) for index in range(count)]

    assert sorted(chain.from_iterable(shards)) == list(range(planned))


@given(st.integers(0, 500), st.integers(1, 64))
def test_shards_differ_by_one_item_at_most(planned: int, count: int) -> None:
    sizes = [len([*dealt(range(planned), i, count)]) for i in range(count)]

    assert max(sizes) - min(sizes) <= 1


def test_neighbours_are_dealt_to_different_shards() -> None:
    assert list(dealt(range(6), 1, 3)) == [1, 4]
