"""Where the shards of a run are collected: here, on a cluster, or by workers.

Outside the run's process, one process at a time collects a shard; if it dies, the shard
is restarted, a limited number of times.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Annotated, Literal

from annotated_types import Ge, Le

from reward_profiling.errors import ConfigError
from reward_profiling.fitting import matching_text
from reward_profiling.texts.secret_values import has_secret, secret_values
from reward_profiling.values import Checked, JsonObject, Name, Seconds

Runner = Literal["threads", "dask", "ray", "slurm", "work-pool"]
_WITH_ADDRESS = ("dask", "ray")
_DEPLOYMENT = matching_text(r"^[^/]+/[^/]+$", "FLOW/NAME")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpreadOptions(Checked):
    """Where the shards of a run are collected.

    Outside the run's own process, every machine must see the output's folder and the
    servers. Everyone who sees the run sees its options: never put a secret here.
    """

    runner: Runner = "threads"
    """Where shards are collected: side by side in the run's own process ("threads"); on
    Dask, Ray or Slurm (extras [dask], [ray] and [slurm]); or as runs of a deployment,
    by the workers of its work pool ("work-pool")."""

    runner_address: Name | None = None
    """Scheduler of a running Dask cluster, such as tcp://10.0.0.5:8786, or a running
    Ray, such as ray://10.0.0.5:10001. Default: a cluster on this machine, for this run.
    """

    runner_settings: JsonObject = field(default_factory=dict)
    """JSON object with more settings of the runner: for Slurm's jobs, such as
    {"slurm_partition": "cpu", "timeout_min": 240}; for the cluster that Dask or Ray
    starts; or the job variables of a work pool's runs."""

    shard_deployment: Annotated[str, _DEPLOYMENT] = "collect-shard/collect-shard"
    """Deployment whose runs collect the shards on a work pool, as FLOW/NAME."""

    shard_restarts: Annotated[int, Ge(0), Le(100)] = 3
    """Times that a shard is started again when the process that collects it died."""

    shard_silence: Annotated[Seconds, Ge(5)] = 60.0
    """How long a shard that is collected elsewhere may be silent before it counts as
    dead; in seconds, on the command line also "2m"."""

    worker_patience: Seconds = 600.0
    """How long a shard may wait for a worker while no other shard runs; then it is
    submitted again, as if its worker had died."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether shards are collected in other processes than the run's own."""
        return self.runner != "threads"

    def check(self) -> None:
        """Refuse what does not fit the runner, and whatever is seen of a secret.

        Raises:
            ConfigError: something does not, or a secret is where others see it; it is
                not said.
        """
        self._check_fitting()
        self._check_secrets()

    def _check_fitting(self) -> None:
        if self.runner_address and self.runner not in _WITH_ADDRESS:
            raise ConfigError(
                f"runner_address is for {' and '.join(_WITH_ADDRESS)}, not for"
                f" {self.runner}"
            )
        if self.runner_settings and not self.is_elsewhere:
            raise ConfigError("runner_settings have no effect on the runner threads")

    def _check_secrets(self) -> None:
        if has_secret(self.runner_address or ""):
            raise ConfigError(
                "runner_address holds a password or a key, and options can be seen by"
                " others; let the cluster's own configuration file hold it"
            )
        if secret_values(self.runner_settings):
            raise ConfigError(
                "runner_settings hold a secret, but others can see options; put it into"
                " the environment of the workers"
            )


class Fate(Enum):
    """What a look at a shard's run says is to be done."""

    WAIT = auto()
    """Nothing: it waits its turn, or works."""
    ENDED = auto()
    """It came to its end and left its summary."""
    DEAD = auto()
    """Its process died: start the shard again, or give it up for this run."""
    UNCLAIMED = auto()
    """No worker took it in time: submit it again, or give it up for this run."""
    BROKEN = auto()
    """It failed with an error that starting again would not mend."""
    CANCELLED = auto()
    """A person cancelled it: leave it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What can be seen of a shard's run at one moment."""

    state: str
    """Type of the run's state in Prefect, such as RUNNING."""

    has_summary: bool = False
    """Whether the shard's summary lies beside its records."""

    seconds: float = 0.0
    """How long ago the last sign was that it goes on: that the state began, that the
    shard's lock was renewed, or, where it waits for a worker, that a sibling worked."""


def fate(look: Look, options: SpreadOptions) -> Fate:
    """Say what becomes of a shard whose run looks like this."""
    if look.has_summary or look.state == "COMPLETED":
        return Fate.ENDED
    if look.state in _LIMITS:
        limit, late = _LIMITS[look.state]
        is_late = look.seconds > limit(options)
        return late if is_late else Fate.WAIT
    return _ENDS.get(look.state, Fate.DEAD)


_SUMMARY_SECONDS = 15.0
"""How much later than the run's state its summary may be seen on a shared folder."""
_LIMITS: dict[str, tuple[Callable[[SpreadOptions], float], Fate]] = {
    "SCHEDULED": (lambda options: options.worker_patience, Fate.UNCLAIMED),
    "PENDING": (lambda options: options.worker_patience, Fate.UNCLAIMED),
    "PAUSED": (lambda _: math.inf, Fate.WAIT),
    "RUNNING": (lambda options: options.shard_silence, Fate.DEAD),
    "FAILED": (lambda _: _SUMMARY_SECONDS, Fate.BROKEN),
}
"""By state: how long it may last, and what it means when it lasts longer."""
_ENDS = {"CANCELLED": Fate.CANCELLED, "CANCELLING": Fate.CANCELLED}


@dataclass(frozen=True, kw_only=True, slots=True)
class Leader(Checked):
    """The run that a shard is collected for, as the shard knows it."""

    token: str
    """What the lock of the output says while that run holds it."""

    silence_seconds: float
    """How long the run, or the shard, may be silent until it counts as dead."""
