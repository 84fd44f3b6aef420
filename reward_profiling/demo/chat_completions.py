"""Between the Responses API, which Gym speaks, and Chat Completions.

What cannot be converted is refused: a row that is silently changed would get a reward
for a different question.
"""

import hashlib
from collections.abc import Mapping

import orjson

from reward_profiling.demo.responses import (
    Json,
    content_text,
    message_item,
    response_object,
    token_usage,
)
from reward_profiling.errors import DatasetError
from reward_profiling.wire import PARAMS, USAGE

SAME_NAME = ("temperature", "top_p", "user", "service_tier")
NOT_CARRIED_OVER = ("tools", "previous_response_id", "prompt")
TEXT_PARTS = frozenset({"input_text", "output_text", "text"})
INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class NotACompletionError(ValueError):
    """A reply is not a chat completion; the message says what is missing."""


def chat_request(params: Mapping[str, object], model: str) -> Json:
    """Give the body of a chat request that asks what `params` ask.

    Raises:
        DatasetError: The row needs the Responses API, or its `extra_body` is no JSON.
    """
    needed = [name for name in NOT_CARRIED_OVER if params.get(name)]
    if needed:
        raise _needs_responses(", ".join(needed))
    request: Json = {"model": model, "messages": _messages(params)}
    request |= {one: params[one] for one in SAME_NAME if params.get(one) is not None}
    if params.get("max_output_tokens") is not None:
        request["max_tokens"] = params["max_output_tokens"]
    effort = _mapping(params.get("reasoning")).get("effort")
    if effort is not None:
        request["reasoning_effort"] = effort
    return request | _extra_body(params)


def response_from_chat(chat: object, params: Mapping[str, object]) -> Json:
    """Give the Responses object that says what a chat completion says.

    Raises:
        NotACompletionError: `chat` has no choice with a message.
    """
    reply = _mapping(chat)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise NotACompletionError("the reply has no `choices`")
    choice = _mapping(choices[0])
    reason = INCOMPLETE_REASONS.get(str(choice.get("finish_reason")))
    identity = _identity(reply)
    created = reply.get("created")
    return response_object(
        params,
        identity=identity,
        created_at=created if isinstance(created, int) else 0,
        model=str(reply.get("model", "")),
        output=_output(choice, identity, "incomplete" if reason else "completed"),
        usage=_usage(reply),
        incomplete_reason=reason,
    )


def _messages(params: Mapping[str, object]) -> list[Json]:
    prompt = params.get("input")
    items = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    messages = [_message(item) for item in items] if isinstance(items, list) else []
    instructions = params.get("instructions")
    if isinstance(instructions, str):
        return [{"role": "system", "content": instructions}, *messages]
    return messages


def _message(item: object) -> Json:
    message = _mapping(item)
    if message.get("type", "message") != "message" or "role" not in message:
        raise _needs_responses(f"input item of type {message.get('type')!r}")
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if any(_mapping(part).get("type") not in TEXT_PARTS for part in parts):
        raise _needs_responses("input content other than text")
    role = "system" if message["role"] == "developer" else message["role"]
    return {"role": role, "content": content_text(content)}


def _extra_body(params: Mapping[str, object]) -> Json:
    """Read what `metadata.extra_body` adds to a request, such as a seed."""
    text = _mapping(params.get("metadata")).get("extra_body")
    if text is None:
        return {}
    try:
        extra = orjson.loads(text if isinstance(text, str) else "")
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{PARAMS}.metadata.extra_body: {error}") from error
    if not isinstance(extra, dict):
        raise DatasetError(f"{PARAMS}.metadata.extra_body: no JSON object")
    return extra


def _output(choice: Mapping[str, object], identity: str, status: str) -> list[Json]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotACompletionError("the first choice has no `message`")
    output: list[Json] = []
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str):
        summary = [{"text": thought, "type": "summary_text"}]
        item: Json = {"id": f"rs_{identity}", "summary": summary, "type": "reasoning"}
        output.append(item)
    text = content_text(message.get("content"))
    return [*output, message_item(identity, text, status)] if text else output


def _usage(reply: Mapping[str, object]) -> Json | None:
    """Translate the usage; none when the endpoint does not count."""
    usage = reply.get(USAGE)
    if not isinstance(usage, dict):
        return None
    prompt = _mapping(usage.get("prompt_tokens_details"))
    completion = _mapping(usage.get("completion_tokens_details"))
    return token_usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached=_count(prompt, "cached_tokens"),
        reasoning=_count(completion, "reasoning_tokens"),
    )


def _identity(reply: Mapping[str, object]) -> str:
    name = reply.get("id")
    if isinstance(name, str) and name:
        return name.removeprefix("chatcmpl-")
    return hashlib.sha256(orjson.dumps(reply)).hexdigest()[:32]


def _count(counts: Mapping[str, object], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _needs_responses(what: str) -> DatasetError:
    return DatasetError(f"{PARAMS}: {what}: only the Responses API can carry this")
