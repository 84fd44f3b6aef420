"""The files of one output, all named from the rollouts file (`gym-contract.md` §1)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from reward_profiling.errors import ConfigError
from reward_profiling.files.shard_names import (
    Dealt,
    dealt_of,
    shard_pattern,
    shard_stem,
    whole_stem,
)

_PLAN = "_materialized_inputs.jsonl"
_VERDICTS = "rollout_verdicts.jsonl"
_DERIVED = (
    _PLAN,
    "_failures.jsonl",
    "_aggregate_metrics.json",
    "_reward_profiling.jsonl",
    "_agent_metrics.json",
    "_repeat_level_metrics.json",
    "_rollout_metrics.parquet",
    "_insights.json",
    "_report.html",
    "_run.json",
    ".damaged.jsonl",
    "_servers.log",
    "_timings.jsonl",
    "_comparison.json",
)
_SELECTED = ("_kept.jsonl", "_rejected.jsonl", "_undetermined.jsonl")


class RunFiles(msgspec.Struct, frozen=True):
    """Where an output's files lie; `rollouts` is what `--output` names."""

    rollouts: Path

    def __post_init__(self) -> None:
        """Refuse a name that is a folder or one of the derived names.

        Raises:
            ConfigError: the path cannot be an output.
        """
        if self.rollouts.name.endswith(_DERIVED):
            raise ConfigError(
                f"{self.rollouts} is the name of a file derived from an output;"
                " --output names the rollouts file itself, such as rollouts.jsonl"
            )
        if self.rollouts.exists() and not (
            self.rollouts.is_file() or self.rollouts.is_dir()
        ):
            raise ConfigError(
                f"{self.rollouts} is no regular file, and an output is read again and"
                " cut where it was damaged; name a file"
            )
        if self.rollouts.is_dir():
            raise ConfigError(
                f"{self.rollouts} is a folder; name a file in it, such as"
                f" {self.rollouts / 'rollouts.jsonl'}"
            )

    def _beside(self, suffix: str) -> Path:
        return self.rollouts.with_name(self.rollouts.stem + suffix)

    @property
    def materialized_inputs(self) -> Path:
        """The plan: one line per planned rollout, in dispatch order."""
        return self._beside("_materialized_inputs.jsonl")

    @property
    def failures(self) -> Path:
        """One line per failed attempt."""
        return self._beside("_failures.jsonl")

    @property
    def damaged(self) -> Path:
        """Lines set aside because they could not be read."""
        return self._beside(".damaged.jsonl")

    @property
    def aggregate_metrics(self) -> Path:
        """The environment servers' own metrics."""
        return self._beside("_aggregate_metrics.json")

    @property
    def reward_profiling(self) -> Path:
        """One line per task: the reward profile."""
        return self._beside("_reward_profiling.jsonl")

    @property
    def agent_metrics(self) -> Path:
        """One entry per agent."""
        return self._beside("_agent_metrics.json")

    @property
    def repeat_level_metrics(self) -> Path:
        """One entry per agent and repeat."""
        return self._beside("_repeat_level_metrics.json")

    @property
    def rollout_metrics(self) -> Path:
        """One row per planned rollout, in columns: a table to analyse, and a cache."""
        return self._beside("_rollout_metrics.parquet")

    @property
    def insights(self) -> Path:
        """The insights: one object, `insights.document.Insights`."""
        return self._beside("_insights.json")

    @property
    def report(self) -> Path:
        """The report: the insights as a page, in one file."""
        return self._beside("_report.html")

    @property
    def run(self) -> Path:
        """What the plan was made from."""
        return self._beside("_run.json")

    @property
    def comparison(self) -> Path:
        """How the output compares with its baseline."""
        return self._beside("_comparison.json")

    @property
    def timings(self) -> Path:
        """How long each finished rollout took.

        A shard's file is hidden, because Gym reads every `*-shard-*.jsonl` as records.
        """
        timings = self._beside("_timings.jsonl")
        return timings.with_name(f".{timings.name}") if self.dealt else timings

    @property
    def server_log(self) -> Path:
        """What servers that were started for this output printed."""
        return self._beside("_servers.log")

    @property
    def quality_summary(self) -> Path:
        """What Gym's health check found; one fixed name in a folder."""
        return self.rollouts.with_name("quality_summary.json")

    @property
    def rollout_verdicts(self) -> Path:
        """Gym's verdict on each rollout; one fixed name in a folder."""
        return self.rollouts.with_name(_VERDICTS)

    @property
    def server_logs(self) -> Path:
        """Folder in which each server that was started has a log of its own."""
        return self._beside("_server_logs")

    @property
    def lock(self) -> Path:
        """Held by the process that writes the output."""
        return self.rollouts.with_name(f".{self.rollouts.name}.lock")

    @property
    def dealt(self) -> Dealt | None:
        """Which shard it is; None of a whole output."""
        return dealt_of(self.rollouts.stem)

    def shard(self, index: int, count: int) -> "RunFiles":
        """Return the files of one shard; the only shard is the output itself."""
        if count == 1:
            return self
        stem = shard_stem(self.rollouts.stem, Dealt(index, count))
        return RunFiles(self.rollouts.with_name(f"{stem}.jsonl"))

    def shards(self) -> list["RunFiles"]:
        """Return the shards on disk, whatever number they were dealt into."""
        pattern = f"{shard_pattern(self.rollouts.stem)}.jsonl"
        found = sorted(self.rollouts.parent.glob(pattern))
        return [RunFiles(path) for path in found if dealt_of(path.stem)]


def record_files(given: Path) -> list[Path]:
    """Return a file of records, or those of a folder, in order of name.

    Other files with names that Gym or this program gives are left out.

    Raises:
        ConfigError: a folder holds none.
    """
    if not given.is_dir():
        return [given]
    found = sorted(path for path in given.glob("*.jsonl") if _may_be_records(path))
    if not found:
        raise ConfigError(f"{given} holds no rollouts file (*.jsonl); give another one")
    return found


def _may_be_records(path: Path) -> bool:
    name = path.name
    if name.startswith(".") or name == _VERDICTS or name.endswith(_DERIVED):
        return False
    if name.endswith(_SELECTED) and not path.with_name(path.stem + _PLAN).exists():
        return False
    return (
        path.is_file() or not path.exists()
    )  # keep a dangling link, so that the error names it


def plans_in(folder: Path) -> list[Path]:
    """Return the plans of the outputs that lie in a folder; of shards, the whole's."""
    found = sorted(p for p in folder.glob(f"*{_PLAN}") if not p.name.startswith("."))
    whole = [p for p in found if dealt_of(p.name.removesuffix(_PLAN)) is None]
    return whole or found


def output_of(rollouts: Sequence[Path]) -> Path:
    """Return the output that files of records belong to: the one with a plan.

    That is a file itself, the output that it is a shard of, or the only one in its
    folder; without any plan it is the first file.
    """
    for path in rollouts:
        whole = path.with_name(whole_stem(path.stem) + path.suffix)
        for output in (path, whole):
            if not output.is_dir() and RunFiles(output).materialized_inputs.exists():
                return output
    folder = rollouts[0].parent
    plans = plans_in(folder)
    if len(plans) == 1:
        return output_planned_by(plans[0])
    return rollouts[0]


def output_planned_by(plan: Path) -> Path:
    """Return the output whose plan lies at a path."""
    return plan.with_name(f"{plan.name.removesuffix(_PLAN)}.jsonl")
