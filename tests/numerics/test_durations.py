import pytest

from reward_profiling.numerics.durations import seconds_from


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("4h", 14_400),
        ("2d", 172_800), (" 10 m ", 600), ("1:30", 90), ("4:00:00", 14_400),
        ("1-00:00:00", 86_400), ("0:05", 5),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_people_write(text: str, seconds: float) -> None:
    assert seconds_from(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "1:99", "-3s", "1h30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write 90s, 15m, 4h or 4:00:00"):
        seconds_from(text)


@pytest.mark.parametrize("value", [3, 0.5, None, True])
def test_what_is_no_text_is_left_as_it_is(value: object) -> None:
    assert seconds_from(value) is value
