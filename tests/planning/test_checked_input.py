"""What becomes of an input: which rows are taken, refused or warned of."""

import os
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.options import PlanOptions
from tests.planning.plans_of_rows import (
    ASKED,
    BOM,
    MADE,
    ROUTES,
    A,
    B,
    C,
    plan_lines,
    planned,
    prompt,
)


def test_an_unchanged_input_is_read_once(tmp_path: Path) -> None:
    path, options = tmp_path / "in.jsonl", PlanOptions(num_repeats=2)
    path.write_bytes(A + b"\n" + B + b"\n")
    known = check_input(path, options)

    assert check_input(path, options, known) is known
    assert check_input(path, PlanOptions(num_repeats=3)).plan.num_rollouts == 6

    before = path.stat()
    path.write_bytes(A + b"\n" + C + b"\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert check_input(path, options, known).digest != known.digest

    path.unlink()
    with pytest.raises(ConfigError):
        check_input(path, options, known)


def test_a_changed_prompt_is_read_again(tmp_path: Path) -> None:
    path, prompt = tmp_path / "in.jsonl", tmp_path / "prompt.yaml"
    path.write_bytes(b'{"q":1,"agent_ref":{"name":"x"}}\n')
    prompt.write_text("user: a {q}")
    options = PlanOptions(prompt_config=str(prompt))
    known = check_input(path, options)
    prompt.write_text("user: b {q}")

    assert check_input(path, options, known).additions != known.additions


@pytest.mark.parametrize(
    "content",
    [
        A + b"\n" + B + b"\n",
        A + b"\n" + B,
        A + b"\r\n" + B + b"\r\n",
        BOM + A + b"\n" + B,
        b"\n" + A + b"\n \t\n" + B + b"\n\n",
    ],
)
def test_line_endings_do_not_change_the_plan(content: bytes, tmp_path: Path) -> None:
    found = planned(tmp_path, content)

    assert found.num_tasks == 2
    assert plan_lines(tmp_path) == [
        row[:-1] + b',"_ng_task_index":%d,"_ng_rollout_index":0}' % index
        for index, row in enumerate([A, B])
    ]


def test_blank_lines_are_counted(tmp_path: Path) -> None:
    found = planned(tmp_path, b"\n" + A + b"\n\n \n")

    assert found.warnings == (f"{tmp_path / 'in.jsonl'}: skipped 3 blank lines",)


def test_an_unended_last_line_changes_no_task(tmp_path: Path) -> None:
    assert planned(tmp_path, A + b"\r\n" + A + b"\n" + A).num_tasks == 1


def test_other_spacing_is_another_task(tmp_path: Path) -> None:
    assert planned(tmp_path, A + b"\n" + A.replace(b":", b": ")).num_tasks == 2


@pytest.mark.parametrize("limit", [1, 2, 3, 99])
def test_limit_takes_the_first_rows(limit: int, tmp_path: Path) -> None:
    found = planned(tmp_path, b"\n".join([A, B, C]), limit=limit, num_repeats=2)

    assert found.num_rollouts == 2 * min(limit, 3)


def test_rows_past_the_limit_may_be_unusable(tmp_path: Path) -> None:
    assert planned(tmp_path, A + b"\n{bad\n[1]\n", limit=1).num_tasks == 1


def test_a_limit_that_drops_an_agent_is_told(tmp_path: Path) -> None:
    found = planned(tmp_path, b"\n".join([A, B, C]), limit=2)

    assert found.warnings == ("limit 2 leaves out every row of y",)


def test_all_bad_rows_are_named_at_once(tmp_path: Path) -> None:
    bad = [b"{bad", b"[1]", b"NaN", b'{"responses_create_params":{"t":NaN}}', b"{}"]
    bad += [b'{"responses_create_params":{},"agent_ref":"x"}', A, b'{"n":%d}' % 2**70]

    with pytest.raises(DatasetError, match=r"^7 task rows cannot be used") as raised:
        planned(tmp_path, b"\n".join(bad))

    lines = [
        fault.removeprefix(f"{tmp_path}/in.jsonl:") for fault in raised.value.faults
    ]
    assert sorted(line.split(":")[0] for line in lines) == list("1234568")
    assert not (tmp_path / "out").exists()


def test_twenty_bad_rows_are_shown_at_most(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as raised:
        planned(tmp_path, b"{}\n" * 50)

    assert len(str(raised.value).splitlines()) == 22


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_past_64_bits_names_its_line(number: int, tmp_path: Path) -> None:
    row = A[:-1] + b',"id":%d}' % number

    with pytest.raises(DatasetError, match=rf"in\.jsonl:2: .*whole number {number}"):
        planned(tmp_path, B + b"\n" + row)


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**53 + 1])
def test_whole_number_of_64_bits_is_kept(number: int, tmp_path: Path) -> None:
    planned(tmp_path, A[:-1] + b',"id":%d}' % number)

    assert b'"id":%d,' % number in plan_lines(tmp_path)[0]


def test_duplicate_keys_are_warned_of(tmp_path: Path) -> None:
    found = planned(tmp_path, A + b"\n" + B[:-1] + b',"n":1,"n":2}')

    assert (
        "1 rows name a key twice, and the last one counts: lines 2"
        in (found.warnings[0])
    )
    assert plan_lines(tmp_path)[1].count(b'"n"') == 1


def test_index_collision_names_both_lines(tmp_path: Path) -> None:
    given = B[:-1] + b',"_ng_task_index":0}'

    with pytest.raises(DatasetError, match=r"line 3 has _ng_task_index 0.*line 1"):
        planned(tmp_path, A + b"\n\n" + given)


@pytest.mark.parametrize("content", [b"", b"\n\n", BOM])
def test_input_without_rows_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no task rows"):
        planned(tmp_path, content)


def test_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.jsonl does not exist"):
        check_input(tmp_path / "none.jsonl", PlanOptions())


def test_meaningless_template_options_are_told(tmp_path: Path) -> None:
    template = prompt(tmp_path, "user: '{question}'\nsytem: x\n")

    found = planned(tmp_path, ASKED, prompt_config=template, agent_name="a")

    assert found.warnings == (
        f"{template}: a prompt template has user and system, so sytem has no effect",
    )


def test_a_limit_that_drops_a_server_is_told(tmp_path: Path) -> None:
    content = A + b"\n" + MADE % 1

    found = planned(tmp_path, content, limit=1, **ROUTES)

    assert found.warnings == ("limit 1 leaves out every row of ES",)
