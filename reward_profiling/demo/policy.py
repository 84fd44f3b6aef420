"""The scripted policy: plausible answers, right as often as a task's ability says.

An answer depends only on the seed, the prompt and the rollout's key, so a rollout gets
the same answer in any order, in any process and under any load.
"""

import hashlib
import math
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import orjson

from reward_profiling.demo.responses import (
    CHARACTERS_PER_TOKEN,
    Json,
    Reply,
    message_item,
    num_tokens,
    prompt_text,
    response_object,
    token_usage,
)
from reward_profiling.wire import ATTEMPT_INDEX, ROLLOUT_INDEX, TASK_INDEX

MODEL = "scripted-policy"
SCRIPTS_PATH = pathlib.Path(__file__).with_name("scripts.json")
EPOCH = 1_767_225_600  # 2026-01-01; answers must not depend on the clock

EMPTY_SHARE = 0.015
TRUNCATED_SHARE = 0.03
SLOW_SHARE = 0.04
NEVER_SHARE = ALWAYS_SHARE = 0.15

# Hidden reasoning, log-normal: median tokens when right and when wrong, and spread.
REASONING_WHEN_RIGHT, REASONING_WHEN_WRONG, REASONING_SPREAD = 110, 210, 0.55
STANDARD_NORMAL = NormalDist()


@dataclass(frozen=True)
class Script:
    """What the policy says to one task."""

    ability: float
    """Chance of a right answer, 0..1; at 1 nothing ever goes wrong."""

    right: Sequence[str]
    wrong: Sequence[str]


@dataclass(frozen=True)
class Draw:
    """The chances of one rollout, each a fraction fixed by its key and a purpose."""

    key: str

    def fraction(self, purpose: str) -> float:
        """Give a number in [0, 1) that is uniform over keys and purposes."""
        digest = hashlib.sha256(f"{self.key}\0{purpose}".encode()).digest()
        return int.from_bytes(digest[:7]) / (1 << 56)

    def one_of(self, texts: Sequence[str], purpose: str) -> str:
        """Choose one of the texts."""
        return texts[int(self.fraction(purpose) * len(texts))]

    @cached_property
    def identity(self) -> str:
        """Name the rollout's response."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:32]

    def created_at(self) -> int:
        """Give a time within one day, in seconds since 1970."""
        return EPOCH + int(self.fraction("created") * 86_400)


@dataclass(frozen=True)
class Answer:
    """What one rollout came to, before it is put into a response."""

    text: str
    num_reasoning_tokens: int
    is_truncated: bool = False


class ScriptedPolicy:
    """Answers the shipped tasks by script, and any other row by a guess at one."""

    model = MODEL

    def __init__(self, seed: int = 0, latency_scale: float = 1.0) -> None:
        self._seed = seed
        self._latency_scale = latency_scale
        self._scripts = read_scripts()

    async def reply(self, row: Mapping[str, object], params: Json) -> Reply:
        """Answer the row at once, and say how long that should have taken."""
        prompt = prompt_text(params)
        script = self._scripts.get(str(row.get("id"))) or guessed_script(row, prompt)
        draw = _draw_of(self._seed, row, prompt)
        response = _response(
            _answer(script, draw, _output_limit(params)), draw, params, prompt
        )
        return Reply(response, self._latency_scale * _latency_seconds(draw))

    async def aclose(self) -> None:
        """Hold nothing, let go of nothing."""


def read_scripts() -> dict[str, Script]:
    """Read the shipped scripts by the `id` of their row."""
    scripts = orjson.loads(SCRIPTS_PATH.read_bytes())
    return {identity: Script(**script) for identity, script in scripts.items()}


def guessed_script(row: Mapping[str, object], prompt: str) -> Script:
    """Script an unknown row: ability by its prompt, the answer that it expects."""
    expected = row.get("expected_answer")
    answer = expected[0] if isinstance(expected, list) and expected else expected
    place = Draw(prompt).fraction("ability")
    middle = (place - NEVER_SHARE) / (1 - NEVER_SHARE - ALWAYS_SHARE)
    return Script(
        ability=min(1.0, max(0.0, middle)),
        right=[f"I worked it out step by step and checked it.\nAnswer: {answer}"],
        wrong=["I am not sure. I tried two ways and they did not agree."],
    )


def _draw_of(seed: int, row: Mapping[str, object], prompt: str) -> Draw:
    indices = [row.get(name, 0) for name in (TASK_INDEX, ROLLOUT_INDEX, ATTEMPT_INDEX)]
    return Draw("\0".join(map(str, [seed, prompt, *indices])))


def _answer(script: Script, draw: Draw, limit: float) -> Answer:
    """Play one rollout; only an ability of 1 is spared every mishap."""
    is_right = draw.fraction("right") < script.ability
    text = draw.one_of(script.right if is_right else script.wrong, "text")
    reasoning = _num_reasoning_tokens(draw, is_right=is_right)
    mishap = draw.fraction("mishap") if script.ability < 1 else 1.0
    if mishap < EMPTY_SHARE:
        return Answer("", int(min(reasoning, limit)))
    if mishap < EMPTY_SHARE + TRUNCATED_SHARE:
        reasoning *= 3
        shown = 0.3 + 0.4 * draw.fraction("cut")
        limit = min(limit, reasoning + int(num_tokens(text) * shown))
    return _within(limit, text, reasoning)


def _within(limit: float, text: str, reasoning: int) -> Answer:
    """Cut an answer that needs more tokens than there are, between two words."""
    room = limit - reasoning
    if num_tokens(text) <= room:
        return Answer(text, reasoning)
    kept = text[: max(0, int(room)) * CHARACTERS_PER_TOKEN].rpartition(" ")[0]
    return Answer(kept, int(min(reasoning, limit)), is_truncated=True)


def _output_limit(params: Json) -> float:
    limit = params.get("max_output_tokens")
    return limit if isinstance(limit, int) and limit > 0 else math.inf


def _num_reasoning_tokens(draw: Draw, *, is_right: bool) -> int:
    median = REASONING_WHEN_RIGHT if is_right else REASONING_WHEN_WRONG
    place = min(max(draw.fraction("reasoning"), 1e-6), 1 - 1e-6)
    return round(median * math.exp(REASONING_SPREAD * STANDARD_NORMAL.inv_cdf(place)))


def _latency_seconds(draw: Draw) -> float:
    """Give 0.1 to 0.6 s for most rollouts, 1 to 1.5 s for a few."""
    fastest = 1.0 if draw.fraction("slow") < SLOW_SHARE else 0.1
    return fastest + 0.5 * draw.fraction("latency")


def _response(answer: Answer, draw: Draw, params: Json, prompt: str) -> Json:
    status = "incomplete" if answer.is_truncated else "completed"
    output = [message_item(draw.identity, answer.text, status)] if answer.text else []
    return response_object(
        params,
        identity=draw.identity,
        created_at=draw.created_at(),
        model=MODEL,
        output=output,
        usage=token_usage(
            input_tokens=max(1, num_tokens(prompt)),
            output_tokens=num_tokens(answer.text) + answer.num_reasoning_tokens,
            reasoning=answer.num_reasoning_tokens,
        ),
        incomplete_reason="max_output_tokens" if answer.is_truncated else None,
    )
