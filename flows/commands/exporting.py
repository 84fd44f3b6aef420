"""`export`: a profile's numbers and files into a tracker of runs."""

from pathlib import Path

from flows.exit_codes import ExitCode
from flows.terminal import out
from tasks.adapters.insights_file import read_insights_head
from tasks.adapters.run_directory import RunFiles
from tasks.adapters.tracking_mlflow import log_to_mlflow
from tasks.adapters.tracking_wandb import log_to_wandb
from tasks.core.errors import ConfigError
from tasks.core.tracking import tracked_run
from tasks.operations.report_run import require_insights

_PROJECT = "reward-profiling"


def export(
    output: Path,
    /,
    *,
    wandb: bool = False,
    mlflow: bool = False,
    project: str = _PROJECT,
    name: str | None = None,
) -> int:
    """Log an output's numbers and files to Weights & Biases, to MLflow, or to both.

    Args:
        output: The rollouts file; `run` or `profile` wrote its insights beside it.
        wandb: Log to Weights & Biases; WANDB_MODE=offline keeps it on this machine.
        mlflow: Log to MLflow, where MLFLOW_TRACKING_URI says.
        project: Name of the project, or of MLflow's experiment.
        name: Name of the run. Default: that of the output.
    """
    if not (wandb or mlflow):
        raise ConfigError("say where to: --wandb, --mlflow, or both")
    files = RunFiles(output)
    require_insights(files)
    head = read_insights_head(files.insights)
    run = tracked_run(head, tuple(map(str, _files(files))), project, name)
    for is_asked, tracker, log in (
        (wandb, "Weights & Biases", log_to_wandb),
        (mlflow, "MLflow", log_to_mlflow),
    ):
        if is_asked:
            out.print(f"{len(run.metrics)} numbers logged to {tracker}: {log(run)}")
    return ExitCode.WHOLE


def _files(files: RunFiles) -> list[Path]:
    """Return what a profile wrote; not the rollouts, which may be huge."""
    candidates = (
        files.insights,
        files.reward_profiling,
        files.agent_metrics,
        files.repeat_level_metrics,
        files.aggregate_metrics,
        files.run,
    )
    return [path for path in candidates if path.exists()]
