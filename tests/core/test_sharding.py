from hypothesis import given
from hypothesis import strategies as st

from tasks.core.sharding import is_in_shard


@given(st.integers(0, 10**6), st.integers(1, 1024))
def test_every_position_is_in_exactly_one_shard(position: int, count: int) -> None:
    shards = [i for i in range(count) if is_in_shard(position, i, count)]

    assert len(shards) == 1


@given(st.integers(0, 500), st.integers(1, 64))
def test_shards_differ_by_one_position_at_most(planned: int, count: int) -> None:
    sizes = [
        sum(is_in_shard(position, index, count) for position in range(planned))
        for index in range(count)
    ]

    assert sum(sizes) == planned
    assert max(sizes) - min(sizes) <= 1


def test_neighbours_are_dealt_to_different_shards() -> None:
    assert [is_in_shard(p, 1, 3) for p in range(6)] == [
        False, True, False, False, True, False,
    ]  # fmt: skip
