"""Imports of what stays until the process ends."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def to_stay() -> Iterator[None]:
    """Import in the block without collections, and keep later ones from looking again.

    A run imports some thousand modules, and each full collection meanwhile visits all
    that came before: a tenth of the time, and hardly anything is found.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
