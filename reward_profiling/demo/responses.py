"""OpenAI Responses objects: what every policy hands back, and how it is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from reward_profiling.errors import RewardProfilingError
from reward_profiling.wire import INCOMPLETE_DETAILS, USAGE

Json = dict[str, object]

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Reply:
    """One answer of a policy."""

    response: Json
    """A whole Responses object."""

    latency_seconds: float = 0.0
    """How long a scripted answer pretends to take; a real one has taken its time."""


class Policy(Protocol):
    """Whatever answers a row: the script, or a model behind an endpoint."""

    model: str
    """Its name, as the configuration gives it."""

    async def reply(self, row: Mapping[str, object], params: Json) -> Reply:
        """Answer the row, whose `responses_create_params` are `params`."""

    async def aclose(self) -> None:
        """Let go of connections."""


class ModelCallError(RewardProfilingError, RuntimeError):
    """The model endpoint did not answer; `status` is what `/run` says then."""

    def __init__(self, message: str, status: int = 500, retry_after: str = "") -> None:
        super().__init__(message, status, retry_after)
        self.message = message
        self.status = status
        self.retry_after = retry_after


def message_item(identity: str, text: str, status: str = "completed") -> Json:
    """Give the output item that holds an assistant's text."""
    content = {"annotations": [], "text": text, "type": "output_text"}
    return {
        "id": f"msg_{identity}",
        "content": [content],
        "role": "assistant",
        "status": status,
        "type": "message",
    }


def response_object(  # noqa: PLR0913 - the fields that differ between answers
    params: Mapping[str, object],
    *,
    identity: str,
    created_at: int,
    model: str,
    output: list[Json],
    usage: Json | None,
    incomplete_reason: str | None = None,
) -> Json:
    """Build a Responses object, every setting echoed from `params` or by default."""
    details = {"reason": incomplete_reason} if incomplete_reason else None
    return {
        "id": f"resp_{identity}",
        "created_at": created_at,
        "error": None,
        INCOMPLETE_DETAILS: details,
        "instructions": params.get("instructions"),
        "metadata": params.get("metadata"),
        "model": model,
        "object": "response",
        "output": output,
        "parallel_tool_calls": _setting(params, "parallel_tool_calls", default=True),
        "temperature": params.get("temperature"),
        "tool_choice": _setting(params, "tool_choice", default="auto"),
        "tools": _setting(params, "tools", default=[]),
        "top_p": params.get("top_p"),
        "max_output_tokens": params.get("max_output_tokens"),
        "status": "incomplete" if incomplete_reason else "completed",
        USAGE: usage,
    }


def token_usage(
    *, input_tokens: int, output_tokens: int, cached: int = 0, reasoning: int = 0
) -> Json:
    """Give the usage of one answer in Gym's key order; output includes reasoning."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input_tokens + output_tokens,
    }


def output_text(response: Mapping[str, object]) -> str:
    """Join the text parts of a response's messages; empty without any."""
    return "".join(str(part["text"]) for part in _text_parts(response))


def pad_output(response: Mapping[str, object], num_characters: int) -> None:
    """Put so many filler characters before the first text part, in place."""
    filler = ("x" * num_characters)[1:] + "\n" * (num_characters > 0)
    for part in _text_parts(response)[:1]:
        part["text"] = filler + str(part["text"])


def prompt_text(params: Mapping[str, object]) -> str:
    """Join what a row asks into one text: instructions and every message."""
    prompt = params.get("input")
    if isinstance(prompt, str):
        texts = [prompt]
    else:
        items = prompt if isinstance(prompt, list) else []
        texts = [
            content_text(one.get("content")) for one in items if isinstance(one, dict)
        ]
    instructions = params.get("instructions")
    return "\n".join([instructions, *texts] if isinstance(instructions, str) else texts)


def content_text(content: object) -> str:
    """Give the text of a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part.get("text", "")) for part in parts if isinstance(part, dict)
    )


def num_tokens(text: str) -> int:
    """Estimate the tokens of a text, rounded up; 0 when it is empty."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _text_parts(response: Mapping[str, object]) -> list[Json]:
    """Give the output text parts of all messages, in order."""
    output = response.get("output")
    items = output if isinstance(output, list) else []
    messages = [
        one for one in items if isinstance(one, dict) and one.get("type") == "message"
    ]
    contents = [
        one["content"] for one in messages if isinstance(one.get("content"), list)
    ]
    parts = [part for content in contents for part in content if isinstance(part, dict)]
    return [part for part in parts if isinstance(part.get("text"), str)]


def _setting(params: Mapping[str, object], name: str, *, default: object) -> object:
    value = params.get(name)
    return default if value is None else value
