"""The parameters of the flow: Prefect's form, the command line and this file agree."""

from pathlib import Path
from typing import Annotated, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

import tasks
from tasks.core.options import (
    AggregateOptions,
    CollectOptions,
    Frozen,
    PlanOptions,
    ProfileOptions,
    ServerOptions,
)

EMBEDDED_TASKS = Path(tasks.__path__[0]) / "demo" / "tasks.jsonl"
"""The embedded environment's task rows, as installed."""

_FLATTENED = Parameter(name="*")


class RewardProfilingParams(Frozen):
    """One run: which tasks, on which servers, how often, and where it is written."""

    output: Path
    """The rollouts file, such as runs/monday/rollouts.jsonl; every other file lies
    beside it and is named from it."""

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

    aggregate: Annotated[AggregateOptions, _FLATTENED] = Field(
        default_factory=AggregateOptions
    )
    """What the servers' own metrics count."""

    profile: Annotated[ProfileOptions, _FLATTENED] = Field(
        default_factory=ProfileOptions
    )
    """How their rewards are read."""

    @property
    def input_path(self) -> Path:
        """The task rows: those given, or the embedded environment's own."""
        return self.input or EMBEDDED_TASKS

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
