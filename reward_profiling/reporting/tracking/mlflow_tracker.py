"""MLflow: a profile becomes a run with parameters, metrics and files.

The package is an extra. Its own settings count, such as MLFLOW_TRACKING_URI; without
one it writes into the working directory.
"""

import re
from importlib import import_module
from typing import Any

from reward_profiling.errors import ConfigError
from reward_profiling.reporting.tracking.tracked_run import TrackedRun

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_./ -]+")
"""Characters that MLflow takes in no name of a metric."""


def log_to_mlflow(run: TrackedRun) -> str:
    """Log a run, and return its id and where it is stored.

    Raises:
        ConfigError: the package is not installed, or refuses.
    """
    mlflow = _package("mlflow")
    refusal = _package("mlflow.exceptions").MlflowException
    try:
        mlflow.set_experiment(run.project)
        with mlflow.start_run(run_name=run.name) as logged:
            mlflow.log_params(dict(run.settings))
            mlflow.log_metrics(
                {_NOT_IN_NAMES.sub("-", key): v for key, v in run.metrics.items()}
            )
            for path in run.files:
                mlflow.log_artifact(path)
            return f"{logged.info.run_id} in {mlflow.get_tracking_uri()}"
    except refusal as error:
        raise ConfigError(f"MLflow refuses: {error}") from error


def _package(name: str) -> Any:  # noqa: ANN401 - a module without types
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            "mlflow is not installed; install gym-reward-profiling[mlflow]"
        ) from error
