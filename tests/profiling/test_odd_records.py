"""Odd data, as users have it: profiled or refused in words, never a traceback."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.profiling.profile_run import profile_run
from reward_profiling.profiling.records.record_answers import read_answers
from reward_profiling.profiling.run_reading import ProfileRequest
from reward_profiling.profiling.run_sources import sources_given, sources_of
from reward_profiling.profiling.summary.run_summary import RunSummary

KEY = b'"_ng_task_index":0,"_ng_rollout_index":'


def plan_line(task: Any, rollout: Any) -> bytes:  # noqa: ANN401
    row = {
        "agent_ref": {"name": "a"},
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
    }
    return orjson.dumps(row) + b"\n"


def profiled(folder: Path, *records: bytes, partial: bool = False) -> RunSummary:
    """Profile records that are given without their key and closing brace."""
    files = RunFiles(folder / "r.jsonl")
    planned = range(max(len(records), 1))
    files.materialized_inputs.write_bytes(b"".join(plan_line(0, r) for r in planned))
    lines = [text + KEY + b"%d}" % at for at, text in enumerate(records)]
    files.rollouts.write_bytes(b"\n".join(lines) + b"\n")
    return profile_run(sources_of(files), ProfileRequest(allow_partial=partial))


def task_row(folder: Path) -> dict[str, Any]:
    first, *_ = (folder / "r_reward_profiling.jsonl").read_bytes().splitlines()
    row: dict[str, Any] = orjson.loads(first)
    return row


@pytest.mark.parametrize(
    ("reward", "reason", "shown"),
    [
        (b'"1"', "text", "1"),
        (b'"', "text", ""),
        (b"null", "null", None),
        (b"NaN", "NaN", None),
        (b"-Infinity", "not finite", None),
        (b"1e400", "not finite", None),
        (b"9" * 400, "not finite", None),
        (b"[1]", "a list", [1]),
        (b'{"a":1}', "an object", {"a": 1}),
        (b'"\\ud83d"', "text", "�"),
        (b'"\\u0000"', "text", "\0"),
    ],
)
def test_a_non_numeric_reward_is_named(
    reward: bytes, reason: str, shown: object, tmp_path: Path
) -> None:
    text = reward if reward != b'"' else b'""'
    counts = profiled(tmp_path, b'{"reward":1.0,', b'{"reward":' + text + b",")

    assert (counts.scored, counts.unscored, counts.is_partial) == (1, 1, True)
    assert counts.unscored_reasons == {reason: 1}
    assert counts.agents[0].unscored_reasons == {reason: 1}
    (said,) = counts.warnings
    place = f"reward {reason}: 1 not scored: {tmp_path / 'r.jsonl'}:2"
    assert said.partition(". Their parts are ")[0] == place
    assert task_row(tmp_path)["mean/reward"] == 1.0
    assert task_row(tmp_path)["rollout_infos"][1]["reward"] == shown


def test_missing_rewards_are_counted(tmp_path: Path) -> None:
    counts = profiled(tmp_path, b'{"reward":1,', *[b"{"] * 12)

    assert counts.unscored_reasons == {"missing": 12}
    (said,) = counts.warnings
    assert said.count("r.jsonl:") == 10
    assert said.endswith("r.jsonl:11 and 2 more")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (b'"reward":true', {"mean/reward": 1.0, "max/reward": 1}),
        (b'"reward":12345678901234567890', {"max/reward": 12345678901234567890}),
        (b'"reward":123456789012345678901', {"max/reward": 1.2345678901234568e20}),
        (b'"reward":-9223372036854775809', {"max/reward": -9.223372036854775808e18}),
        (b'"reward":9007199254740993', {"max/reward": 9007199254740993}),
        (b'"a/b c":0.5', {"mean/a/b c": 0.5}),
        (b'"a":{"b":1},"a/b":2', {"mean/a/b": 2.0}),
        (b'"x":"\\ud800","n":1', {"mean/n": 1.0}),
        (b'"n\\ud800":1', {"mean/n�": 1.0}),
        (b'"n\\u0000":1', {"mean/n\0": 1.0}),
        (b'"x":"' + b"y" * 415_000 + b'","n":1', {"mean/n": 1.0}),
        (b'"response":{"output":"' + b"y" * 415_000 + b'"},"n":1', {"mean/n": 1.0}),
        (b'"response":{"x":1e999},"n":1', {"mean/n": 1.0}),
        (b'"n":1,"n":2', {"mean/n": 2.0}),
        (b'"response":{"usage":{"n":3}},"n":{}', {"mean/n": 3.0}),
        (
            b'"response":' + b'{"a":' * 90 + b"1" + b"}" * 90 + b',"n":1',
            {"mean/n": 1.0},
        ),
        (b" \t" + b'"n" : 1 ', {"mean/n": 1.0}),
        ('"é":"中","🏆":1'.encode(), {"mean/🏆": 1.0}),
    ],
)
def test_odd_members_are_read_as_usual(
    members: bytes, expected: dict[str, float], tmp_path: Path
) -> None:
    profiled(tmp_path, b"{" + members + b",")

    row = task_row(tmp_path)
    assert {key: row[key] for key in expected} == expected
    assert [type(row[key]) for key in expected] == [type(v) for v in expected.values()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"<PLACEHOLDER ROW>", "is not JSON: <PLACEHOLDER ROW>"),
        (b'{"reward":1.0,"response":{"output":[{"te', "is not JSON"),
        (b"\0" * 40, "is not JSON"),
        (b'{"reward":1}\0', "is not JSON"),
        (b'{"reward":1}{"reward":2}', "is not JSON"),
        (b'{"a":"\xff\xfe"}', "is not JSON"),
        (b'{"response":{"a":"\xff"},' + KEY + b"0}", "is not JSON"),
        (b'{"response":{"a":"\xc3("},' + KEY + b"0}", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"17", "is not a JSON object"),
        (b'{"reward":1}', "has no _ng_task_index"),
        (b'{"_ng_task_index":true,"_ng_rollout_index":0}', "not a whole number"),
        (b'{"_ng_task_index":1.5,"_ng_rollout_index":0}', "not a whole number"),
        (b'{"_ng_task_index":{},"_ng_rollout_index":0}', "not a whole number"),
        (b'{"response":"oops",' + KEY + b"0}", "response is text, not an object"),
        (b'{"response":[1],' + KEY + b"0}", "response is a list, not an object"),
        (b'{"response":{"usage":[1]},' + KEY + b"0}", "usage is a list, not an object"),
    ],
)
@pytest.mark.parametrize("gap", [b"", b"\n"])
def test_a_damaged_middle_line_is_refused(
    gap: bytes, text: bytes, said: str, tmp_path: Path
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0) + plan_line(0, 1))
    good = b'{"reward":1,' + KEY
    files.rollouts.write_bytes(good + b"0}\n" + gap + text + b"\n" + good + b"1}\n")

    with pytest.raises(RecordError, match=rf"r\.jsonl:{2 + len(gap)}: .*{said}"):
        profile_run(sources_of(files), ProfileRequest(allow_partial=True))

    assert not files.reward_profiling.exists()


@pytest.mark.parametrize("rest", [b"\n", b"{\n}\n", b"\r\n", b""])
@pytest.mark.parametrize("kind", ["records", "plan"])
def test_two_objects_in_a_line_are_refused(
    kind: str, rest: bytes, tmp_path: Path
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    plan = [plan_line(0, rollout).rstrip() for rollout in (0, 1)]
    records = [b'{"reward":1,' + KEY + b"%d}" % rollout for rollout in (0, 1)]
    for path, rows, name in (
        (files.materialized_inputs, plan, "plan"),
        (files.rollouts, records, "records"),
    ):
        text = b"".join(rows) + b"\n" + rest if name == kind else b"\n".join(rows)
        path.write_bytes(text)

    with pytest.raises(RecordError, match=r"\.jsonl:1: is not JSON"):
        profile_run(sources_of(files), ProfileRequest(allow_partial=True))


def test_the_first_of_two_faults_is_named(
    tmp_path: Path,
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    rest = KEY + b"0}\n"
    good, first = b'{"reward":1,' + rest, b'{"x":1,"response":"a",' + rest
    later = b'{"reward":1,"response":[1],' + rest
    usual = b'{"reward":1,"response":{"usage":{}},' + rest  # of the later one's shape
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(usual + good + first + later)

    with pytest.raises(RecordError, match=r"r\.jsonl:3: response is text"):
        profile_run(sources_of(files), ProfileRequest(allow_partial=True))


def test_a_lone_byte_order_mark_is_empty(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(b"\xef\xbb\xbf")

    counts = profile_run(sources_of(files), ProfileRequest(allow_partial=True))

    assert (counts.planned, counts.collected) == (1, 0)


@pytest.mark.parametrize("torn", [b'{"reward":1,"_ng_t', b"{", b'{"a":"\xe4'])
def test_an_unfinished_last_line_is_left_out(torn: bytes, tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0) + plan_line(0, 1))
    files.rollouts.write_bytes(b'{"reward":1,' + KEY + b"0}\n" + torn)

    counts = profile_run(sources_of(files), ProfileRequest(allow_partial=True))

    assert (counts.collected, counts.missing) == (1, 1)
    assert counts.warnings[0].startswith(
        f"{files.rollouts}:2: the incomplete last line"
    )
    with pytest.raises(RecordError, match=r"r\.jsonl:2"):
        profile_run(sources_of(files), ProfileRequest())


def test_nine_masked_zeros_are_in_no_mean(tmp_path: Path) -> None:
    zeros = [b'{"reward":0.0,"mask_sample":true,'] * 9

    counts = profiled(tmp_path, *zeros, b'{"reward":1.0,')

    assert (counts.mean_reward, counts.num_scored_tasks) == (1.0, 1)
    assert (counts.scored, counts.masked, counts.is_partial) == (1, 9, True)
    assert task_row(tmp_path)["num_rollouts"] == 1


def test_indices_may_be_text_and_stay_text(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    keys = [("b", "1"), ("a", "10"), ("a", "9")]
    files.materialized_inputs.write_bytes(b"".join(plan_line(*key) for key in keys))
    files.rollouts.write_bytes(files.materialized_inputs.read_bytes())
    profile_run(sources_of(files), ProfileRequest())

    counts = profile_run(sources_of(files), ProfileRequest())  # from the columns

    assert counts.collected == 3
    infos = task_row(tmp_path)["rollout_infos"]
    assert [info["rollout_id"] for info in infos] == ["a:10", "a:9"]


def test_a_huge_planned_index_is_refused(
    tmp_path: Path,
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    wide = plan_line(1, 0).replace(b'_ng_task_index":1', b'_ng_task_index":%d' % 2**64)
    files.materialized_inputs.write_bytes(plan_line(0, 0) + wide)
    files.rollouts.write_bytes(files.materialized_inputs.read_bytes())

    with pytest.raises(RecordError, match=r"inputs\.jsonl:2: _ng_task_index is 184467"):
        profile_run(sources_of(files), ProfileRequest())


def test_repeats_must_be_all_text_or_numbers(
    tmp_path: Path,
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    keys = [(0, 0), (0, 1), (1, "0"), (1, "1")]
    files.materialized_inputs.write_bytes(b"".join(plan_line(*key) for key in keys))
    files.rollouts.write_bytes(files.materialized_inputs.read_bytes())

    with pytest.raises(RecordError, match="text in some tasks and a number in others"):
        profile_run(sources_of(files), ProfileRequest())

    assert not files.reward_profiling.exists()


@pytest.mark.parametrize("response", [b"null", b"[]"])
def test_neighbours_do_not_change_an_index(response: bytes, tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    rest = b',"_ng_rollout_index":0}\n'
    wide = b'{"response":null,"_ng_task_index":1' + b"0" * 25 + rest
    other = b'{"response":%b,"_ng_task_index":0' % response + rest
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(wide + other)

    with pytest.raises(RecordError, match="1 rollout records belong to no"):
        profile_run(sources_of(files), ProfileRequest())


def test_failures_are_no_records(
    tmp_path: Path,
) -> None:
    failures = tmp_path / "r_failures.jsonl"
    failures.write_bytes(b'{"_ng_failure_class":"late",' + KEY + b"0}\n")
    with pytest.raises(ConfigError, match="is the name of a file derived"):
        sources_given([failures], inputs=None, output=None)

    counts = profiled(tmp_path, b'{"_ng_failure_class":"late",')

    assert counts.scored == 0
    assert counts.warnings[-1] == (
        f"1 lines of {tmp_path / 'r.jsonl'} are failures, not records"
    )


def test_three_hundred_metrics_may_vary(tmp_path: Path) -> None:
    names = [f"metric {number}" for number in range(300)]
    records = [
        orjson.dumps(dict.fromkeys(names[at::7], at))[:-1] + b"," for at in range(1, 15)
    ]

    profiled(tmp_path, *records)
    first = task_row(tmp_path)
    profile_run(sources_of(RunFiles(tmp_path / "r.jsonl")), ProfileRequest())

    assert task_row(tmp_path) == first
    assert sum(key.startswith("mean/") for key in first) == 299


@pytest.mark.parametrize(("tasks", "repeats"), [(1, 20_000), (20_000, 1)])
def test_tasks_may_be_few_or_many(tasks: int, repeats: int, tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    keys = [(task, rollout) for task in range(tasks) for rollout in range(repeats)]
    files.materialized_inputs.write_bytes(b"".join(plan_line(*key) for key in keys))
    line = b'{"reward":0.5,"_ng_task_index":%d,"_ng_rollout_index":%d}\n'
    files.rollouts.write_bytes(b"".join(line % key for key in reversed(keys)))

    counts = profile_run(sources_of(files), ProfileRequest())

    assert (counts.scored, counts.num_scored_tasks) == (20_000, tasks)
    assert task_row(tmp_path)["num_rollouts"] == repeats


def test_a_folder_of_shards_is_one_run(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "run.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0) + plan_line(0, 1))
    for at in (1, 0):
        shard = tmp_path / f"run-shard-{at}-of-2.jsonl"
        shard.write_bytes(b'{"reward":%d,' % at + KEY + b"%d}\n" % at)
        (tmp_path / f"run-shard-{at}-of-2_failures.jsonl").write_bytes(b"")

    sources = sources_given([tmp_path], inputs=None, output=None)
    counts = profile_run(sources, ProfileRequest())

    assert sources.files == files
    assert (counts.collected, counts.mean_reward) == (2, 0.5)
    assert files.reward_profiling.exists()


def test_other_files_in_a_folder_are_ignored(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "rollouts.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(b'{"reward":1,' + KEY + b"0}\n")
    files.rollout_verdicts.write_bytes(b'{"verdict":"healthy",' + KEY + b"0}\n")
    for name in ("._rollouts.jsonl", "rollouts_kept.jsonl", "rollouts_rejected.jsonl"):
        (tmp_path / name).write_bytes(b"no JSON\n")
    os.mkfifo(tmp_path / "pipe.jsonl")

    sources = sources_given([tmp_path], inputs=None, output=None)

    assert sources.rollouts == (files.rollouts,)
    assert profile_run(sources, ProfileRequest()).mean_reward == 1


def test_an_output_may_look_like_a_selection(
    tmp_path: Path,
) -> None:
    files = RunFiles(tmp_path / "runs_kept.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(b'{"reward":1,' + KEY + b"0}\n")
    (tmp_path / "._runs_kept_materialized_inputs.jsonl").write_bytes(b"no plan")
    shard = files.shard(0, 2)
    shard.materialized_inputs.write_bytes(plan_line(0, 0))

    sources = sources_given([tmp_path], inputs=None, output=None)

    assert sources.rollouts == (files.rollouts,)
    assert sources.inputs == files.materialized_inputs


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "gone_materialized_inputs.jsonl").write_bytes(plan_line(0, 0))

    sources = sources_given([tmp_path], inputs=None, output=None)

    with pytest.raises(ConfigError, match=r"gone\.jsonl does not exist"):
        profile_run(sources, ProfileRequest())


def test_a_folder_of_two_runs_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        files = RunFiles(tmp_path / f"{name}.jsonl")
        files.materialized_inputs.write_bytes(plan_line(0, 0))
        files.rollouts.write_bytes(b'{"reward":1,' + KEY + b"0}\n")

    with pytest.raises(
        ConfigError, match="holds several outputs; give the rollouts file"
    ):
        sources_given([tmp_path], inputs=None, output=None)


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_too_deep_nesting_is_named(
    tmp_path: Path,
) -> None:
    with pytest.raises(RecordError, match=r"r\.jsonl:1: the reward is nested too deep"):
        profiled(tmp_path, b'{"reward":%b,' % nested(300))

    files = RunFiles(tmp_path / "r.jsonl")
    deep = b'{"x":%b,"_ng_task_index":1,"_ng_rollout_index":0}\n' % nested(300)
    files.materialized_inputs.write_bytes(plan_line(0, 0) + deep)
    files.rollouts.write_bytes(
        b'{"reward":1,' + KEY + b'0}\n{"_ng_task_index":1,"_ng_rollout_index":0}\n'
    )
    with pytest.raises(RecordError, match=r"inputs\.jsonl:2: is nested too deep"):
        profile_run(sources_of(files), ProfileRequest())


def test_a_planned_number_past_floats_is_told(
    tmp_path: Path,
) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    wide = b'{"x":1e999,"_ng_task_index":0,"_ng_rollout_index":0}\n'
    files.materialized_inputs.write_bytes(wide)
    files.rollouts.write_bytes(b'{"reward":1,' + KEY + b"0}\n")

    with pytest.raises(RecordError, match=r"inputs\.jsonl:1: is not JSON"):
        profile_run(sources_of(files), ProfileRequest())


def test_an_unreadable_failure_is_named(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    files.failures.write_bytes(b'{"x":%b,' % nested(2000) + KEY + b"0}\n")

    with pytest.raises(RecordError, match=r"r_failures\.jsonl:1: is not JSON"):
        profiled(tmp_path, b'{"reward":1,')


def test_an_answer_nested_too_deep_is_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"said":%b,' % nested(300) + KEY + b"0}\n")

    assert list(read_answers(path, "said")) == []
    with pytest.raises(ConfigError, match="_ng_task_index identifies the rollout"):
        list(read_answers(path, "_ng_task_index"))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no rollouts file"):
        sources_given([tmp_path], inputs=None, output=None)


def test_the_parts_of_a_reward_are_named_with_a_way_out(tmp_path: Path) -> None:
    counts = profiled(
        tmp_path, b'{"reward":{"accuracy":1.0,"format":0.5},', b'{"reward":1,'
    )

    (said,) = [warning for warning in counts.warnings if "an object" in warning]
    assert "Their parts are accuracy, format" in said
    assert f"jq -c '.reward = .reward[\"accuracy\"]' {tmp_path}/r.jsonl" in said


def test_whole_floats_are_indices(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    plan = b"".join(plan_line(0, rollout) for rollout in range(3))
    keys = ((b"0.0", b"0"), (b"0", b"1.0"), (b"0.0", b"2.0"))
    line = b'{"_ng_task_index":%b,"_ng_rollout_index":%b,"reward":1}'
    for path, lines in (
        (files.materialized_inputs, plan),
        (files.rollouts, b"\n".join(line % key for key in keys) + b"\n"),
    ):
        path.write_bytes(lines)

    counts = profile_run(sources_of(files), ProfileRequest(allow_partial=False))

    assert (counts.planned, counts.scored) == (3, 3)
    again = profile_run(sources_of(files), ProfileRequest(allow_partial=False))
    assert again.scored == 3


def test_other_floats_are_no_indices(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "r.jsonl")
    files.materialized_inputs.write_bytes(plan_line(0, 0))
    files.rollouts.write_bytes(b'{"_ng_task_index":0.5,"_ng_rollout_index":0}\n')

    with pytest.raises(RecordError, match=r"r.jsonl:1: _ng_task_index is 0.5"):
        profile_run(sources_of(files), ProfileRequest(allow_partial=True))
