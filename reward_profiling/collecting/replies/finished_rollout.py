"""A rollout that has come to its end: its line, and where that is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.collecting.replies.strict_json import encodable
from reward_profiling.errors import ContextLengthError, GymError
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.servers.routes import Route

Redact = Callable[[str], str]
"""Takes secrets out of a text."""
_BODY_CHARACTERS = 2000


class Destination(Enum):
    """Where a finished rollout is written."""

    RECORDS = "records"
    FAILURES = "failures"
    NOWHERE = "nowhere"
    """The server says that it is not to be kept: it stays owed."""


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """What a rollout came to."""

    destination: Destination
    line: bytes
    """The record as a line, without its newline."""
    reward: Any = None
    masked: bool = False
    failure_class: str = ""
    message: str = ""
    """What a failure says."""
    notes: tuple[str, ...] = ()
    """What of the reply could not be kept as it was, one phrase each."""


def record_stamps(planned: PlannedRollout, route: Route) -> dict[str, Any]:
    """Return what a rollout's record is stamped with, in Gym's order (§1.2)."""
    stamps = dict(planned.stamps)
    if route.server is not None:
        stamps[wire.ENVIRONMENT_SERVER] = route.server
        stamps[wire.RESULT_TYPE] = route.result_type
    return stamps


def finished_by_error(
    error: GymError, stamps: Mapping[str, Any], redact: Redact = str
) -> FinishedRollout:
    """Turn a request that came to nothing into a failure record (§1.3)."""
    status, message = error.status, redact(str(error))
    failure_class = _class_of(error)
    failure = {
        wire.FAILURE_CLASS: failure_class,
        wire.FAILURE_TYPE: error.kind,
        wire.FAILURE_MESSAGE: encodable(message, "", []),
        wire.FAILURE_STATUS: status,
        wire.FAILURE_BODY: _cut(encodable(redact(error.body or ""), "", [])),
    }
    return FinishedRollout(
        Destination.FAILURES,
        orjson.dumps({**failure, **stamps}),
        failure_class=failure_class,
        message=message,
    )


def _class_of(error: GymError) -> str:
    if isinstance(error, ContextLengthError):
        return wire.CONTEXT_LENGTH
    unreachable = error.status is None or error.status in wire.REQUEST_FAILED_STATUSES
    return wire.REQUEST_FAILED if unreachable else wire.RUN_ERROR


def _cut(body: str | None) -> str | None:
    if not body:
        return None
    shown = body[:_BODY_CHARACTERS]
    return shown + "…" if len(body.encode()) > _BODY_CHARACTERS else shown
