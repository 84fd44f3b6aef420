"""Values read what they are given, and refuse what does not fit in the same words."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import TypeAdapter, ValidationError

from reward_profiling.errors import ConfigError, OptionsError
from reward_profiling.fitting import ReadAs, matching_text
from reward_profiling.values import Checked, JsonObject, Name, Seconds


def _even(given: object) -> object:
    if given == "odd":
        raise ValueError("'odd' is not even")
    return given


@dataclass(frozen=True, kw_only=True, slots=True)
class Part(Checked):
    """A part of a whole."""

    size: Annotated[int, Ge(1)] = 1
    """How large."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole(Checked):
    """A whole."""

    count: Annotated[int, Ge(1), Le(9)] = 1
    """How many."""

    share: Annotated[float, Gt(0), Lt(1)] | None = None
    """How much."""

    several: Annotated[int, Ge(1)] | dict[str, Annotated[int, Ge(1)]] | None = 1
    """One number, or one by name."""

    wait: Seconds = 1.0
    """How long."""

    name: Name | None = None
    """What it is called."""

    kind: Literal["a", "b", "c"] = "a"
    """Of which kind."""

    is_open: bool = False
    """Whether it is."""

    texts: tuple[str, ...] = ()
    """Texts."""

    lists: dict[str, list[str]] = field(default_factory=dict)
    """Lists by name."""

    members: JsonObject = field(default_factory=dict)
    """Anything."""

    place: Path = Path()
    """Where."""

    even: Annotated[str, ReadAs(_even)] = ""
    """What is not odd."""

    low: Annotated[str, matching_text("^[a-z]+$", "low letters")] = "a"
    """What has low letters."""

    part: Part = field(default_factory=Part)
    """A part."""

    def check(self) -> None:
        """Refuse a count that is its part's size, but for one."""
        if self.count == self.part.size > 1:
            raise ConfigError("count and size are the same")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"count": "7"}, 7),
        ({"count": 7.0}, 7),
        ({"share": "0.25"}, 0.25),
        ({"share": None}, None),
        ({"several": "2"}, 2),
        ({"several": '{"a": 2}'}, {"a": 2}),
        ({"several": {"a": "2"}}, {"a": 2}),
        ({"wait": "1.5m"}, 90.0),
        ({"name": "{x}"}, "{x}"),
        ({"texts": ["x", "y"]}, ("x", "y")),
        ({"lists": '{"a": ["b"]}'}, {"a": ["b"]}),
        ({"members": ' {"a": [1, 2.5, null, true]}'}, {"a": [1, 2.5, None, True]}),
        ({"place": "a/b"}, Path("a/b")),
        ({"part": {"size": "3"}}, Part(size=3)),
    ],
)
def test_text_and_json_are_read(given: dict[str, Any], expected: object) -> None:
    (name,) = given

    found = getattr(Whole(**given), name)

    assert (found, type(found)) == (expected, type(expected))
    assert TypeAdapter(Whole).validate_python(given) == Whole(**given)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"count": 0}, "count must be at least 1 (got 0)"),
    ({"count": "10"}, "count must be at most 9 (got 10)"),
    ({"count": 1.5}, "count must be a whole number"),
    ({"count": True}, "count must be a whole number"),
    ({"count": "many"}, "count must be a whole number"),
    ({"share": 0}, "share must be more than 0 (got 0.0)"),
    ({"share": 1}, "share must be less than 1 (got 1.0)"),
    ({"share": "nan"}, "share must be a finite number"),
    ({"several": {"a": 0}}, "several['a'] must be at least 1 (got 0)"),
    ({"several": "{"}, "several must be a JSON object"),
    ({"wait": "soon"}, "wait: 'soon' is not a duration; write 90s, 15m, 4h or 4:00:00"),
    ({"name": ""}, "name must not be empty"),
    ({"name": 3}, "name must be text"),
    ({"kind": "d"}, "kind must be 'a', 'b' or 'c'"),
    ({"is_open": "yes"}, "is_open must be true or false"),
    ({"texts": "x"}, "texts must be a list"),
    ({"texts": ["x", 1]}, "texts[1] must be text"),
    ({"lists": {"a": "b"}}, "lists['a'] must be a list"),
    ({"members": [1]}, "members must be a JSON object"),
    ({"place": 1}, "place must be a path"),
    ({"even": "odd"}, "even: 'odd' is not even"),
    ({"low": "UP"}, "low must be low letters"),
    ({"part": {"size": 0}}, "size must be at least 1 (got 0)"),
    ({"part": {"sise": 1}}, "sise is not an option"),
    ({"part": 3}, "part must be a JSON object"),
    ({"count": 2, "part": {"size": 2}}, "count and size are the same"),
]


@pytest.mark.parametrize(("given", "said"), FAULTS)
def test_library_and_form_refuse_alike(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Whole(**given)
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(Whole).validate_python(given)

    (fault,) = refused.value.errors()
    assert (str(raised.value), fault["msg"]) == (said, f"Value error, {said}")


def test_all_faults_are_told_without_values() -> None:
    with pytest.raises(OptionsError) as raised:
        Whole(count="sk-secret", name="", kind="sk-secret")  # type: ignore[arg-type]

    assert str(raised.value).splitlines() == [
        "count must be a whole number",
        "name must not be empty",
        "kind must be 'a', 'b' or 'c'",
    ]
    assert [fault.given for fault in raised.value.faults] == [
        "sk-secret", None, "sk-secret",
    ]  # fmt: skip
    assert "sk-secret" not in repr(raised.value)


def test_object_members_are_known_and_whole() -> None:
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Needy(Checked):
        """A value without a default."""

        needed: int
        """What is needed."""

    with pytest.raises(
        OptionsError, match=r"^neded is not an option\nneeded is missing$"
    ):
        Needy.made({"neded": 1})
    assert Needy.made({"needed": "1"}).needed == 1


def test_the_form_knows_titles_and_bounds() -> None:
    described = TypeAdapter(Whole).json_schema()

    assert described["additionalProperties"] is False
    fields = described["properties"]
    assert fields["count"] == {
        "default": 1, "description": "How many.", "maximum": 9, "minimum": 1,
        "title": "Count", "type": "integer",
    }  # fmt: skip
    assert fields["is_open"]["title"] == "Is open"
    assert fields["low"]["pattern"] == "^[a-z]+$"
    assert fields["wait"]["exclusiveMinimum"] == 0
