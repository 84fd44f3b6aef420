"""`export`: logs a profile's numbers and files to an experiment tracker."""

from pathlib import Path

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.terminal.screen import out
from reward_profiling.errors import ConfigError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.insights_file import read_insights_head
from reward_profiling.reporting.report_run import require_insights
from reward_profiling.reporting.tracking.mlflow_tracker import log_to_mlflow
from reward_profiling.reporting.tracking.tracked_run import tracked_run
from reward_profiling.reporting.tracking.wandb_tracker import log_to_wandb

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
        mlflow: Log to MLflow, at MLFLOW_TRACKING_URI.
        project: Name of the project, or of MLflow's experiment.
        name: Name of the run. Default: the name of the output.
    """
    if not (wandb or mlflow):
        raise ConfigError("give a tracker: --wandb, --mlflow, or both")
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
