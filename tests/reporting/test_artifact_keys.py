"""One history of artifacts for each output, under a key that a person can read."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.reporting.artifact_keys import artifact_key


def key(path: str) -> str:
    return artifact_key("reward-profiling-report", Path(path))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/data/runs/math/rollouts.jsonl", "runs-math"),
        ("/data/runs/math/other.jsonl", "runs-math-other"),
        ("/data/runs/nightly/2026-12-01/rollouts.jsonl", "runs-nightly"),
        ("/data/runs/demo/2026-12-01-020000/rollouts.jsonl", "runs-demo"),
        ("/data/Größe & Maß/rollouts.jsonl", "data-gr-e-ma"),
    ],
)
def test_a_key_reads_as_the_output(path: str, shown: str) -> None:
    assert re.fullmatch(f"reward-profiling-report-of-{shown}-[0-9a-f]{{6}}", key(path))


def test_nights_are_one_history_and_outputs_are_not() -> None:
    nights = {
        key(f"/d/nightly/2026-12-{day:02}/rollouts.jsonl") for day in range(1, 31)
    }
    outputs = {key(f"/d/{name}/rollouts.jsonl") for name in ("math", "code", "Math")}

    hours = {
        key(f"/d/2026-12-01/{time}/rollouts.jsonl") for time in ("020000", "140000")
    }
    seeds = {key(f"/d/seed-{seed}/rollouts.jsonl") for seed in ("123456", "654321")}

    assert len(nights) == len(hours) == 1
    assert len(seeds) == 2
    assert len(outputs) == 3


def test_a_relative_path_is_the_same_output() -> None:
    assert key("runs/a/r.jsonl") == key(str(Path("runs/a/r.jsonl").absolute()))


@given(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=80))
def test_any_path_gives_a_key_that_prefect_takes(path: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key(path))
