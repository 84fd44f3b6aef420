"""Task and rollout indices, in columns: whole numbers, or text."""

from collections.abc import Sequence
from struct import error as StructError  # noqa: N812 - it is a class
from typing import TYPE_CHECKING, Any

from reward_profiling.numerics.number_column import (
    packed,
)

if TYPE_CHECKING:
    from array import array

Index = int | str


def joined_index(column: "array[int] | list[Index]", found: Sequence[Index]) -> Any:  # noqa: ANN401
    """Append indices to a column, which is a list as soon as one of them is text."""
    if isinstance(column, list):
        column.extend(found)
        return column
    try:
        column.frombytes(packed("q", found))
    except StructError:  # one of them is text, or has more than 64 bits
        return [*column, *found]
    return column
