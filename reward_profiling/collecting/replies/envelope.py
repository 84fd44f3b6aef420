"""The reply to an episode request: an envelope with a result or a failure in it.

Source: `gym-contract.md` §3.5.
"""

from collections.abc import Mapping
from typing import Any

from reward_profiling import wire
from reward_profiling.collecting.replies.strict_json import text_of
from reward_profiling.errors import GymRejectedError


def is_envelope(reply: Mapping[str, Any]) -> bool:
    """Say whether a reply looks like an episode's."""
    names = (wire.ENVELOPE_ID, wire.TASK_ID)
    is_named = all(isinstance(reply.get(name), Mapping) for name in names)
    return is_named and (wire.RESULT in reply or wire.FAILURE in reply)


def record_of_envelope(reply: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """Return an episode's record: a failure's where there is one, else its result's.

    Raises:
        GymRejectedError: the result, or the failure, is unusable; shows the `body`.
    """
    task_id, failure = reply[wire.TASK_ID], reply.get(wire.FAILURE)
    if failure is not None:
        return _record_of_failure(_object(failure, wire.FAILURE, body), task_id)
    result = _object(reply.get(wire.RESULT), wire.RESULT, body)
    taken = [name for name in result if _is_ours(name)]
    if taken:
        raise _unusable(f"its result uses our own names: {', '.join(taken)}", body)
    return {**result, wire.RESULT_TASK_ID: task_id}


def _record_of_failure(failure: Mapping[str, Any], task_id: object) -> dict[str, Any]:
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
    return name.startswith(wire.NG_PREFIX) or name in wire.OBSERVATIONS


def _unusable(why: str, body: bytes) -> GymRejectedError:
    return GymRejectedError(
        f"the reply to the episode cannot be kept: {why}", kind="NotAnEpisode",
        status=200, body=text_of(body),
    )  # fmt: skip
