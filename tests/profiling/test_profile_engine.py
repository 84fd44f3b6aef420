"""Properties of the whole profile: what it equals, and what never changes it."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import RunSources
from reward_profiling.profiling.summary.run_summary import RunSummary
from tests.profiling.reference_profile import reference_files

Json = dict[str, Any]

NUMBERS = (
    st.booleans()
    | st.integers(-9, 9)
    | st.integers(2**53 - 2, 2**53 + 2)
    | st.sampled_from([0.0, 0.1, 0.5, 1.0, 1e308, 1.7e18, 2**63 - 1])
    # Without -0.0: which zero is the largest, Gym itself leaves to the processor.
    | st.floats(-1e6, 1e6).map(lambda value: value + 0.0)
)
VALUES = NUMBERS | st.none() | st.text(max_size=3) | st.just([1]) | st.just({"n": 1})
NAMES = st.sampled_from(["reward", "n", "a/b", "", "é x", "_h", "reward_2", "status"])
USAGE = st.dictionaries(st.sampled_from(["n", "tokens", "_u", "reward"]), VALUES)
RECORDS = st.fixed_dictionaries(
    {"own": st.dictionaries(NAMES, VALUES, max_size=5)},
    optional={"usage": st.none() | USAGE, "masked": st.booleans()},
)
AGENTS = st.sampled_from(["a", "b"])
RUNS = st.lists(
    st.lists(st.tuples(AGENTS, st.none() | RECORDS), min_size=1, max_size=9),
    max_size=4,
)
few = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def rows_of(runs: list[list[tuple[str, Json | None]]]) -> tuple[list[Json], list[Json]]:
    """Return plan and results of `runs[task][rollout]`; None has no result."""
    plan, results = [], []
    for task, rollouts in enumerate(runs):
        for rollout, (agent, record) in enumerate(rollouts):
            key = {"_ng_task_index": task, "_ng_rollout_index": rollout}
            plan.append({"q": "é", "agent_ref": {"name": agent}, **key})
            if record is not None:
                results.append(result_of(record, key))
    return plan, results


def result_of(record: Json, key: Json) -> Json:
    result = {**record["own"], **key}
    if "usage" in record:
        result["response"] = {"output": ["x"], "usage": record["usage"]}
    if "masked" in record:
        result["mask_sample"] = record["masked"]
    return result


def lines(rows: list[Json]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def profiled(folder: Path, *names: str, **request: bool) -> list[bytes]:
    profile(folder, *names, **request)
    files = files_of(folder)
    paths = (files.reward_profiling, files.agent_metrics, files.repeat_level_metrics)
    return [path.read_bytes() for path in paths]


def profile(folder: Path, *names: str, **request: bool) -> RunSummary:
    rollouts = tuple(folder / name for name in names or ("r.jsonl",))
    sources = RunSources(
        files_of(folder).materialized_inputs, rollouts, files_of(folder)
    )
    return profile_run(sources, ProfileRequest(allow_partial=True, **request))


def files_of(folder: Path) -> RunFiles:
    return RunFiles(folder / "r.jsonl")


@few
@given(RUNS)
def test_the_engine_equals_the_contract(runs: Any) -> None:  # noqa: ANN401
    plan, results = rows_of(runs)
    with TemporaryDirectory() as name:
        folder = Path(name)
        files_of(folder).materialized_inputs.write_bytes(lines(plan))
        (folder / "r.jsonl").write_bytes(lines(results))

        assert profiled(folder) == reference_files(plan, results)


@few
@given(RUNS, st.integers(1, 4), st.randoms(use_true_random=False))
def test_any_split_into_files_is_the_same(
    runs: Any,  # noqa: ANN401
    count: int,
    random: Random,
) -> None:
    plan, results = rows_of(runs)
    with TemporaryDirectory() as name:
        folder = Path(name)
        files_of(folder).materialized_inputs.write_bytes(lines(plan))
        random.shuffle(results)
        names = [f"part-{at}.jsonl" for at in range(count)]
        for at, part in enumerate(names):
            (folder / part).write_bytes(lines(results[at::count]))
        random.shuffle(names)

        assert profiled(folder, *names) == reference_files(plan, results)


@few
@given(RUNS, st.lists(st.floats(0, 1), max_size=3), st.randoms(use_true_random=False))
def test_a_growing_file_equals_a_whole_one(
    runs: Any,  # noqa: ANN401
    cuts: list[float],
    random: Random,
) -> None:
    plan, results = rows_of(runs)
    random.shuffle(results)
    content = lines(results)
    with TemporaryDirectory() as name:
        folder = Path(name)
        files_of(folder).materialized_inputs.write_bytes(lines(plan))
        done = 0
        for share in [*sorted(cuts), 1.0]:
            stop = int(share * len(content))  # anywhere, also within a line
            with (folder / "r.jsonl").open("ab") as file:
                file.write(content[done:stop])
            done = stop
            whole = [orjson.loads(row) for row in whole_lines(content[:stop])]
            assert profiled(folder) == reference_files(plan, whole)

        assert profiled(folder, rebuild=True) == reference_files(plan, results)


def whole_lines(content: bytes) -> list[bytes]:
    """Return the lines that have ended, and a last one that is whole without it."""
    *ended, last = content.split(b"\n")
    try:
        orjson.loads(last)
    except orjson.JSONDecodeError:
        return ended
    return [*ended, last]
