"""Reads numbers from Arrow's memory in one step.

The library itself makes an object of each number, which takes far longer than all the
rest of the reading. Source: Apache Arrow, "The Arrow C data interface", and "PyCapsule
interface".
"""

from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int64,
    c_void_p,
    py_object,
    pythonapi,
    string_at,
)
from typing import TYPE_CHECKING, Any

from arro3.core import Array

if TYPE_CHECKING:
    from array import array

_NUMBER_BYTES = 8


class _ArrowArray(Structure):
    """How an array lies in memory; the interface's members after these are not read."""

    _fields_ = (
        ("length", c_int64),
        ("null_count", c_int64),
        ("offset", c_int64),
        ("n_buffers", c_int64),
        ("n_children", c_int64),
        ("buffers", POINTER(c_void_p)),
    )


_pointer = pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = (py_object, c_char_p)


def append_numbers(column: "array[Any]", found: Array) -> None:
    """Append numbers of 64 bits; for a null value, any number may be appended."""
    _, capsule = found.__arrow_c_array__()  # which keeps the memory
    lying = _ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    start = lying.buffers[1] + _NUMBER_BYTES * lying.offset  # after those of nothing
    column.frombytes(string_at(start, _NUMBER_BYTES * lying.length))
