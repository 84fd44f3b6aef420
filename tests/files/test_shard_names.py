"""A shard is known by its name."""

from fnmatch import fnmatchcase

import pytest

from reward_profiling.files.shard_names import (
    Dealt,
    dealt_of,
    shard_pattern,
    shard_stem,
    whole_stem,
)


@pytest.mark.parametrize("stem", ["r", "a.b", "r[1]", "r-shard-0-of-2"])
def test_a_stem_is_read_as_it_was_made(stem: str) -> None:
    made = shard_stem(stem, Dealt(3, 12))

    assert dealt_of(made) == Dealt(3, 12)
    assert whole_stem(made) == stem
    assert fnmatchcase(made, shard_pattern(stem))


@pytest.mark.parametrize("stem", ["r", "r-shard-a-of-2", "r-shard-0-of-2x"])
def test_a_stem_of_no_shard_is_whole(stem: str) -> None:
    assert dealt_of(stem) is None
    assert whole_stem(stem) == stem


def test_a_shard_is_named_as_in_its_option() -> None:
    assert str(Dealt(0, 4)) == "0/4"
