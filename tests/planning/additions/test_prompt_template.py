"""Prompt templates: filled as Python fills them, and never further than that."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import ConfigError, RecordError
from reward_profiling.planning.additions.prompt_template import PromptTemplate

ROW: dict[str, Any] = {
    "q": "why?", "n": 1.5, "none": None, "yes": True, "list": [1, 2], "wide": 7,
    "map": {"k": "v", "1": "one", "deep": [{"x": "y"}]}, "two words": "ok",
    "braces": "{q} {{}}", "q.dot": "never",
}  # fmt: skip

plain = st.text(max_size=12).map(lambda t: t.replace("{", "{{").replace("}", "}}"))
fields = st.sampled_from(["q", "n", "none", "yes", "list", "map", "two words"])
places = st.tuples(fields, st.sampled_from(["", "!r", "!s", "!a"])).map(
    lambda pair: f"{{{pair[0]}{pair[1]}}}"
)
templates = st.lists(plain | places, max_size=6).map("".join)


def filled(template: str, row: dict[str, Any] = ROW) -> str:
    (message,) = PromptTemplate(user=template).messages(row)
    assert message["role"] == "user"
    return message["content"]


def refusal(template: str) -> str:
    with pytest.raises(ConfigError) as raised:
        PromptTemplate(user=template)
    return str(raised.value)


@given(templates)
def test_a_template_is_filled_as_in_python(template: str) -> None:
    assert filled(template) == template.format_map(ROW)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Q: {q} {{lit}}", "Q: why? {lit}"),
        ("{braces}", "{q} {{}}"),
        ("{n:.2f}|{q:>6}|{q:{wide}}|", "1.50|  why?|why?   |"),
        ("{list[1]} {map[k]} {q[0]}", "2 v w"),
        ("{map[1]}", "one"),
        ("{map[deep][0][x]}", "y"),
        ("no place", "no place"),
        ("", ""),
    ],
)
def test_template_becomes(template: str, expected: str) -> None:
    assert filled(template) == expected


def test_a_system_message_comes_first_if_any() -> None:
    both = PromptTemplate(user="{q}", system="").messages(ROW)

    assert both == [
        {"role": "system", "content": ""},
        {"role": "user", "content": "why?"},
    ]
    assert len(PromptTemplate(user="{q}").messages(ROW)) == 1


@pytest.mark.parametrize(
    "place",
    ["q.upper", "q.__class__", "map.items", "list[0].real", "q.__class__.__mro__[1]",
     "map[k].__init__.__globals__", "q:{n.__class__}", "q!r:{q.x}"],
)  # fmt: skip
def test_an_attribute_is_refused_at_once(place: str) -> None:
    assert "reads an attribute" in refusal(f"{{{place}}}")


@pytest.mark.parametrize("place", ["", "0", "[q]", ".q", "!r", "q:{}"])
def test_a_place_without_a_name_is_refused(place: str) -> None:
    assert "names no field" in refusal(f"{{{place}}}")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{q", "expected '}'"),
        ("q}", "Single '}'"),
        ("{q!x}", "{q!x} has an unknown conversion"),
        ("{q[}", "expected '}'"),
    ],
)
def test_a_malformed_template_is_refused(template: str, said: str) -> None:
    assert said in refusal(template)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{x}", "has no field 'x' for the prompt template; it has q, n, none"),
        ("{ q }", "has no field ' q '"),
        ("{list[9]}", "has no {list[9]} for the prompt template: no [9]"),
        ("{list[-1]}", "no [-1]"),
        ("{map[__class__]}", "no [__class__]"),
        ("{q[__class__]}", "no [__class__]"),
        ("{n[0]}", "no [0]"),
        ("{none:>5}", "cannot fill the prompt template"),
        ("{n:zz}", "cannot fill the prompt template"),
        ("{q:>99999999999}", "width or precision of '>99999999999'"),
        ("{q:>{big}}", "width or precision of '>99999'"),
    ],
)
def test_an_unfit_row_is_told_what_it_lacks(template: str, said: str) -> None:
    with pytest.raises(RecordError) as raised:
        filled(template, {**ROW, "big": 99999})

    assert said in str(raised.value)
