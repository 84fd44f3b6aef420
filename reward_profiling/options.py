"""What people set: the options of every step, as frozen models.

The string under each field is its documentation everywhere: in Prefect's form, in
the command line's help and here.
"""

import re
from itertools import combinations
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from reward_profiling.collecting.budgets import PATTERN, FailureBudget
from reward_profiling.numerics.durations import seconds_from
from reward_profiling.texts.secret_values import has_secret, is_secret_override

Repeats = Annotated[int, Field(ge=1)]
_MAX_SHARDS = 65_536
JsonObject = dict[str, Any]
Seconds = Annotated[float, Field(gt=0), BeforeValidator(seconds_from)]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
Dispatch = Literal["plan", "interleaved", "longest-first"]
RoutingMode = Literal["agent", "legacy", "taskset"]
Strictness = Literal["critical", "warning"]
Name = Annotated[str, Field(min_length=1)]


_CAPITALS = {"url": "URL", "api": "API", "id": "ID"}


def _title(name: str, _: object) -> str:
    """Return a field's title in Prefect's form: its name as words."""
    words = [_CAPITALS.get(word, word) for word in name.split("_")]
    title = " ".join(words)
    return title[:1].upper() + title[1:]


class Frozen(BaseModel):
    """A value: immutable, closed, documented field by field."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="null",
        hide_input_in_errors=True,  # an option given wrongly may be a key
        field_title_generator=_title,
    )


class PlanOptions(Frozen):
    """How task rows become planned rollouts."""

    num_repeats: Repeats | dict[str, Repeats] | None = 1
    """Rollouts per task: a number, or a JSON object of agent name to number with an
    optional "_default"."""

    num_repeats_add_seed: bool = False
    """Give each repeat a seed of its own, in metadata.extra_body of its request."""

    interleave_repeats: bool = False
    """Order the plan by repeat (abcabc) instead of by task (aabbcc)."""

    limit: Annotated[int, Field(ge=1)] | None = None
    """Plan only the first N task rows; at least 1. Default: all."""

    agent_name: str | None = None
    """Send every row to this agent, whatever the row says."""

    default_agent: str | None = None
    """Send rows that name neither an agent nor a task source to this agent."""

    agent_map: dict[str, str] = Field(default_factory=dict)
    """JSON object that re-routes agents or task sources: from name to agent name;
    "_default" catches every other row."""

    fan_out: dict[str, list[str]] = Field(default_factory=dict)
    """JSON object that runs the rows of one agent or task source on several agents."""

    responses_create_params: JsonObject = Field(default_factory=dict)
    """JSON object laid over every row's responses_create_params, such as
    {"temperature": 1.0}; its top-level keys win."""

    prompt_config: Name | None = None
    """YAML file with a "user" and maybe a "system" template, from which each row's
    input is made: {field} stands for the row's field, {{ and }} for braces."""

    skills: Name | None = None
    """Folder of skill folders, each with a SKILL.md: every row is stamped with its
    path, a digest of its content and its skills, for agents that use them."""

    environment_routing_mode: RoutingMode = "agent"
    """What decides where a row is sent: "agent", the environment server of its agent;
    "legacy", environment_server_name for every row; "taskset", only rows that
    environment_server_routes leads somewhere. Rows with task_id and task_input follow
    environment_server_routes in every mode."""

    environment_server_name: Name | None = None
    """Environment server that runs every row in the mode "legacy"."""

    environment_server_routes: dict[str, Name] = Field(default_factory=dict)
    """JSON object that sends rows with task_id and task_input on their way: from
    task_id.taskset to environment server."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        chosen = self.agent_map.get("_default")
        if self.agent_name and chosen and chosen != self.agent_name:
            raise ValueError(
                f"agent_name {self.agent_name!r} and agent_map._default {chosen!r}"
                " differ; give one of them"
            )
        if self.default_agent and (self.agent_name or chosen):
            raise ValueError(
                "default_agent has no effect beside agent_name or agent_map._default;"
                " give one of them"
            )
        for name, agents in self.fan_out.items():
            if not agents or len(set(agents)) < len(agents):
                raise ValueError(
                    f"fan_out[{name!r}] must list at least one agent, each once"
                )
        if isinstance(self.num_repeats, dict) and not self.num_repeats:
            raise ValueError("num_repeats names no agent")
        return self

    @model_validator(mode="after")
    def _routable(self) -> Self:
        mode = self.environment_routing_mode
        if mode == "legacy" and self.environment_server_name is None:
            raise ValueError("the routing mode legacy needs environment_server_name")
        if mode == "taskset" and not self.environment_server_routes:
            raise ValueError("the routing mode taskset needs environment_server_routes")
        return self

    def routes(self) -> dict[str, str]:
        """Return `agent_map` with `agent_name` folded in as its default."""
        if self.agent_name:
            return {**self.agent_map, "_default": self.agent_name}
        return dict(self.agent_map)


class CollectOptions(Frozen):
    """How owed rollouts are collected.

    Durations are seconds, or text such as "90s", "15m", "4h" or "4:00:00".
    """

    concurrency: Annotated[int, Field(ge=1, le=65536)] = 64
    """Rollouts in flight at most, over all shards of this run together."""

    num_shards: Annotated[int, Field(ge=1, le=1024)] = 1
    """Parts that the plan is dealt into, collected side by side. More than one writes
    a file for each and merges them."""

    shard: Annotated[str, Field(pattern=r"^\d+/\d+$")] | None = None
    """Collect only shard I of N, as "I/N" with I from 0: for several processes or
    machines on one output. `merge` puts the shards together."""

    dispatch: Dispatch = "plan"
    """Order in which rollouts start: as planned, repeat by repeat over all tasks, or
    the tasks that took longest in earlier runs first."""

    rollout_timeout: Seconds = 3600.0
    """How long one rollout may take, its retries included; then it is a failure."""

    retries: Annotated[int, Field(ge=0, le=100)] = 4
    """Times that a rollout is asked for again within the run when a server is away or
    busy (transport faults, 408, 425, 429, 5xx). With 0, no request whose reply was
    lost is sent again."""

    max_attempts: Annotated[int, Field(ge=1)] = 3
    """Recorded failures, over all runs of this output, after which a rollout is given
    up."""

    retry_given_up: bool = False
    """Try once more what was given up."""

    max_failures: Annotated[str, Field(pattern=PATTERN)] | None = None
    """Stop when more rollouts than this fail in this run: a count, such as "10", or a
    share of those finished, such as "10%", judged from ten on. Default: no bound."""

    identical_failures: Annotated[int, Field(ge=2)] = 10
    """Stop when so many rollouts of two tasks or more fail one after another with the
    same words; they are not counted as attempts."""

    time_budget: Seconds | None = None
    """Stop collecting after this long. No rollout is started that is not likely to
    finish in time."""

    allow_unsupported_pairing: bool = False
    """Run rows on agents that their verifier does not declare support for."""

    server_patience: Seconds = 600.0
    """How long to wait for a server that does not answer, when there is nothing else to
    do. Its rollouts stay owed."""

    @model_validator(mode="after")
    def _readable(self) -> Self:
        FailureBudget.parse(self.max_failures)
        if self.shard is not None:
            index, count = self.shard_of
            if not index < count <= _MAX_SHARDS:
                last = min(count, _MAX_SHARDS) - 1
                raise ValueError(
                    f"shard {self.shard}: I/N runs from 0/N to {last}/N, and N to"
                    f" {_MAX_SHARDS}"
                )
            if self.num_shards > 1:
                raise ValueError("give shard or num_shards, not both")
        return self

    @property
    def shard_of(self) -> tuple[int, int]:
        """The one shard to collect and how many there are, as (index, count)."""
        index, _, count = (self.shard or "0/1").partition("/")
        return int(index), int(count)

    def shards(self) -> list[tuple[int, int]]:
        """Return the shards that this run collects, as (index, count)."""
        if self.shard is not None:
            return [self.shard_of]
        return [(index, self.num_shards) for index in range(self.num_shards)]

    def concurrency_of(self, index: int) -> int:
        """Return how many rollouts shard `index` of this run may have in flight.

        Shares differ by one at most and sum to `concurrency`, but each is at least 1.
        """
        if self.shard is not None:
            return self.concurrency
        share, left = divmod(self.concurrency, self.num_shards)
        return max(1, share + (index < left))

    def of_shard(self, index: int) -> Self:
        """Return what collects shard `index` of this run by itself, elsewhere."""
        return self.model_copy(
            update={
                "shard": f"{index}/{self.num_shards}",
                "num_shards": 1,
                "concurrency": self.concurrency_of(index),
            }
        )


def refused_when(reason: str, *cases: JsonObject) -> JsonObject:
    """Return JSON schema that refuses what holds in any case, and says the reason.

    Prefect's server knows only the schema: by it, it refuses before a run is made.
    """
    return {"not": {"$comment": reason, "anyOf": list(cases)}}


def given_one(name: str, **schema: object) -> JsonObject:
    """Return JSON schema of objects in which a member is given, and fits."""
    return {"required": [name], "properties": {name: schema}}


_SERVER_SOURCES: tuple[JsonObject, ...] = (
    given_one("head_url", type="string"),
    given_one("demo", const=True),
    {
        "anyOf": [
            given_one(name, type="array", minItems=1)
            for name in (
                "gym_config", "gym_environment", "gym_resources_server",
                "gym_benchmark",
            )
        ]
    },
)  # fmt: skip


class ServerOptions(Frozen):
    """Which servers run the rollouts: found, started, or the embedded environment.

    Options are seen by everyone who sees the run: none may hold a secret.
    """

    model_config = ConfigDict(
        json_schema_extra=refused_when(
            "give exactly one of head_url, gym_config (or gym_environment,"
            " gym_resources_server, gym_benchmark) and demo",
            {"not": {"anyOf": list(_SERVER_SOURCES)}},
            *({"allOf": list(two)} for two in combinations(_SERVER_SOURCES, 2)),
        )
    )

    head_url: str | None = None
    """Head server of running servers, such as http://127.0.0.1:11000."""

    gym_config: tuple[str, ...] = ()
    """Run `gym env start` with these configuration files, and stop it at the end; a
    path is relative to the working directory, or to Gym's own folder."""

    gym_environment: tuple[str, ...] = ()
    """The same, with these environments of Gym, by name."""

    gym_resources_server: tuple[str, ...] = ()
    """The same, with these resources servers of Gym, by name, such as mcqa."""

    gym_benchmark: tuple[str, ...] = ()
    """The same, with these benchmarks of Gym, by name."""

    gym_model_type: str | None = None
    """Kind of model server that Gym starts, by name, such as openai_model, where no
    configuration file says so."""

    gym_agent_type: str | None = None
    """Agent that runs the environment, by name, where it can be chosen."""

    gym_overrides: tuple[str, ...] = ()
    """More arguments of `gym env start`, as given, such as ++skip_venv_if_present=true.
    A secret is given as the name of its variable: '++judge_api_key=${oc.env:NAME}'."""

    demo: bool = False
    """Use the embedded environment, which needs no Gym."""

    model_url: str | None = None
    """OpenAI-compatible endpoint that answers instead of the scripted policy; also
    handed to Gym's servers."""

    model: str | None = None
    """Name of the model at that endpoint."""

    model_api_key_env: str | None = None
    """Name of the environment variable that holds the endpoint's key. Default:
    MODEL_API_KEY, where it is set; without one, Gym takes its own env.yaml."""

    gym_command: str = "gym"
    """Gym's command, on PATH or with its folder."""

    gym_venv: str | None = None
    """Folder of the virtual environment whose Gym is started, in place of
    gym_command."""

    start_timeout: Seconds = 600.0
    """How long until every server must be ready, in seconds; on the command line also
    "10m"."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        chosen = [
            name
            for name, given in (
                ("head_url", self.head_url),
                ("gym_config", self.is_gym_started),
                ("demo", self.demo),
            )
            if given
        ]
        if len(chosen) != 1:
            raise ValueError(
                "give exactly one of head_url, gym_config (or gym_environment,"
                " gym_resources_server, gym_benchmark) and demo, not"
                f" {' and '.join(chosen) or 'none'}"
            )
        if self.model_url and not self.model:
            raise ValueError("--model-url needs the name of its model: --model NAME")
        if self.model and self.demo and not self.model_url:
            raise ValueError("--model has no effect with --demo but for --model-url")
        if self.head_url and (self.model or self.model_url):
            raise ValueError(
                "--model and --model-url are for servers that are started here; servers"
                " at --head-url have their own"
            )
        return self

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        """Refuse what would be seen on a command line and in Prefect; never show it."""
        if not _VARIABLE.fullmatch(self.key_variable):
            raise ValueError(
                "model_api_key_env is the NAME of an environment variable, such as"
                " MODEL_API_KEY, not the key itself"
            )
        for name in ("head_url", "model_url"):
            if has_secret(getattr(self, name) or ""):
                raise ValueError(
                    f"{name} holds a password or a key, and options can be seen by"
                    " others; give a key by the name of its variable, in"
                    " model_api_key_env"
                )
        for override in self.gym_overrides:
            if is_secret_override(override):
                shown = override.partition("=")[0]
                raise ValueError(
                    f"gym_overrides: {shown} holds a secret, and options can be seen by"
                    f" others; put it into a variable and give '{shown}="
                    "${oc.env:NAME}'"
                )
        return self

    @property
    def is_gym_started(self) -> bool:
        """Whether Gym's own command is started and stopped with the run."""
        return bool(
            self.gym_config
            or self.gym_environment
            or self.gym_resources_server
            or self.gym_benchmark
        )

    @property
    def key_variable(self) -> str:
        """The environment variable that the endpoint's key is looked for in."""
        return self.model_api_key_env or "MODEL_API_KEY"


class AggregateOptions(Frozen):
    """Which rollouts without a reward count as zero in the servers' own metrics.

    Only in those metrics; no record is changed, and the profile counts no zeros.
    """

    count_failure_classes_as_zero: tuple[str, ...] = ()
    """Failure classes whose rollouts count as zero, such as agent_run_error."""

    count_missing_rollouts_as_zero: bool = False
    """Count planned rollouts that left neither a record nor a failure as zero."""


class ProfileOptions(Frozen):
    """How rewards are read."""

    pass_threshold: Annotated[float, Field(allow_inf_nan=False)] = 1.0
    """A rollout passes when its reward is at least this, give or take 1e-9."""

    signal_tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-6
    """Rewards of a task that differ by no more than this are the same: no signal."""

    leave_out_empty: bool = False
    """Leave records without an answer, neither text nor a call of a tool, out of what
    the rewards say, as masked ones are. Gym's own files count them all the same."""

    answer_field: Name | None = None
    """Field of the records that holds the extracted answer, such as extracted_answer:
    by it, the answer that most rollouts of a task give is looked at (majority)."""

    strict: Strictness | None = None
    """Exit with code 4 when there is a finding this bad or worse: "critical", or
    "warning". Default: findings are told and change no exit code."""


class BaselineOptions(Frozen):
    """What a run is compared with when it is done."""

    baseline: Name | None = None
    """Rollouts file of an earlier output of the same tasks, to compare this one with;
    its plan lies beside it."""

    max_regression: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """How much lower than the baseline's the mean reward may be. Worse is a critical
    finding. Default: no verdict, only numbers."""
