"""Errors that say: the request is longer than the model's context.

Each model server has words of its own for it, and Gym passes them on in an error 500.
"""

import re

_SAYINGS = re.compile(
    r"""
    context[_ -]?(?:length|window)[_ ]?(?:exceeded|error)  # OpenAI's code, LiteLLM
    | maximum\ context\ length                             # OpenAI, vLLM, SGLang
    | (?:exceed|longer\ than|too\ large\ for|too\ long\ for)\w*\ [^.;]{0,80}
      (?:context\ (?:length|window|limit|size)|maximum\ (?:model|context|input)\ length
      |max_model_len|max_num_tokens|maximum\ number\ of\ (?:input\ )?tokens)
    | (?:prompt|input)\b[^.;]{0,60}\ is\ too\ long          # vLLM, Anthropic, Bedrock
    | exceed_context_size_error                            # llama.cpp
    | `?inputs`?\ (?:tokens\ \+\ `?max_new_tokens|must\ have\ less\ than)  # TGI
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_about_context_length(text: str) -> bool:
    """Say whether an error is a model's refusal of a request that is too long."""
    return _SAYINGS.search(text) is not None
