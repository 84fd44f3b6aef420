"""The parameters of the flow: Prefect's form, the command line and this file agree."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from cyclopts import Parameter
from pydantic import ConfigDict, Field, model_validator

import reward_profiling
from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.spreading.spread import SpreadOptions
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.options import ServerOptions
from reward_profiling.values import Frozen, given_one, refused_when

EMBEDDED_TASKS = Path(reward_profiling.__path__[0]) / "demo" / "tasks.jsonl"
"""The embedded environment's task rows, as installed."""

_FLATTENED = Parameter(name="*")
_PLACEHOLDERS = ("{date}", "{time}")
_FILLED = r"^(?!.*\{(?!date\}|time\})\w+\})"
"""JSON schema's pattern of paths without other placeholders."""
_BRACES = re.compile(r"\{\w+\}")


class RewardProfilingParams(Frozen):
    """One run: which tasks, on which servers, how often, and where it is written."""

    model_config = ConfigDict(
        json_schema_extra=refused_when(
            "input is required unless the servers are the demo",
            {
                "not": {
                    "anyOf": [
                        given_one("input", type="string"),
                        given_one("servers", **given_one("demo", const=True)),
                    ]
                }
            },
        )
    )

    output: Annotated[Path, Field(json_schema_extra={"pattern": _FILLED})]
    """The rollouts file, such as runs/monday/rollouts.jsonl; every other file lies
    beside it and is named from it. {date} and {time} stand for the moment that the run
    was scheduled for, as 2026-01-31 and 235959 (UTC)."""

    input: Path | None = None
    """Task rows, one JSON object a line. The embedded environment brings its own when
    this is left out."""

    servers: Annotated[ServerOptions, _FLATTENED]
    """Where rollouts run."""

    plan: Annotated[PlanOptions, _FLATTENED] = Field(default_factory=PlanOptions)
    """Which rollouts are planned."""

    collect: Annotated[CollectOptions, _FLATTENED] = Field(
        default_factory=CollectOptions
    )
    """How they are collected."""

    adaptive: Annotated[AdaptiveOptions, _FLATTENED] = Field(
        default_factory=AdaptiveOptions
    )
    """Whether tasks that are still open get more repeats."""

    spread: Annotated[SpreadOptions, _FLATTENED] = Field(default_factory=SpreadOptions)
    """Where their shards are collected: in the run's process, or elsewhere."""

    aggregate: Annotated[AggregateOptions, _FLATTENED] = Field(
        default_factory=AggregateOptions
    )
    """What the servers' own metrics count."""

    profile: Annotated[ProfileOptions, _FLATTENED] = Field(
        default_factory=ProfileOptions
    )
    """How their rewards are read."""

    comparison: Annotated[BaselineOptions, _FLATTENED] = Field(
        default_factory=BaselineOptions
    )
    """What they are compared with."""

    def at(self, moment: datetime) -> Self:
        """Return the parameters with the output's {date} and {time} filled in."""
        utc = moment.astimezone(UTC)
        filled = str(self.output)
        for name, said in zip(_PLACEHOLDERS, ("%Y-%m-%d", "%H%M%S"), strict=True):
            filled = filled.replace(name, utc.strftime(said))
        return self.model_copy(update={"output": Path(filled)})

    @property
    def input_path(self) -> Path:
        """The task rows: those given, or the embedded environment's own."""
        return self.input or EMBEDDED_TASKS

    @model_validator(mode="after")
    def _placeholders_known(self) -> Self:
        unknown = set(_BRACES.findall(str(self.output))) - set(_PLACEHOLDERS)
        if unknown:
            raise ValueError(
                f"output: {', '.join(sorted(unknown))} stands for nothing; it may have"
                f" {' and '.join(_PLACEHOLDERS)}"
            )
        return self

    @model_validator(mode="after")
    def _has_shards(self) -> Self:
        if self.spread.is_elsewhere and self.collect.num_shards == 1:
            raise ValueError(
                f"the runner {self.spread.runner} collects shards elsewhere: give"
                " num_shards, at least 2"
            )
        return self

    @model_validator(mode="after")
    def _input_given(self) -> Self:
        if self.input is None and not self.servers.demo:
            raise ValueError("input is required unless the servers are the demo")
        if self.collect.shard is not None:
            raise ValueError(
                "shard is for `collect`, one process a shard, and `merge` at the end;"
                " a run takes num_shards"
            )
        return self
