"""How model servers say that a request is too long, in their own words."""

import pytest

from reward_profiling.texts.context_length import is_about_context_length

SAID = (
    # OpenAI, and what copies it
    (
        "This model's maximum context length is 8192 tokens. However, you requested"
        " 9001 tokens (8489 in the messages, 512 in the completion)."
    ),
    '{"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}',
    "Your input exceeds the context window of this model. Please adjust your input.",
    # vLLM
    (
        "The decoder prompt (length 40000) is longer than the maximum model length of"
        " 32768. Make sure that `max_model_len` is no smaller than that."
    ),
    "The prompt (total length 5000) is too long to fit into the model",
    # SGLang
    (
        "The input (131080 tokens) is longer than the model's context length (131072"
        " tokens)."
    ),
    "Requested token count exceeds the model's maximum context length of 32768 tokens.",
    # TensorRT-LLM, TGI, llama.cpp
    "Prompt length (5000) exceeds maximum input length (4096).",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.",
    "the request exceeds the available context size. try increasing the context size",
    # Anthropic, Gemini, Bedrock, Mistral, LiteLLM
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed"
        " (1048576)."
    ),
    "Input is too long for requested model.",
    (
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context"
        " length"
    ),
    "litellm.ContextWindowExceededError: litellm.BadRequestError: too many tokens",
    # as Gym's agent passes it on
    (
        r"Hit an exception in A___policy calling an inner server: b'{\"message\":"
        r" \"This model\'s maximum context length is 4096 tokens.\"}"
    ),
)
OTHERS = (
    "Rate limit exceeded: maximum of 10 requests per minute",
    "Incorrect API key provided: sk-…",
    "The model `gpt-x` does not exist",
    "max_tokens is too large: 100000. This model supports at most 4096 completion",
    "judge context not found",
    "Payload too large",
    "the reply is longer than 256 MB",
    "the prompt is empty; the answer is too long to be shown",
    "",
)


@pytest.mark.parametrize("text", SAID)
def test_a_refusal_of_length_is_known(text: str) -> None:
    assert is_about_context_length(text)


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_are_not(text: str) -> None:
    assert not is_about_context_length(text)
