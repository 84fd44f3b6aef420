"""What a reply to `/run` becomes: a record, a failure, or nothing.

Source: `gym-contract.md` §1.2, §1.3, §3.5. A reply that is not strict JSON but can be
read is kept, and what could not be kept is named.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from tasks.core import wire
from tasks.core.errors import GymError, GymRejectedError
from tasks.core.routing import Route

_BODY_CHARACTERS = 2000
_COPIED = (wire.AGENT_REF, wire.TASK_SOURCE, wire.SKILLS_REF)
_COPIED_LAST = (wire.ATTEMPT_INDEX, wire.ROLLOUT_ID)


class Fate(Enum):
    """Where a finished rollout is written."""

    COLLECTED = "collected"
    FAILED = "failed"
    NOT_KEPT = "not kept"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished rollout: its record, and where it goes."""

    fate: Fate
    record: dict[str, Any]
    notes: tuple[str, ...] = ()
    """What of the reply could not be kept as it was, one phrase each."""


def outcome_of_reply(body: bytes, row: Mapping[str, Any], route: Route) -> Outcome:
    """Turn the body of a successful reply into an outcome.

    Raises:
        GymRejectedError: the body is not JSON, or not an object.
    """
    reply, notes = _parsed(body)
    if not isinstance(reply, dict):
        raise GymRejectedError(
            "the reply is JSON but not an object", kind="NotAnObject", status=200,
            body=_text(body),
        )  # fmt: skip
    record = stamped(reply, row, route)
    if record.get(wire.NO_PERSIST):
        return Outcome(Fate.NOT_KEPT, record, notes)
    if record.get(wire.FAILURE_CLASS) is not None:
        return Outcome(Fate.FAILED, record, notes)
    return Outcome(Fate.COLLECTED, record, notes)


def outcome_of_error(error: GymError, row: Mapping[str, Any], route: Route) -> Outcome:
    """Turn a request that came to nothing into a failure record (§1.3)."""
    status = error.status
    unreachable = status is None or status in wire.REQUEST_FAILED_STATUSES
    failure = {
        wire.FAILURE_CLASS: wire.REQUEST_FAILED if unreachable else wire.RUN_ERROR,
        wire.FAILURE_TYPE: error.kind,
        wire.FAILURE_MESSAGE: str(error),
        wire.FAILURE_STATUS: status,
        wire.FAILURE_BODY: _cut(error.body),
    }
    return Outcome(Fate.FAILED, stamped(failure, row, route))


def stamped(
    reply: Mapping[str, Any], row: Mapping[str, Any], route: Route
) -> dict[str, Any]:
    """Return the reply with the row's stamps laid over it, in Gym's order."""
    record = dict(reply)
    record[wire.TASK_INDEX] = row[wire.TASK_INDEX]
    record[wire.ROLLOUT_INDEX] = row[wire.ROLLOUT_INDEX]
    for name in (*_COPIED, *_COPIED_LAST):
        if name in row:
            record[name] = row[name]
    if route.server is not None:
        record[wire.ENVIRONMENT_SERVER] = route.server
        record[wire.RESULT_TYPE] = route.result_type
    return record


def _parsed(body: bytes) -> tuple[Any, tuple[str, ...]]:
    try:
        return orjson.loads(body), ()
    except orjson.JSONDecodeError:
        pass  # Python's own parser knows NaN and lone surrogates
    try:
        value = json.loads(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise GymRejectedError(
            f"the reply is not JSON: {error}", kind=type(error).__name__, status=200,
            body=_text(body),
        ) from error  # fmt: skip
    notes: list[str] = []
    return _strict(value, "", notes), tuple(notes)


def _strict(value: Any, path: str, notes: list[str]) -> Any:  # noqa: ANN401
    """Replace what strict JSON cannot hold, and note where."""
    if isinstance(value, float) and not math.isfinite(value):
        notes.append(f"{path} was {value}, kept as null")
        return None
    if isinstance(value, str):
        return _encodable(value, path, notes)
    if isinstance(value, list):
        return [_strict(v, f"{path}[{i}]", notes) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {
            _encodable(name, path, notes): _strict(
                inner, f"{path}.{name}" if path else name, notes
            )
            for name, inner in value.items()
        }
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return _narrowed(value, path, notes)
    return value


def _narrowed(value: int, path: str, notes: list[str]) -> float | None:
    """Give a whole number beyond 64 bits as the float that Gym makes of it."""
    try:
        narrowed = float(value)
    except OverflowError:
        notes.append(f"{path} was a whole number beyond any float, kept as null")
        return None
    notes.append(f"{path} was {value}, kept as a float")
    return narrowed


def _encodable(text: str, path: str, notes: list[str]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        notes.append(
            f"{path} held half a surrogate pair, kept as \N{REPLACEMENT CHARACTER}"
        )
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _cut(body: str | None) -> str | None:
    if not body:
        return None
    shown = body[:_BODY_CHARACTERS]
    return shown + "…" if len(body.encode()) > _BODY_CHARACTERS else shown
