"""Turns a reply to `/run` into a finished rollout, by splicing bytes if possible.

Source: `gym-contract.md` §1.2, §1.3, §3.5.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import orjson
from msgspec import UNSET

from reward_profiling import wire
from reward_profiling.collecting.on_disk.failures import words_of
from reward_profiling.collecting.replies.envelope import is_envelope, record_of_envelope
from reward_profiling.collecting.replies.finished_rollout import (
    Destination,
    FinishedRollout,
    Redact,
)
from reward_profiling.collecting.replies.strict_json import parsed_object, text_of
from reward_profiling.errors import GymRejectedError, RecordError
from reward_profiling.planning.row_members import usage_of
from reward_profiling.texts.error_texts import innermost
from reward_profiling.texts.secret_values import redacted_tree

_HEAD_NAMES = {
    "failure_class": wire.FAILURE_CLASS,
    "no_persist": wire.NO_PERSIST,
    "task_index": wire.TASK_INDEX,
    "rollout_index": wire.ROLLOUT_INDEX,
    "attempt_index": wire.ATTEMPT_INDEX,
    "rollout_id": wire.ROLLOUT_ID,
    "environment_server": wire.ENVIRONMENT_SERVER,
    "result_type": wire.RESULT_TYPE,
}
_SHOWN_CHARACTERS = 8_192
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


class _Head(msgspec.Struct, rename=_HEAD_NAMES.get):
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


def finished_by_reply(
    body: bytes, stamps: Mapping[str, Any], redact: Redact = str
) -> FinishedRollout:
    """Turn the body of a successful reply into a finished rollout.

    Most replies are spliced: the stamps go in before the closing brace and the rest
    keeps its bytes. A reply that cannot be spliced is parsed and encoded again.
    `redact` takes secrets out of the texts of a failure; a record is left as it is.

    Raises:
        GymRejectedError: the body is not JSON, not an object, or nested too deep.
    """
    spliced = _spliced(body, stamps)
    if spliced is not None:
        return spliced
    return _written(*parsed_object(body), stamps, body, redact)


def _spliced(body: bytes, stamps: Mapping[str, Any]) -> FinishedRollout | None:
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
    return FinishedRollout(
        Destination.RECORDS,
        b"%b,%b" % (body[:-1], orjson.dumps(stamps)[1:]),
        reward=None if head.reward is UNSET else head.reward,
        masked=head.mask_sample is not UNSET and bool(head.mask_sample),
    )


def _check_skipped(body: bytes) -> None:
    """Check the parts that msgspec skips without validation; other tools read them.

    Raises:
        ValueError: some of it is not UTF-8, or is nested too deep to be read again.
    """
    if not body.isascii():
        body.decode()
    if body.count(b"[") + body.count(b"{") > _MOST_BRACKETS:
        orjson.loads(body)


def finished_by_envelope(
    body: bytes, stamps: Mapping[str, Any], redact: Redact = str
) -> FinishedRollout:
    """Turn the body of a reply to an episode request into a finished rollout (§3.5).

    A reply that does not look like an episode's is taken as any other.

    Raises:
        GymRejectedError: the body is no JSON object, or its result is unusable.
    """
    reply, notes = parsed_object(body)
    if is_envelope(reply):
        reply = record_of_envelope(reply, body)
    return _written(reply, notes, stamps, body, redact)


def _written(
    reply: dict[str, Any],
    notes: tuple[str, ...],
    stamps: Mapping[str, Any],
    body: bytes,
    redact: Redact,
) -> FinishedRollout:
    record = {**reply, **stamps}
    if is_failure := record.get(wire.FAILURE_CLASS) is not None:
        record = {**redacted_tree(reply, redact), **stamps}
    destination = Destination.FAILURES if is_failure else Destination.RECORDS
    if record.get(wire.NO_PERSIST):
        destination = Destination.NOWHERE
    if destination is Destination.RECORDS and not record.get(wire.MASK_SAMPLE):
        _refuse_unprofiled(record, body)
    return FinishedRollout(
        destination,
        _line(record, body),
        reward=record.get(wire.REWARD),
        masked=bool(record.get(wire.MASK_SAMPLE)),
        failure_class=str(record[wire.FAILURE_CLASS]) if is_failure else "",
        message=redact(innermost(words_of(record)[:_SHOWN_CHARACTERS])),
        notes=tuple(map(redact, (*notes, *_strangers(reply, stamps)))),
    )


def _strangers(reply: Mapping[str, Any], stamps: Mapping[str, Any]) -> Iterator[str]:
    """Yield a phrase for each index of another rollout; ours takes its place."""
    for name in (wire.TASK_INDEX, wire.ROLLOUT_INDEX):
        if name in reply and name in stamps and reply[name] != stamps[name]:
            yield (
                f"the reply's {name} was {str(reply[name])[:40]}, kept as"
                f" {stamps[name]}, which was asked"
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
            status=200, body=text_of(body),
        ) from error  # fmt: skip


def _line(record: Mapping[str, Any], body: bytes) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError as error:
        raise GymRejectedError(
            f"the reply cannot be written down: {error}", kind="NestedTooDeep",
            status=200, body=text_of(body),
        ) from error  # fmt: skip
