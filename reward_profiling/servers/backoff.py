"""How long to wait before asking a struggling server again.

Exponential growth with full jitter (Brooker, "Exponential Backoff And Jitter", 2015):
waits spread over the whole interval, so that clients do not return together.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BASE_SECONDS = 0.5
CAP_SECONDS = 60.0
RETRY_AFTER_CAP_SECONDS = 300.0


def backoff_seconds(attempt: int, draw: float) -> float:
    """Return the wait before retry number `attempt` (1-based).

    `draw` is uniform in 0..1; the wait is uniform between 0 and the capped
    exponential, so that its mean doubles from retry to retry.
    """
    return draw * min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(attempt, 32))


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Read a Retry-After header, in seconds or as an HTTP date, capped at 300 s.

    A header that says nothing usable gives None; a date in the past gives 0.0.
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), RETRY_AFTER_CAP_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, LookupError, TypeError, OverflowError):
        return None  # the standard library's parser raises any of them
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    wait = (moment - now).total_seconds()
    return min(max(wait, 0.0), RETRY_AFTER_CAP_SECONDS)
