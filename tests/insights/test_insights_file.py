import math
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.insights.document import Insights, derive_insights
from reward_profiling.insights.insights_file import (
    read_insights,
    read_insights_head,
    replace_insights,
)
from reward_profiling.profiling.options import ProfileOptions
from tests.insights.tables import TASKS, Rollout, insights, table_of


def made(num_tasks: int) -> Insights:
    return derive_insights(table_of([[0.0, 1.0]] * num_tasks), ProfileOptions())


@pytest.mark.parametrize("num_tasks", [0, 1, 3])
def test_written_insights_are_read_again(num_tasks: int, tmp_path: Path) -> None:
    path, insights = tmp_path / "r_insights.json", made(num_tasks)

    replace_insights(path, insights, insights.tasks)

    assert read_insights(path) == insights
    assert read_insights_head(path) == msgspec.structs.replace(insights, tasks=())
    assert orjson.loads(path.read_bytes())["schema_version"] == 1


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1.0, b"1.0"), (-0.0, b"-0.0"), (1e-7, b"1e-7"), (1e16, b"1e+16"),
        (2.0**53, b"9007199254740992.0"), (math.nan, b"null"), (-math.inf, b"null"),
    ],
)  # fmt: skip
def test_floats_stay_floats_and_none_null(
    number: float, written: bytes, tmp_path: Path
) -> None:
    path, insights = tmp_path / "r_insights.json", made(1)
    reward = msgspec.structs.replace(insights.run.reward, macro_mean=number)
    run = msgspec.structs.replace(insights.run, reward=reward)

    replace_insights(path, msgspec.structs.replace(insights, run=run), insights.tasks)

    assert b'"macro_mean":' + written + b"," in path.read_bytes()


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "r_insights.json"
    insights = msgspec.structs.replace(made(1), model="größer \u2028 \x1b\x7f</a>")

    replace_insights(path, insights, insights.tasks)

    written = '"model":"größer \u2028 \\u001b\x7f</a>"'
    assert written.encode() in path.read_bytes()
    assert read_insights(path) == insights


@given(tasks=TASKS, leave_out_empty=st.booleans())
def test_insights_are_rewritten_unchanged(
    *, tasks: list[list[Rollout]], leave_out_empty: bool
) -> None:
    found = insights(*tasks, leave_out_empty=leave_out_empty)

    with TemporaryDirectory() as folder:
        path, again = Path(folder, "r_insights.json"), Path(folder, "s_insights.json")
        replace_insights(path, found, found.tasks)
        read = read_insights(path)
        replace_insights(again, read, read.tasks)

        assert read == found
        assert again.read_bytes() == path.read_bytes()


def test_another_layout_is_read_too(tmp_path: Path) -> None:
    path, insights = tmp_path / "r_insights.json", made(2)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(insights), indent=2))

    assert read_insights(path) == insights
    assert read_insights_head(path).tasks == ()


ONE = msgspec.json.encode(made(1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "does not hold insights of schema version 1"),
        (b"not json", "does not hold insights of schema version 1"),
        (b"[" * 100_000, "does not hold insights of schema version 1"),
        (ONE[:-9], "Input data was truncated"),
        (ONE.replace(b'"output":""', b'"output":"\xff"'), "Invalid UTF-8"),
        (ONE.replace(b'{"agent":', b'{"more":1,"agent":'), "unknown field `more`"),
        (ONE.replace(b'"planned":2', b'"planned":"2"'), "at `$.run.coverage.planned`"),
        (ONE.replace(b'"sometimes",', b'"rarely",'), "Invalid enum value 'rarely'"),
        (ONE.replace(b'"schema_version":1', b'"schema_version":2'),
         "has schema version 2, but this program reads version 1"),
    ],
)  # fmt: skip
def test_another_file_is_refused_by_name(
    content: bytes, message: str, tmp_path: Path
) -> None:
    assert content != ONE
    path = tmp_path / "r_insights.json"
    path.write_bytes(content)

    for read in (read_insights, read_insights_head):
        with pytest.raises(RecordError, match=re.escape(message)) as refused:
            read(path)
        assert str(refused.value).startswith(str(path))
        assert "run `reward-profiling profile` again" in str(refused.value)


def test_no_file_is_the_operators_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        read_insights(tmp_path / "r_insights.json")
