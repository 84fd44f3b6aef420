"""Texts from outside are shown as they are: no image, no link, no heading."""

import pytest

from reward_profiling.reporting.markdown import code, escaped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](http://evil/pixel)", r"\!\[x\](http\://evil/pixel)"),
        ("see www.evil.org or a@b.c", r"see www\.evil.org or a\@b.c"),
        ("<img src=x>", r"\<img src=x\>"),
        ("# big", r"\# big"),
        ("  1. one\n- two", "  1\\. one\n\\- two"),
        ("---", r"--\-"),
        ("-0.5 of 0.500 ± 3", "-0.5 of 0.500 ± 3"),
        ("a | b", r"a \| b"),
        ("`code` *bold* ~~gone~~ _it_", r"\`code\` \*bold\* \~\~gone\~\~ \_it\_"),
        ("&lt;b&gt; R&D", r"\&lt;b\&gt; R&D"),
        (r"C:\path", r"C:\\path"),
        ("math_agent: 0.5 (n=3), 10 %!", "math_agent: 0.5 (n=3), 10 %!"),
        ("\x1b[2J", r"\\x1b\[2J"),
    ],
)
def test_markup_is_shown_as_text(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("agent", "`agent`"),
        ("a`![x](http://evil)`b", "``a`![x](http://evil)`b``"),
        ("`tick", "`` `tick ``"),
        ("two\nlines", "`two lines`"),
        ("", ""),
    ],
)
def test_backticks_do_not_end_code(text: str, shown: str) -> None:
    assert code(text) == shown
