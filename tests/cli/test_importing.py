"""Imports of what stays until the process ends."""

import gc

import pytest

from reward_profiling.cli.importing import to_stay


def test_imports_escape_garbage_collection() -> None:
    kept: list[object] = []
    kept.append(kept)

    with to_stay():
        assert not gc.isenabled()

    try:
        assert gc.isenabled()
        assert not any(one is kept for one in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(one is kept for one in gc.get_objects())


def test_a_failed_import_keeps_collection_on() -> None:
    with pytest.raises(ModuleNotFoundError), to_stay():
        import no_such_module  # type: ignore[import-not-found] # noqa: F401, PLC0415

    assert gc.isenabled()
    gc.unfreeze()
