"""A dataset folder's columns: which ones a table can hold, and its card.

`datasets.load_dataset` reads JSON lines into Arrow tables, in which a column has one
type. A column that is text in one row and a list in another, or an object whose members
differ from row to row, is written as JSON text and named in the card.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from reward_profiling.choosing.selection import SelectionSummary
from reward_profiling.files.json_lines import (
    parse_object,
    read_lines,
    replace_bytes,
    replace_rows,
)
from reward_profiling.numerics.figures import percent
from reward_profiling.numerics.number_column import INT64

Shape = str | tuple[Any, ...]
"""The type of a value; objects and lists by the types inside."""

_ANY: Shape = "null"
_MIXED: Shape = "mixed"


def shape_of(value: object) -> Shape:
    """Return the type of a value as a table sees it; null fits every type."""
    if isinstance(value, Mapping):
        return ("object", *((n, shape_of(v)) for n, v in sorted(value.items())))
    if isinstance(value, list):
        inner: Shape = _ANY
        for one in value:
            inner = joined(inner, shape_of(one))
        return _MIXED if inner == _MIXED else ("list", inner)
    if value is None:
        return _ANY
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if INT64[0] <= value <= INT64[1] else _MIXED
    return "float" if isinstance(value, float) else "text"


def joined(one: Shape, other: Shape) -> Shape:
    """Return the type that holds both, or "mixed" where none does."""
    if other in {one, _ANY}:
        return one
    if one == _ANY:
        return other
    if {one, other} == {"int", "float"}:
        return "float"
    if isinstance(one, tuple) and isinstance(other, tuple):
        return _joined_nested(one, other)
    return _MIXED


def _joined_nested(one: tuple[Any, ...], other: tuple[Any, ...]) -> Shape:
    if one[0] != other[0]:
        return _MIXED
    if one[0] == "list":
        inner = joined(one[1], other[1])
        return _MIXED if inner == _MIXED else ("list", inner)
    mine, theirs = dict(one[1:]), dict(other[1:])
    if mine.keys() != theirs.keys():
        return _MIXED
    members = [(name, joined(mine[name], theirs[name])) for name in mine]
    if any(shape == _MIXED for _, shape in members):
        return _MIXED
    return ("object", *members)


class ColumnTypes:
    """Learns the types of columns from rows, then writes rows that keep to them."""

    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}

    def see(self, row: Mapping[str, Any]) -> None:
        """Take a row's types."""
        for name, value in row.items():
            known = self._shapes.get(name, _ANY)
            self._shapes[name] = joined(known, shape_of(value))

    @property
    def as_text(self) -> list[str]:
        """Columns that are written as JSON text, by name."""
        return sorted(n for n, shape in self._shapes.items() if _is_mixed(shape))

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with every column, in order of first appearance."""
        texts = set(self.as_text)
        return {
            name: _text(row.get(name)) if name in texts else row.get(name)
            for name in self._shapes
        }


def _is_mixed(shape: Shape) -> bool:
    # An object without members has no table type either.
    return shape in {_MIXED, ("object",)}


def _text(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def card(title: str, lines: Iterable[str], as_text: Iterable[str]) -> str:
    """Return the folder's README.md: `lines` about it, and how it is loaded.

    `as_text` are the columns that are held as JSON text.
    """
    texts = list(as_text)
    body = "\n".join(f"- {line}" for line in lines)
    told = ""
    if texts:
        names = ", ".join(f"`{name}`" for name in texts)
        told = (
            f"\nColumns held as JSON text, since their type differs from row to row:"
            f" {names}.\n"
        )
    return (
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n"
        "    path: data/train.jsonl\ntags:\n- nemo-gym\n---\n\n"
        f"# {title}\n\n{body}\n{told}\n"
        "```python\nfrom datasets import load_dataset\n\n"
        'rows = load_dataset("FOLDER", split="train")  # in their order\n```\n'
    )


def dataset_files(folder: Path) -> tuple[Path, Path]:
    """Return the files of a dataset folder: the rows, and the card."""
    return folder / "data" / "train.jsonl", folder / "README.md"


def write_dataset(folder: Path, kept: Path, summary: SelectionSummary) -> None:
    """Write the kept rows as a folder that `datasets.load_dataset` takes.

    `kept` is the file of kept rows, already written.

    Raises:
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    types = ColumnTypes()
    for line in read_lines(kept):
        types.see(parse_object(line.text))
    data, readme = dataset_files(folder)
    replace_rows(data, (types.row(parse_object(r.text)) for r in read_lines(kept)))
    text = card(folder.resolve().name, _card_lines(summary), types.as_text)
    replace_bytes(readme, text.encode())


def _card_lines(summary: SelectionSummary) -> Iterator[str]:
    yield (
        f"{summary.kept} of {summary.num_rows} task rows, selected by pass rate in"
        f" {summary.band}"
    )
    if summary.mean_pass_rate is not None:
        mean = percent(summary.mean_pass_rate)
        yield f"mean pass rate {mean} (n={summary.kept} rows)"
    yield f"{summary.rejected} rows rejected, {summary.undetermined} undetermined"
    for reason, count in summary.reasons.items():
        yield f"{count} rows: {reason}"
