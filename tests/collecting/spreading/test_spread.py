from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.spreading.spread import Fate, Look, SpreadOptions, fate
from reward_profiling.errors import ConfigError
from reward_profiling.flows.parameters import RewardProfilingParams

SPREAD = SpreadOptions(runner="work-pool", shard_silence=60, worker_patience=600)


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        (Look(state="SCHEDULED", seconds=600), Fate.WAIT),
        (Look(state="SCHEDULED", seconds=601), Fate.UNCLAIMED),
        (Look(state="PENDING", seconds=601), Fate.UNCLAIMED),
        (Look(state="PAUSED", seconds=1e9), Fate.WAIT),
        (Look(state="RUNNING", seconds=60), Fate.WAIT),
        (Look(state="RUNNING", seconds=61), Fate.DEAD),
        (Look(state="CRASHED"), Fate.DEAD),
        (Look(state="CANCELLING"), Fate.CANCELLED),
        (Look(state="CANCELLED"), Fate.CANCELLED),
        (Look(state="COMPLETED"), Fate.ENDED),
        # The summary may be seen later than the state, on a folder in a network.
        (Look(state="FAILED", seconds=1), Fate.WAIT),
        (Look(state="FAILED", seconds=16), Fate.BROKEN),
        (Look(state="FAILED", seconds=16, has_summary=True), Fate.ENDED),
        (Look(state="RUNNING", seconds=61, has_summary=True), Fate.ENDED),
    ],
)
def test_what_is_seen_decides_a_shards_fate(look: Look, expected: Fate) -> None:
    assert fate(look, SPREAD) is expected


@given(concurrency=st.integers(1, 500), num_shards=st.integers(1, 60))
def test_shard_shares_sum_to_the_concurrency(concurrency: int, num_shards: int) -> None:
    options = CollectOptions(concurrency=concurrency, num_shards=num_shards)

    shares = [options.concurrency_of(index) for index in range(num_shards)]

    assert sum(shares) == max(concurrency, num_shards)
    assert max(shares) - min(shares) <= 1


def test_a_lone_shard_has_its_share_and_place() -> None:
    options = CollectOptions(concurrency=5, num_shards=3, retries=0)

    own = [options.of_shard(index) for index in range(3)]

    assert [one.shard for one in own] == ["0/3", "1/3", "2/3"]
    assert [one.concurrency_of(0) for one in own] == [2, 2, 1]
    assert {one.retries for one in own} == {0}
    assert [CollectOptions.made(asdict(one)) for one in own] == own


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"runner": "work-pool", "runner_address": "tcp://h:1"}, "is for dask and ray"),
        ({"runner_settings": {"a": 1}}, "have no effect on the runner threads"),
        ({"runner": "ray", "runner_address": "ray://u:pw1secret@h:1"}, "a password"),
        ({"runner": "slurm", "runner_settings": {"api_key": "k9x8y7z6"}}, "a secret"),
        ({"runner": "work-pool", "shard_deployment": "no-slash"}, "FLOW/NAME"),
        ({"runner": "dusk"}, "'threads', 'dask', 'ray', 'slurm' or 'work-pool'"),
    ],
)
def test_a_refused_spread_keeps_its_secret(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SpreadOptions(**given)

    assert said in str(caught.value)
    assert "secret@" not in str(caught.value)
    assert "k9x8y7z6" not in str(caught.value)


def test_a_run_elsewhere_needs_two_shards() -> None:
    with pytest.raises(ConfigError, match="give num_shards, at least 2"):
        RewardProfilingParams.made(
            {"output": "r", "servers": {"demo": True}, "spread": {"runner": "dask"}}
        )
