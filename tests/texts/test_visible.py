"""No character of a text from outside does anything in a terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.texts.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
        ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
        ("50 %\r100 %", r"50 %\x0d100 %"),
        ("\x9b2J", r"\x9b2J"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("Zürich 北京 🙂", "Zürich 北京 🙂"),
    ],
)
def test_commands_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_unseen_is_left_and_the_rest_stays(text: str) -> None:
    shown = visible(text)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert visible(shown) == shown
    if text.isprintable():
        assert shown == text
