"""The options for the servers that run the rollouts."""

import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar

from reward_profiling.errors import ConfigError
from reward_profiling.fitting import matching_text
from reward_profiling.texts.secret_values import has_secret, is_secret_override
from reward_profiling.values import (
    Checked,
    JsonObject,
    Seconds,
    given_one,
    refused_when,
)

EMBEDDED_TASKS = Path(__file__).parents[1] / "demo" / "tasks.jsonl"
"""The embedded environment's task rows, as installed."""

_HEAD_URL = matching_text(
    r"^https?://\S+$", "an address that starts with http:// or https://"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions(Checked):
    """Which servers run the rollouts: running ones, Gym's, or the embedded environment.

    Everyone who sees the run sees its options: never put a secret here.
    """

    __pydantic_config__: ClassVar[JsonObject] = {
        **Checked.__pydantic_config__,
        "json_schema_extra": refused_when(
            "give exactly one of head_url, gym_config (or gym_environment,"
            " gym_resources_server, gym_benchmark) and demo",
            {"not": {"anyOf": list(_SERVER_SOURCES)}},
            *({"allOf": list(two)} for two in combinations(_SERVER_SOURCES, 2)),
        ),
    }

    head_url: Annotated[str, _HEAD_URL] | None = None
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
    """Kind of model server that Gym starts, such as openai_model, if no configuration
    file gives it."""

    gym_agent_type: str | None = None
    """Name of the agent that runs the environment, if there is a choice."""

    gym_overrides: tuple[str, ...] = ()
    """More arguments for `gym env start`, such as ++skip_venv_if_present=true. Give a
    secret by the name of its variable: '++judge_api_key=${oc.env:NAME}'."""

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
    """Folder of the virtual environment that has Gym; use it instead of
    gym_command."""

    start_timeout: Seconds = 600.0
    """How long until every server must be ready, in seconds; on the command line also
    "10m"."""

    def check(self) -> None:
        """Refuse all but one source of servers, and whatever is seen of a secret.

        Raises:
            ConfigError: there are several or none, or a model that is not theirs, or
                a secret is where others see it; it is not said.
        """
        self._check_source()
        self._check_secrets()

    def _check_source(self) -> None:
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
            raise ConfigError(
                "give exactly one of head_url, gym_config (or gym_environment,"
                " gym_resources_server, gym_benchmark) and demo, not"
                f" {' and '.join(chosen) or 'none'}"
            )
        if self.model_url and not self.model:
            raise ConfigError("--model-url needs the name of its model: --model NAME")
        if self.model and self.demo and not self.model_url:
            raise ConfigError("--model with --demo needs --model-url")
        if self.head_url and (self.model or self.model_url):
            raise ConfigError(
                "--model and --model-url only apply to servers that a run starts;"
                " servers at --head-url have their own model"
            )

    def _check_secrets(self) -> None:
        if not _VARIABLE.fullmatch(self.key_variable):
            raise ConfigError(
                "model_api_key_env is the NAME of an environment variable, such as"
                " MODEL_API_KEY, not the key itself"
            )
        for name in ("head_url", "model_url"):
            if has_secret(getattr(self, name) or ""):
                raise ConfigError(
                    f"{name} holds a password or a key, but others can see options; put"
                    " the key into an environment variable, and its name into"
                    " model_api_key_env"
                )
        for override in self.gym_overrides:
            if is_secret_override(override):
                shown = override.partition("=")[0]
                raise ConfigError(
                    f"gym_overrides: {shown} holds a secret, but others can see"
                    " options; put it into an environment variable and give"
                    f" '{shown}=${{oc.env:NAME}}'"
                )

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
