import orjson
import pytest

from reward_profiling.choosing.selection import SelectOptions
from reward_profiling.errors import ConfigError


def options(**given: object) -> SelectOptions:
    return SelectOptions.made(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_pass_rate": 0.8, "max_pass_rate": 0.2}, "no pass rate lies between"),
        ({"min_pass_rate": 1, "open_min": True}, "no pass rate lies between"),
        ({"min_pass_rate": "often"}, "is no rate"),
        ({"max_pass_rate": 1.5}, "is not between 0 and 1"),
        ({"max_pass_rate": "1/0"}, "is no rate"),
        ({"annotate": "_ng_rate"}, "are Gym's own"),
        ({"annotate": "responses_create_params"}, "is a part of the task itself"),
        ({"min_rollouts": 0}, "min_rollouts must be at least 1"),
    ],
)
def test_senseless_selections_are_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        options(**given)


def test_selecting_everything_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing says what to keep"):
        SelectOptions().require_rule()


def encode(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
