"""An output on disk, opened to look at: its table, its tasks, what its rewards say."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reward_profiling.errors import ConfigError
from reward_profiling.files.parquet import ParquetError, read_table
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.document import Insights
from reward_profiling.insights.insights_file import read_insights
from reward_profiling.insights.task_insights import TaskInsight
from reward_profiling.profiling.finding import Finding

if TYPE_CHECKING:
    from arro3.core import Table


class Output:
    """An output that was profiled: `profile` writes what is read here."""

    def __init__(self, path: Path | str) -> None:
        """Open an output by its rollouts file.

        Raises:
            ConfigError: the path is a folder, or the name of another of its files.
        """
        self.files = RunFiles(Path(path))
        """Where its files lie."""

    def rollouts(self) -> "Table":
        """Return one row per planned rollout: an Arrow table, read when asked for.

        It has Arrow's C stream interface: `polars.DataFrame(table)` and
        `pyarrow.table(table)` take its memory as it is, and DuckDB queries it by name.

        Raises:
            ConfigError: it was not written yet, or was changed since.
        """
        path = self.files.rollout_metrics
        try:
            return read_table(path)
        except FileNotFoundError as error:
            raise ConfigError(self._no(path)) from error
        except ParquetError as error:
            raise ConfigError(f"{path} {error}; run `profile --rebuild`") from error

    @cached_property
    def insights(self) -> Insights:
        """What the rewards say: the run, its agents, metrics, findings and tasks.

        Raises:
            ConfigError: they were not written yet, or cannot be read.
            RecordError: they are damaged, or of another version; names the file.
        """
        if not self.files.insights.exists():
            raise ConfigError(self._no(self.files.insights))
        return read_insights(self.files.insights)

    @property
    def tasks(self) -> tuple[TaskInsight, ...]:
        """One for each (task, agent), in key order, then by agent."""
        return self.insights.tasks

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What to know before the numbers are trusted, the worst first."""
        return self.insights.findings

    def __repr__(self) -> str:
        """Name it by its rollouts file."""
        return f"Output({str(self.files.rollouts)!r})"

    def _no(self, path: Path) -> str:
        rollouts = self.files.rollouts
        if not rollouts.exists():
            return f"No output at {rollouts}; collect it first."
        return f"{path} does not exist; run `profile --insights` on {rollouts} first."


def open_output(path: Path | str) -> Output:
    """Open an output by its rollouts file.

    Raises:
        ConfigError: the path is a folder, or the name of another of its files.
    """
    return Output(path)
