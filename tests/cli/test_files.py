"""The commands on files: `materialize`, `profile` and `inspect`."""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from reward_profiling.flows.parameters import EMBEDDED_TASKS

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = str(EMBEDDED_TASKS)
SCRIPT = str(Path(sys.executable).with_name("reward-profiling"))
BAD_ROWS = (
    '{"responses_create_params": {"input": "fine"}, "agent_ref": {"name": "a"}}',
    "{",
    "",
    '["no object"]',
    '{"question": "?"}',
    '{"responses_create_params": {"input": "?"}, "agent_ref": "text"}',
    '{"responses_create_params": {"input": "?"}, "agent_ref": {"name": "a"}, "x": NaN}',
)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
    }


def profiles(folder: Path) -> dict[str, str]:
    """Return digests of all but the columns, which tell when files were written."""
    found = digests(folder).items()
    return {name: digest for name, digest in found if not name.endswith(".parquet")}


@pytest.fixture
def half(command: Run, tmp_path: Path) -> Path:
    """Give an output of 4 planned rollouts of which 3 are collected."""
    command("materialize", "--input", TASKS, "--output", "r.jsonl",
            "--limit", "2", "--num-repeats", "2")  # fmt: skip
    lines = (tmp_path / "r_materialized_inputs.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) | {"reward": 1.0} for line in lines[:3]]
    output = tmp_path / "r.jsonl"
    output.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return output


OF_INSIGHTS = ("report", "select", "compare", "export")


@pytest.mark.parametrize(
    "arguments",
    [
        ["materialize", "--input", TASKS, "--output", "new.jsonl"],
        ["profile", "--rollouts", "r.jsonl", "--allow-partial"],
        ["inspect", "r.jsonl"],
        ["merge", "r.jsonl"],
        ["report", "r.jsonl"],
        ["select", "--input", "r_materialized_inputs.jsonl", "--rollouts", "r.jsonl",
         "--open-ends"],
        ["compare", "--baseline", "r.jsonl", "--candidate", "r.jsonl"],
        ["export", "r.jsonl", "--wandb"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_commands_on_files_import_what_they_need_alone(
    half: Path, command: Run, command_env: dict[str, str], arguments: list[str]
) -> None:
    if arguments[0] in OF_INSIGHTS:
        command("profile", "--rollouts", half, "--allow-partial", "--insights")

    done = subprocess.run(
        [sys.executable, "-X", "importtime", SCRIPT, *arguments],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "reward_profiling.files.run_files" in imported, done.stderr
    assert imported.isdisjoint({"prefect", "httpx", "aiohttp", "pyarrow"})
    assert imported.isdisjoint({"rich.console", "rich.text"})  # no terminal is there
    if arguments[0] not in OF_INSIGHTS:
        assert "pydantic" not in imported


def test_commands_on_files_answer_in_well_under_a_second(
    command: Run, half: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert command("inspect", half).returncode == 3

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # CPU time, since the wall's depends on what else the machine does.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.9


@pytest.mark.parametrize("arguments", [["materialize"], ["run", "--demo"]])
def test_all_bad_rows_are_named_before_anything_starts(
    command: Run, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text("\n".join(BAD_ROWS))

    done = command(*arguments, "--input", "bad.jsonl", "--output", "r.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    heading, *faults = done.stderr.splitlines()
    assert heading == "error: 5 task rows cannot be used:"
    assert [fault.split(": ")[0].strip() for fault in faults] == [
        f"bad.jsonl:{line}" for line in (2, 4, 5, 6, 7)
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_an_empty_input_is_refused(command: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")

    done = command("materialize", "--input", "empty.jsonl", "--output", "r.jsonl")

    assert (done.returncode, done.stderr) == (
        2,
        "error: the input holds no task rows\n",
    )


def test_the_same_plan_again_is_the_same_bytes(command: Run, tmp_path: Path) -> None:
    again = ["materialize", "--input", TASKS, "--output", "r.jsonl"]
    command(*again)
    before = digests(tmp_path)

    assert command(*again).returncode == 0

    assert digests(tmp_path) == before


@pytest.mark.parametrize(
    "changed",
    [
        ["--responses-create-params", '{"temperature": 0}', "--num-repeats", "2"],
        ["--num-repeats", "1"],
        ["--agent-name", "other", "--num-repeats", "2"],
    ],
)
def test_other_settings_on_collected_rollouts_are_refused_and_nothing_is_touched(
    command: Run, half: Path, changed: list[str]
) -> None:
    before = digests(half.parent)

    done = command(
        "materialize", "--input", TASKS, "--output", half, "--limit", "2", *changed
    )

    assert done.returncode == 2
    assert "holds rollouts of another plan; nothing was touched" in done.stderr
    assert " → " in done.stderr
    assert digests(half.parent) == before


def test_more_repeats_extend_the_plan_of_collected_rollouts(
    command: Run, half: Path
) -> None:
    done = command("materialize", "--input", TASKS, "--output", half,
                   "--limit", "2", "--num-repeats", "3")  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("6 rollouts of 2 tasks planned, 2 of them new\n")


def test_a_strict_profile_of_a_partial_output_is_refused(
    command: Run, half: Path
) -> None:
    before = digests(half.parent)

    done = command("profile", "--inputs", "r_materialized_inputs.jsonl",
                   "--rollouts", "r.jsonl")  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert "--allow-partial" in done.stderr
    assert digests(half.parent) == before


def test_a_partial_profile_says_what_is_missing_and_ends_with_three(
    command: Run, half: Path
) -> None:
    done = command("profile", "--inputs", "r_materialized_inputs.jsonl",
                   "--rollouts", half, "--allow-partial")  # fmt: skip

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith("3 of 4 rollouts collected: 1 missing; mean")
    assert half.with_name("r_reward_profiling.jsonl").exists()


def test_an_option_and_its_value_may_be_one_word(command: Run, half: Path) -> None:
    apart = command("profile", "--rollouts", half, "--allow-partial")
    written = profiles(half.parent)

    joined = command("profile", f"--rollouts={half}", "--allow-partial", "--rebuild")

    assert (joined.returncode, joined.stdout) == (apart.returncode, apart.stdout)
    assert profiles(half.parent) == written


def test_several_files_are_profiled_as_one_and_copies_are_named(
    command: Run, half: Path
) -> None:
    first, second, third = half.read_bytes().splitlines(keepends=True)
    half.write_bytes(first)
    half.with_name("s.jsonl").write_bytes(
        second + first.replace(b'"reward":1.0', b'"reward":0.0') + third
    )

    done = command("profile", "--rollouts", half, "--rollouts", "s.jsonl",
                   "--allow-partial")  # fmt: skip

    assert done.returncode == 3
    assert done.stdout.startswith("3 of 4 rollouts collected: 1 missing; mean reward 1")
    assert (
        "1 records of rollouts that have an earlier one were left out: s.jsonl:2\n"
        in done.stdout
    )
    assert half.with_name("r_reward_profiling.jsonl").exists()


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("{} | head -n 0; exit ${{PIPESTATUS[0]}}", 3, ""),
        ("{} >&-", 3, ""),
        ("{} > /dev/full", 1, "error: No space left on device\n"),
    ],
    ids=["read no further", "closed", "full"],
)
def test_a_profile_is_whole_though_nobody_reads_what_it_prints(
    half: Path, command_env: dict[str, str], shell: str, code: int, said: str
) -> None:
    line = f"{SCRIPT} profile --rollouts r.jsonl --allow-partial"

    done = subprocess.run(
        ["/bin/bash", "-c", shell.format(line)],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
    rows = half.with_name("r_reward_profiling.jsonl").read_bytes().splitlines()
    assert [orjson.loads(row)["num_rollouts"] for row in rows] == [2, 1]


def test_neither_a_plain_terminal_nor_an_odd_name_stops_a_profile(
    half: Path, command_env: dict[str, str]
) -> None:
    odd = os.fsdecode(b"a\xff.jsonl")
    half.rename(half.with_name(odd))
    plan = "r_materialized_inputs.jsonl"
    line = [SCRIPT, "profile", "--rollouts", odd, "--inputs", plan, "--allow-partial"]

    done = subprocess.run(
        line, cwd=half.parent, env={**command_env, "PYTHONIOENCODING": "ascii"},
        capture_output=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (3, b"")
    assert b"mean reward: mean over the scored tasks ? its standard" in done.stdout
    assert half.with_name(os.fsdecode(b"a\xff_rollout_metrics.parquet")).exists()


@pytest.mark.parametrize(
    "arguments",
    [["inspect", "--json"], ["profile", "--allow-partial", "--insights", "--rollouts"]],
    ids=lambda arguments: arguments[0],
)
def test_what_is_written_of_an_odd_name_is_spelled_out(
    half: Path, command: Run, arguments: list[str]
) -> None:
    odd = os.fsdecode(b"a\xff.jsonl")
    for path in list(half.parent.glob("r*")):
        path.rename(path.with_name(odd[:2] + path.name[1:]))

    done = command(*arguments, odd)

    assert (done.returncode, done.stderr) == (3, "")
    written = half.with_name(os.fsdecode(b"a\xff_insights.json"))
    said = written.read_text() if written.exists() else done.stdout
    assert json.loads(said)["output"] == "a\\xff.jsonl"


def test_inspect_takes_no_threshold_that_is_no_number(command: Run, half: Path) -> None:
    done = command("inspect", half, "--pass-threshold", "nan")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--pass-threshold" in done.stderr


INTERRUPTED_EARLY = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "reward_profiling.errors":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from reward_profiling.cli.entry import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "shell", "code"),
    [
        (["profile", "--rollouts", "r.jsonl", "--allow-partial"], "", 130),
        (["inspect", "r.jsonl"], "", 130),
        (["profile", "--rollouts", "r.jsonl", "--allow-partial"], "trap '' INT;", 3),
    ],
    ids=["profile", "another command", "ignored"],
)
def test_an_interrupt_before_a_command_begins_ends_it_without_a_traceback(
    half: Path,
    command_env: dict[str, str],
    arguments: list[str],
    shell: str,
    code: int,
) -> None:
    line = [sys.executable, "-c", INTERRUPTED_EARLY, *arguments]

    done = subprocess.run(
        ["/bin/bash", "-c", f'{shell} "$@"; exit $?', "bash", *line],
        cwd=half.parent, env=command_env, capture_output=True, text=True, check=False,
        preexec_fn=_heed_interrupts,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (code, "")
    assert half.with_name("r_reward_profiling.jsonl").exists() == (code != 130)


def _heed_interrupts() -> None:
    """Undo what a script's background does to its processes, and to their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("wrong", [["--rolouts", "x"], ["--pass-threshold", "half"]])
def test_a_wrong_option_of_profile_is_explained(command: Run, wrong: list[str]) -> None:
    done = command("profile", "--rollouts", "r.jsonl", *wrong)

    assert (done.returncode, done.stdout) == (2, "")
    assert wrong[0] in done.stderr


def test_inspect_shows_files_completion_and_tasks_in_eighty_columns(
    command: Run, half: Path
) -> None:
    done = command("inspect", half)

    assert (done.returncode, done.stderr) == (3, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "3 of 4 planned rollouts collected (75.0 %), 1 owed" in lines
    assert ["r.jsonl", "3"] in [line.split()[:2] for line in lines]
    assert [line.split()[0] for line in lines if "capital" in line] == ["0"]
    assert ["0.9", "to", "1", "████████████████████████████████████████", "2"] in [
        line.split() for line in lines
    ]


def test_a_profile_is_not_outdated_by_a_time_alone(command: Run, half: Path) -> None:
    assert command("profile", "--rollouts", half, "--allow-partial").returncode == 3
    later = half.stat().st_mtime_ns + 10**9
    os.utime(half, ns=(later, later))
    assert command("profile", "--rollouts", half, "--allow-partial").returncode == 3

    assert "older than the records" not in command("inspect", half).stdout

    with half.open("ab") as file:
        file.write(half.read_bytes().replace(b'index":0', b'index":1').splitlines()[-1])
    os.utime(half, ns=(later, later))
    assert "older than the records" in command("inspect", half).stdout


@pytest.mark.parametrize("columns", ["²", "many", "0", "-3"])
def test_an_odd_width_is_no_fault(command: Run, half: Path, columns: str) -> None:
    done = command("profile", "--rollouts", half, "--allow-partial", COLUMNS=columns)

    assert (done.returncode, done.stderr) == (3, "")


def test_merge_without_a_plan_touches_nothing(command: Run, tmp_path: Path) -> None:
    shard = tmp_path / "r-shard-0-of-1.jsonl"
    shard.write_bytes(b'{"_ng_task_index":0,"_ng_rollout_index":0}\n')

    done = command("merge", tmp_path / "r.jsonl")
    mistyped = command("merge", tmp_path / "rums" / "r.jsonl")

    assert (done.returncode, mistyped.returncode) == (2, 2)
    assert "nothing was merged" in done.stderr.replace("\n", " ")
    assert list(tmp_path.iterdir()) == [shard]


def test_inspect_reads_what_gym_wrote_and_tells_machines(
    command: Run, tmp_path: Path
) -> None:
    golden = Path(__file__).parents[1] / "golden" / "partial"
    for name in ("rollouts.jsonl", "rollouts_materialized_inputs.jsonl"):
        (tmp_path / name).write_bytes((golden / name).read_bytes())

    done = command("inspect", tmp_path, "--json")

    found = orjson.loads(done.stdout)
    assert done.returncode == 3
    assert found["counts"]["collected"] == 4
    assert sum(tenth["num_tasks"] for tenth in found["tenths"]) == 2
    assert [named["task"]["task_index"] for named in found["most_solved"]] == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "rollouts.jsonl", "rollouts_materialized_inputs.jsonl",
    ]  # fmt: skip


def test_a_path_that_is_a_folder_is_refused(command: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()

    for arguments in (
        ["materialize", "--input", TASKS, "--output", "there"],
        ["run", "--demo", "--output", "there"],
        ["collect", "--head-url", "http://127.0.0.1:9", "--output", "there"],
    ):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is a folder; name a file in it, such as" in done.stderr
    done = command("inspect", "there")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is a folder without an output; name a file, such as" in done.stderr


def test_an_output_named_like_a_derived_file_is_refused(command: Run) -> None:
    done = command(
        "materialize", "--input", TASKS, "--output", "r_materialized_inputs.jsonl"
    )

    assert done.returncode == 2
    assert "--output names the rollouts file itself" in done.stderr


def test_folders_are_made_and_any_name_will_do(command: Run, tmp_path: Path) -> None:
    place = tmp_path / "ein Ort"
    place.mkdir()
    (place / "Aufgäben 1.jsonl").write_bytes(EMBEDDED_TASKS.read_bytes())

    done = command("materialize", "--input", "Aufgäben 1.jsonl",
                   "--output", "neu/目录/roll outs.jsonl", cwd=place)  # fmt: skip
    shown = command("inspect", os.fspath(place / "neu/目录/roll outs.jsonl"))

    assert done.returncode == 0, done.stderr
    assert "0 of 24 planned rollouts collected" in shown.stdout
    assert "roll outs_materialized_inputs.jsonl" in shown.stdout


def test_inspect_of_nothing_is_refused(command: Run) -> None:
    done = command("inspect", "nothing.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: nothing was written for nothing.jsonl yet\n"
