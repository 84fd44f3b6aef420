"""`<stem>_insights.json`: writes it task by task; reads all of it, or only its head.

The file is one JSON object (`document.Insights`). Its first line holds everything
except the tasks, which follow one per line: the head of a long file is read quickly.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import msgspec
import orjson

from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import open_to_read, replace_file
from reward_profiling.insights.document import SCHEMA_VERSION, Insights
from reward_profiling.insights.task_insights import TaskInsight

_TASKS = b'"tasks":['


def replace_insights(path: Path, head: Insights, tasks: Iterable[TaskInsight]) -> None:
    """Write the complete file or nothing; `tasks` replaces the head's own tasks."""

    def write(file: IO[bytes]) -> None:
        named = msgspec.structs.asdict(head)
        del named["tasks"]
        file.write(_json(named).removesuffix(b"}") + b",\n" + _TASKS)
        between = b"\n"
        for task in tasks:
            file.write(between + _json(task))
            between = b",\n"
        file.write(b"\n]}\n")

    replace_file(path, write)


def _json(value: object) -> bytes:
    # Not by msgspec, which writes whole floats from 2^53 on as whole numbers.
    return orjson.dumps(value, default=msgspec.structs.asdict)


def read_insights(path: Path) -> Insights:
    """Read the whole file.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: it is not one, or of another version of the schema.
    """
    with open_to_read(path) as file:
        return _parsed(path, file.read())


def read_insights_head(path: Path) -> Insights:
    """Read everything except the tasks, in the same time for any number of tasks.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: it is not one, or of another version of the schema.
    """
    with open_to_read(path) as file:
        head = file.readline()
        mark = file.read(len(_TASKS))
        # A file that another program has formatted has no such head: read all of it.
        if mark == _TASKS:
            return _parsed(path, head.rstrip(b",\n") + b"," + _TASKS + b"]}")
        whole = _parsed(path, head + mark + file.read())
        return msgspec.structs.replace(whole, tasks=())


def _parsed(path: Path, text: bytes) -> Insights:
    try:
        insights = msgspec.json.decode(text, type=Insights)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(
            f"{path} does not hold insights of schema version {SCHEMA_VERSION}"
            f" ({error});"
            " run `reward-profiling profile` again"
        ) from error
    if insights.schema_version != SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {insights.schema_version}, but this program"
            f" reads version {SCHEMA_VERSION}; run `reward-profiling profile` again"
        )
    return insights
