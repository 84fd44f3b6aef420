"""Imports of what stays until the process ends."""

import gc

import pytest

from reward_profiling.cli.importing import to_stay


def test_nothing_is_collected_meanwhile_and_what_was_there_is_left_out_later() -> None:
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


def test_an_import_that_fails_leaves_collections_on() -> None:
    with pytest.raises(ModuleNotFoundError), to_stay():
        import no_such_module  # type: ignore[import-not-found] # noqa: F401, PLC0415

    assert gc.isenabled()
    gc.unfreeze()
