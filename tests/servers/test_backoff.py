from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reward_profiling.servers.backoff import (
    BASE_SECONDS,
    CAP_SECONDS,
    backoff_seconds,
    retry_after_seconds,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
draws = st.floats(0, 1)


@given(st.integers(1, 10**9), draws)
def test_a_wait_is_bounded(attempt: int, draw: float) -> None:
    assert 0 <= backoff_seconds(attempt, draw) <= CAP_SECONDS


@given(st.integers(1, 100), draws, draws)
def test_waits_are_spread_evenly(attempt: int, one: float, other: float) -> None:
    limit = backoff_seconds(attempt, 1)

    assert backoff_seconds(attempt, 0) == 0
    assert backoff_seconds(attempt, one) == pytest.approx(one * limit)
    if one <= other:
        assert backoff_seconds(attempt, one) <= backoff_seconds(attempt, other)


def test_the_limit_doubles_until_the_cap() -> None:
    limits = [backoff_seconds(attempt, 1) for attempt in range(1, 9)]

    assert limits == [1, 2, 4, 8, 16, 32, CAP_SECONDS, CAP_SECONDS]
    assert limits[0] == 2 * BASE_SECONDS


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("0", 0.0),
        (" 17 ", 17.0),
        ("300", 300.0),
        ("9" * 5000, 300.0),
        ("\u0661\u0667", None),
        ("Sun, 01 Mar 2026 12:00:10 GMT", 10.0),
        ("Sunday, 01-Mar-26 12:00:10 GMT", 10.0),
        ("Sun Mar  1 12:00:10 2026", 10.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2037 12:00:00 GMT", 300.0),
        ("Sun, 01 Mar 2026 13:00:10 +0100", 10.0),
        ("Sun, 31 Feb 2026 12:00:10 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(
    header: str | None, seconds: float | None
) -> None:
    assert retry_after_seconds(header, NOW) == seconds


@given(st.integers(0, 300), st.integers(-14, 14))
def test_a_date_is_read_in_any_zone(seconds: int, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    header = format_datetime((NOW + timedelta(seconds=seconds)).astimezone(zone))

    assert retry_after_seconds(header, NOW) == seconds


@given(st.text() | st.from_regex(r"\A[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ [\d:+-]+\Z"))
@example("Mon, 1 Jan 99999999999999999999 00:00:00 GMT")
@example("Mon, 1 Jan 2026 00:00:00 +99999999999")
@example("Mon, 1 Jan 0001 00:00:00 +2300")
@example(",")
@example("0 0 0 0 0")
def test_no_header_breaks_the_bounds(header: str) -> None:
    seconds = retry_after_seconds(header, NOW)

    assert seconds is None or 0 <= seconds <= 300
