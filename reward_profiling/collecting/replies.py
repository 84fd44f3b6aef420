"""What a reply to `/run` becomes: a record, a failure, or nothing.

Source: `gym-contract.md` §1.2, §1.3, §3.5. A reply that is not strict JSON but can be
read is kept, and what could not be kept is named.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from reward_profiling import wire
from reward_profiling.errors import GymError, GymRejectedError, RecordError
from reward_profiling.numerics.number_column import INT64, UINT64_MAX
from reward_profiling.planning.row_members import usage_of
from reward_profiling.servers.routes import Route
from reward_profiling.texts.error_texts import innermost
from reward_profiling.texts.secret_values import redacted_tree

Redact = Callable[[str], str]
_BODY_CHARACTERS = 2000
_LONGEST_WHOLE_NUMBER = 4000
"""Digits that Python turns into a number without being told to."""
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
    line: bytes
    """The record as a line, without its newline."""
    reward: Any = None
    masked: bool = False
    failure_class: str = ""
    message: str = ""
    """What a failure says."""
    notes: tuple[str, ...] = ()
    """What of the reply could not be kept as it was, one phrase each."""


_MOST_BRACKETS = 1000
"""A reply with fewer cannot be nested deeper than orjson reads."""
_NOT_SPLICED = (
    "failure_class",
    "no_persist",
    "task_index", "rollout_index", "agent_ref", "task_source", "skills_ref",
    "attempt_index", "rollout_id", "environment_server", "result_type",
)  # fmt: skip


class _Response(msgspec.Struct):
    """What a profile will read of `response`; another type is not spliced."""

    usage: dict[str, Any] | None = None


class _Head(msgspec.Struct, rename=wire.gym_name):
    """The members of a reply that decide, and those that stamps would overwrite."""

    reward: Any = UNSET
    response: _Response | None = None
    mask_sample: Any = UNSET
    failure_class: Any = UNSET
    no_persist: Any = UNSET
    task_index: Any = UNSET
    rollout_index: Any = UNSET
    agent_ref: Any = UNSET
    task_source: Any = UNSET
    skills_ref: Any = UNSET
    attempt_index: Any = UNSET
    rollout_id: Any = UNSET
    environment_server: Any = UNSET
    result_type: Any = UNSET


_HEAD = msgspec.json.Decoder(_Head)


def outcome_of_reply(
    body: bytes, stamps: Mapping[str, Any], redact: Redact = str
) -> Outcome:
    """Turn the body of a successful reply into an outcome.

    Most replies are spliced: the stamps go in before the closing brace and the rest
    is kept as the bytes that came. What cannot be spliced is parsed and written anew.
    `redact` takes secrets out of the texts of a failure; a record is left as it is.

    Raises:
        GymRejectedError: the body is not JSON, not an object, or nested too deep.
    """
    spliced = _spliced(body, stamps)
    if spliced is not None:
        return spliced
    return _written(*_parsed_object(body), stamps, body, redact)


def _spliced(body: bytes, stamps: Mapping[str, Any]) -> Outcome | None:
    if not body.startswith(b"{") or not body.endswith(b"}") or b"\n" in body:
        return None
    if b'"' not in body:  # no member to put a comma after
        return None
    try:
        head = _HEAD.decode(body)
        _check_skipped(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if any(getattr(head, name) is not UNSET for name in _NOT_SPLICED):
        return None
    return Outcome(
        Fate.COLLECTED,
        b"%b,%b" % (body[:-1], orjson.dumps(stamps)[1:]),
        reward=None if head.reward is UNSET else head.reward,
        masked=head.mask_sample is not UNSET and bool(head.mask_sample),
    )


def _check_skipped(body: bytes) -> None:
    """Check what msgspec skips over without looking, since others will read it.

    Raises:
        ValueError: some of it is not UTF-8, or is nested too deep to be read again.
    """
    if not body.isascii():
        body.decode()
    if body.count(b"[") + body.count(b"{") > _MOST_BRACKETS:
        orjson.loads(body)


def outcome_of_envelope(
    body: bytes, stamps: Mapping[str, Any], redact: Redact = str
) -> Outcome:
    """Turn the body of a reply to an episode request into an outcome (§3.5).

    A reply that does not look like an episode's is taken as any other.

    Raises:
        GymRejectedError: the body is no JSON object, or its result is unusable.
    """
    reply, notes = _parsed_object(body)
    if _is_envelope(reply):
        reply = _of_envelope(reply, body)
    return _written(reply, notes, stamps, body, redact)


def _is_envelope(reply: Mapping[str, Any]) -> bool:
    names = (wire.ENVELOPE_ID, wire.TASK_ID)
    is_named = all(isinstance(reply.get(name), Mapping) for name in names)
    return is_named and (wire.RESULT in reply or wire.FAILURE in reply)


def _of_envelope(reply: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """Return an episode's record: a failure's where there is one, else its result's."""
    task_id, failure = reply[wire.TASK_ID], reply.get(wire.FAILURE)
    if failure is not None:
        return _of_failure(_object(failure, wire.FAILURE, body), task_id)
    result = _object(reply.get(wire.RESULT), wire.RESULT, body)
    taken = [name for name in result if _is_ours(name)]
    if taken:
        raise _unusable(f"its result uses our own names: {', '.join(taken)}", body)
    return {**result, wire.RESULT_TASK_ID: task_id}


def _of_failure(failure: Mapping[str, Any], task_id: object) -> dict[str, Any]:
    record = {
        wire.RESULT_TASK_ID: task_id,
        wire.FAILURE_CLASS: wire.ENVIRONMENT_FAILED,
        wire.FAILURE_TERMINAL: bool(failure.get("terminal")),
        wire.FAILURE_MESSAGE: failure.get("failure_reason"),
    }
    optional = (
        (wire.FAILURE_STAGE, failure.get("stage")),
        (wire.FAILURE_PARTIAL_RESPONSE, failure.get("partial_response")),
    )
    return record | {name: value for name, value in optional if value is not None}


def _object(value: object, name: str, body: bytes) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _unusable(f"its {name} is not an object", body)
    return value


def _is_ours(name: str) -> bool:
    return name.startswith("_ng_") or name in wire.OBSERVATIONS


def _unusable(why: str, body: bytes) -> GymRejectedError:
    return GymRejectedError(
        f"the reply to the episode cannot be kept: {why}", kind="NotAnEpisode",
        status=200, body=_text(body),
    )  # fmt: skip


def _parsed_object(body: bytes) -> tuple[dict[str, Any], tuple[str, ...]]:
    reply, notes = _parsed(body)
    if not isinstance(reply, dict):
        raise GymRejectedError(
            "the reply is JSON but not an object", kind="NotAnObject", status=200,
            body=_text(body),
        )  # fmt: skip
    return reply, notes


def _written(
    reply: dict[str, Any],
    notes: tuple[str, ...],
    stamps: Mapping[str, Any],
    body: bytes,
    redact: Redact,
) -> Outcome:
    failure_class = {**reply, **stamps}.get(wire.FAILURE_CLASS)
    if failure_class is not None:
        reply = redacted_tree(reply, redact)
    record = {**reply, **stamps}
    fate = Fate.COLLECTED if failure_class is None else Fate.FAILED
    if record.get(wire.NO_PERSIST):
        fate = Fate.NOT_KEPT
    if fate is Fate.COLLECTED and not record.get(wire.MASK_SAMPLE):
        _refuse_unprofiled(record, body)
    message = record.get(wire.FAILURE_MESSAGE) or record.get("error") or ""
    return Outcome(
        fate,
        _line(record, body),
        reward=record.get(wire.REWARD),
        masked=bool(record.get(wire.MASK_SAMPLE)),
        failure_class="" if failure_class is None else str(failure_class),
        message=innermost(str(message)),
        notes=notes,
    )


def _refuse_unprofiled(record: Mapping[str, Any], body: bytes) -> None:
    """Refuse a reply that no profile can read: one would spoil the whole file.

    Raises:
        GymRejectedError: `response` or its usage is not what Gym's agents send.
    """
    try:
        usage_of(record)
    except RecordError as error:
        raise GymRejectedError(
            f"the reply cannot be profiled: its {error}", kind="NotAResponse",
            status=200, body=_text(body),
        ) from error  # fmt: skip


def _line(record: Mapping[str, Any], body: bytes) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError as error:
        raise GymRejectedError(
            f"the reply cannot be written down: {error}", kind="NestedTooDeep",
            status=200, body=_text(body),
        ) from error  # fmt: skip


def outcome_of_error(
    error: GymError, stamps: Mapping[str, Any], redact: Redact = str
) -> Outcome:
    """Turn a request that came to nothing into a failure record (§1.3)."""
    status, message = error.status, redact(str(error))
    unreachable = status is None or status in wire.REQUEST_FAILED_STATUSES
    failure_class = wire.REQUEST_FAILED if unreachable else wire.RUN_ERROR
    failure = {
        wire.FAILURE_CLASS: failure_class,
        wire.FAILURE_TYPE: error.kind,
        wire.FAILURE_MESSAGE: _encodable(message, "", []),
        wire.FAILURE_STATUS: status,
        wire.FAILURE_BODY: _cut(_encodable(redact(error.body or ""), "", [])),
    }
    return Outcome(
        Fate.FAILED,
        orjson.dumps({**failure, **stamps}),
        failure_class=failure_class,
        message=message,
    )


def stamps_of(row: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """Return what a row's record is stamped with, in Gym's order (§1.2)."""
    stamps = {
        wire.TASK_INDEX: row[wire.TASK_INDEX],
        wire.ROLLOUT_INDEX: row[wire.ROLLOUT_INDEX],
    }
    for name in (*_COPIED, *_COPIED_LAST):
        if name in row:
            stamps[name] = row[name]
    if route.server is not None:
        stamps[wire.ENVIRONMENT_SERVER] = route.server
        stamps[wire.RESULT_TYPE] = route.result_type
    return stamps


def _parsed(body: bytes) -> tuple[Any, tuple[str, ...]]:
    try:
        return orjson.loads(body), ()
    except orjson.JSONDecodeError:
        pass  # Python's own parser knows NaN and lone surrogates
    try:
        value = json.loads(
            body.decode("utf-8", "surrogatepass"), parse_int=_whole_number
        )
        notes: list[str] = []
        return _strict(value, "", notes), tuple(notes)
    except (ValueError, RecursionError) as error:
        raise GymRejectedError(
            f"the reply is not JSON: {error}", kind=type(error).__name__, status=200,
            body=_text(body),
        ) from error  # fmt: skip


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) <= _LONGEST_WHOLE_NUMBER else float(digits)


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
    if isinstance(value, int) and not INT64[0] <= value <= UINT64_MAX:
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
