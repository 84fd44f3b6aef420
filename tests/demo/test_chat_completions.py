import pytest

from reward_profiling.demo.chat_completions import (
    NotACompletionError,
    chat_request,
    response_from_chat,
)
from reward_profiling.demo.model_endpoint import base_url
from reward_profiling.demo.responses import output_text
from reward_profiling.errors import DatasetError

PARTS = [{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("params", "messages"),
    [
        ({"input": "hi"}, [("user", "hi")]),
        ({"input": [{"role": "user", "content": "hi"}]}, [("user", "hi")]),
        ({"input": [{"role": "developer", "content": "x"}]}, [("system", "x")]),
        ({"input": [{"role": "user", "content": PARTS}]}, [("user", "a\nb")]),
        ({"input": "hi", "instructions": "be"}, [("system", "be"), ("user", "hi")]),
    ],
)
def test_input_becomes_messages(
    params: dict[str, object], messages: list[tuple[str, str]]
) -> None:
    expected = [{"role": role, "content": text} for role, text in messages]

    assert chat_request(params, "m") == {"model": "m", "messages": expected}


def test_settings_carry_over_and_extras_merge() -> None:
    params = {
        "input": "hi",
        "temperature": 0.0,
        "top_p": None,
        "max_output_tokens": 9,
        "reasoning": {"effort": "low"},
        "metadata": {"extra_body": '{"seed": 3}'},
    }

    request = chat_request(params, "m")

    del request["messages"]
    assert request == {
        "model": "m",
        "temperature": 0.0,
        "max_tokens": 9,
        "reasoning_effort": "low",
        "seed": 3,
    }


@pytest.mark.parametrize(
    "params",
    [
        {"input": "hi", "tools": [{"type": "function"}]},
        {"input": [{"type": "function_call_output", "output": "1"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"input": "hi", "metadata": {"extra_body": "{"}},
        {"input": "hi", "metadata": {"extra_body": "[]"}},
    ],
)
def test_what_chat_cannot_carry_is_refused(params: dict[str, object]) -> None:
    with pytest.raises(DatasetError):
        chat_request(params, "m")


def test_a_completion_becomes_a_response() -> None:
    message = {"role": "assistant", "content": "four", "reasoning_content": "2 + 2"}
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 7,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    choice = {"message": message, "finish_reason": "stop"}
    chat = {"id": "chatcmpl-1", "created": 8, "choices": [choice], "usage": usage}

    response = response_from_chat(chat, {"temperature": 0.5})

    assert output_text(response) == "four"
    assert (response["id"], response["created_at"]) == ("resp_1", 8)
    assert (response["status"], response["temperature"]) == ("completed", 0.5)
    assert response["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 12,
    }


def test_a_cut_completion_is_incomplete() -> None:
    choice = {"message": {"content": None}, "finish_reason": "length"}

    response = response_from_chat({"choices": [choice]}, {})

    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (response["output"], response["usage"]) == ([], None)


@pytest.mark.parametrize("chat", [[], {}, {"choices": []}, {"choices": [{}]}])
def test_what_is_no_completion_is_refused(chat: object) -> None:
    with pytest.raises(NotACompletionError):
        response_from_chat(chat, {})


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("http://host:8000/v1/", "http://host:8000/v1"),
        ("http://host/api", "http://host/api/v1"),
        ("http://host/v1beta/openai", "http://host/v1beta/openai"),
        ("http://host/v1/chat/completions", "http://host/v1"),
    ],
)
def test_a_base_url_needs_no_version(url: str, base: str) -> None:
    assert base_url(url) == base
