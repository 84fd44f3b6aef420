"""Weights & Biases: a profile becomes a run with numbers and an artifact of files.

The package is an extra. Its own settings count, such as WANDB_MODE=offline and
WANDB_DIR; its key is never seen here.
"""

import re
from importlib import import_module
from typing import Any

from reward_profiling.errors import ConfigError
from reward_profiling.reporting.tracking.tracked_run import TrackedRun

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def log_to_wandb(run: TrackedRun) -> str:
    """Log a run, and return where it is seen.

    Raises:
        ConfigError: the package is not installed, or refuses.
    """
    wandb = _package()
    try:
        with wandb.init(
            project=run.project, name=run.name, config=dict(run.settings)
        ) as logged:
            logged.summary.update(dict(run.metrics))
            name = _NOT_IN_NAMES.sub("-", run.name) or "profile"
            artifact = wandb.Artifact(name, type="reward-profile")
            for path in run.files:
                artifact.add_file(path)
            logged.log_artifact(artifact)
            return str(logged.url or logged.dir)
    except wandb.Error as error:
        raise ConfigError(f"Weights & Biases refuses: {error}") from error


def _package() -> Any:  # noqa: ANN401 - a module without types
    try:
        return import_module("wandb")
    except ImportError as error:
        raise ConfigError(
            "wandb is not installed; install gym-reward-profiling[wandb]"
        ) from error
