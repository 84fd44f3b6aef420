"""Options of a collection that a variable of the environment joins."""

import pytest

from reward_profiling.collecting.options import CollectOptions


@pytest.mark.parametrize(
    ("variable", "is_allowed"),
    [("1", True), ("true", True), ("On", True), (" yes ", True)]
    + [(off, False) for off in ("0", "false", "", "no", "off", "False")],
)
def test_the_pairing_flag_goes_by_its_value(variable: str, *, is_allowed: bool) -> None:
    assert CollectOptions().allows_any_pairing(variable) is is_allowed
    assert CollectOptions(allow_unsupported_pairing=True).allows_any_pairing(variable)
