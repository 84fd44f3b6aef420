"""The parameters of the flow, for Prefect's form and for the command line."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar, Self

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.spreading.spread import SpreadOptions
from reward_profiling.errors import ConfigError
from reward_profiling.fitting import ReadAs
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.options import EMBEDDED_TASKS, ServerOptions
from reward_profiling.values import Checked, JsonObject, given_one, refused_when

_PLACEHOLDERS = ("{date}", "{time}")
_BRACES = re.compile(r"\{\w+\}")
_FILLED = r"^(?!.*\{(?!date\}|time\})\w+\})"


_ELSEWHERE = given_one("runner", type="string", **{"not": {"const": "threads"}})
_SEVERAL_SHARDS = given_one("num_shards", minimum=2)


def _fillable(given: object) -> object:
    unknown = set(_BRACES.findall(str(given))) - set(_PLACEHOLDERS)
    if unknown:
        raise ValueError(
            f"Unknown placeholder {', '.join(sorted(unknown))}. Allowed:"
            f" {' and '.join(_PLACEHOLDERS)}"
        )
    return given


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardProfilingParams(Checked):
    """One run: which tasks, on which servers, how often, and where it is written."""

    __pydantic_config__: ClassVar[JsonObject] = {
        **Checked.__pydantic_config__,
        "json_schema_extra": {
            **refused_when(
                "input is required except with the demo servers",
                {
                    "not": {
                        "anyOf": [
                            given_one("input", type="string"),
                            given_one("servers", **given_one("demo", const=True)),
                        ]
                    }
                },
            ),
            "allOf": [
                refused_when(
                    "a runner that collects elsewhere needs num_shards, at least 2",
                    {
                        **given_one("spread", **_ELSEWHERE),
                        "not": given_one("collect", **_SEVERAL_SHARDS),
                    },
                )
            ],
        },
    }

    output: Annotated[Path, ReadAs(_fillable, _FILLED)]
    """The rollouts file, such as runs/monday/rollouts.jsonl; all other files are
    written beside it and named after it. {date} and {time} become the scheduled start
    of the run in UTC, as 2026-01-31 and 235959."""

    input: Path | None = None
    """Task rows, one JSON object a line. The embedded environment brings its own when
    this is left out."""

    servers: ServerOptions
    """Where rollouts run."""

    plan: PlanOptions = field(default_factory=PlanOptions)
    """Which rollouts are planned."""

    collect: CollectOptions = field(default_factory=CollectOptions)
    """How they are collected."""

    adaptive: AdaptiveOptions = field(default_factory=AdaptiveOptions)
    """Whether undecided tasks get more repeats."""

    spread: SpreadOptions = field(default_factory=SpreadOptions)
    """Where shards are collected: in the run's process, or elsewhere."""

    aggregate: AggregateOptions = field(default_factory=AggregateOptions)
    """What the servers' own metrics count."""

    profile: ProfileOptions = field(default_factory=ProfileOptions)
    """How their rewards are read."""

    comparison: BaselineOptions = field(default_factory=BaselineOptions)
    """What they are compared with."""

    def at(self, moment: datetime) -> Self:
        """Return the parameters with the output's {date} and {time} filled in."""
        utc = moment.astimezone(UTC)
        filled = str(self.output)
        for name, said in zip(_PLACEHOLDERS, ("%Y-%m-%d", "%H%M%S"), strict=True):
            filled = filled.replace(name, utc.strftime(said))
        return replace(self, output=Path(filled))

    @property
    def input_path(self) -> Path:
        """The task rows: those given, or the embedded environment's own."""
        return self.input or EMBEDDED_TASKS

    def check(self) -> None:
        """Refuse a run without tasks, and shards that are not a run's.

        Raises:
            ConfigError: it is such a run.
        """
        if self.spread.is_elsewhere and self.collect.num_shards == 1:
            raise ConfigError(
                f"the runner {self.spread.runner} collects shards elsewhere: give"
                " num_shards, at least 2"
            )
        if self.input is None and not self.servers.demo:
            raise ConfigError("input is required except with the demo servers")
        if self.collect.shard is not None:
            raise ConfigError(
                "shard is an option of `collect`, with one process per shard and"
                " `merge` at the end; give num_shards to a run"
            )
