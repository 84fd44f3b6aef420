from pathlib import Path

import orjson
import pytest

from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.insights.derivation import derive_insights
from reward_profiling.insights.insights_file import (
    read_insights,
    read_insights_head,
    replace_insights,
)
from reward_profiling.insights.schema import Insights
from reward_profiling.profiling.options import ProfileOptions
from tests.insights.tables import table_of


def made(num_tasks: int) -> Insights:
    return derive_insights(table_of([[0.0, 1.0]] * num_tasks), ProfileOptions())


@pytest.mark.parametrize("num_tasks", [0, 1, 3])
def test_what_is_written_is_read_in_whole_and_without_tasks(
    num_tasks: int, tmp_path: Path
) -> None:
    path, insights = tmp_path / "r_insights.json", made(num_tasks)

    replace_insights(path, insights, insights.tasks)

    assert read_insights(path) == insights
    assert read_insights_head(path) == insights.model_copy(update={"tasks": ()})
    assert orjson.loads(path.read_bytes())["schema_version"] == 1


def test_a_file_that_was_laid_out_by_another_hand_is_read_too(tmp_path: Path) -> None:
    path, insights = tmp_path / "r_insights.json", made(2)
    path.write_text(insights.model_dump_json(indent=2))

    assert read_insights(path) == insights
    assert read_insights_head(path).tasks == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "holds no insights of schema version 1"),
        (b"not json", "holds no insights of schema version 1"),
        (made(1).model_copy(update={"schema_version": 2}).model_dump_json().encode(),
         "is of schema version 2, and this version reads 1"),
    ],
)  # fmt: skip
def test_another_file_is_refused_with_its_name_and_the_remedy(
    content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "r_insights.json"
    path.write_bytes(content)

    for read in (read_insights, read_insights_head):
        with pytest.raises(RecordError, match=f"r_insights.json {message}"):
            read(path)


def test_no_file_is_a_fault_of_the_operator(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        read_insights(tmp_path / "r_insights.json")
