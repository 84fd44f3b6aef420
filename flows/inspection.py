"""What `inspect` shows of an output: its files, how complete it is, its profiles."""

from itertools import islice
from pathlib import Path
from typing import Any

from rich.text import Text

from flows.exit_codes import ExitCode
from flows.terminal import out, show_table
from tasks.adapters.jsonl import located, parse_object, read_lines
from tasks.adapters.run_directory import RunFiles
from tasks.core import wire
from tasks.core.errors import ConfigError
from tasks.core.records import rollout_key
from tasks.operations.gym_health import read_gym_health
from tasks.operations.ledgers import read_ledger

_SHOWN_PROFILES = 10
_UNKNOWN = "unknown"


def show_output(files: RunFiles) -> int:
    """Print an output's files with their line counts, its completion and profiles.

    Raises:
        ConfigError: there is nothing at that path.
        RecordError: a line cannot be read; names file and line.
    """
    paths = [
        files.rollouts, files.materialized_inputs, files.failures, files.damaged,
        files.timings, files.aggregate_metrics, files.reward_profiling,
        files.agent_metrics,
        files.repeat_level_metrics, files.run,
    ]  # fmt: skip
    present = [path for path in paths if path.exists()]
    present += [part.rollouts for part in files.shards()]
    if not present:
        raise ConfigError(f"nothing was written for {files.rollouts} yet")
    rows = [(path.name, _count(path), _size(path)) for path in present]
    show_table(("file", "lines", "size"), rows)
    is_partial = _show_completion(files)
    _show_health(files)
    _show_profiles(files.reward_profiling, files.rollouts)
    return ExitCode.PARTIAL if is_partial else ExitCode.WHOLE


def _count(path: Path) -> str:
    return f"{sum(1 for _ in read_lines(path)):,}"


def _size(path: Path) -> str:
    size = path.stat().st_size
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} B"


def _show_completion(files: RunFiles) -> bool:
    """Print how much of the plan is collected; say whether something is not."""
    if not files.materialized_inputs.exists():
        return False
    ledger = read_ledger(files)
    planned = collected = given_up = 0
    for line in read_lines(files.materialized_inputs):
        with located(files.materialized_inputs, line.number):
            key = rollout_key(parse_object(line.text))
        planned += 1
        collected += key in ledger.collected
        given_up += key not in ledger.collected and ledger.is_given_up(key)
    share = f" ({100 * collected / planned:.1f} %)" if planned else ""
    parts = [f"{collected} of {planned} planned rollouts collected{share}"]
    if planned - collected - given_up:
        parts.append(f"{planned - collected - given_up} owed")
    if given_up:
        parts.append(f"{given_up} given up")
    out.print()
    style = "yellow" if collected < planned else "green"
    out.print(Text(", ".join(parts), style=f"bold {style}"))
    return collected < planned


def _show_health(files: RunFiles) -> None:
    """Print the verdicts of Gym's own health check, where there are any."""
    health = read_gym_health(files)
    if health is None:
        return
    counts = [f"{count} {verdict}" for verdict, count in health.verdicts.items()]
    said = ", ".join(counts) or "no rollouts"
    style = "yellow" if health.verdicts.get("unhealthy") else "default"
    out.print(Text(f"Gym's health check: {said}", style=style))
    for check, count in health.issues.items():
        out.print(Text(f"  {count} {check}", style=style))
    for rollout, found in health.unhealthy:
        out.print(Text(f"  {rollout}: {found}", style="dim"))


def _show_profiles(path: Path, rollouts: Path) -> None:
    if not path.exists():
        return
    profiles = [
        parse_object(line.text)
        for line in islice(read_lines(path), _SHOWN_PROFILES + 1)
    ]
    out.print()
    if rollouts.exists() and rollouts.stat().st_mtime > path.stat().st_mtime:
        said = "the profile is older than the records; `profile` them again"
        out.print(Text(said, style="yellow"))
    show_table(
        ("task", "rollouts", "mean", "std", "min", "max", "input"),
        [_cells(profile) for profile in profiles[:_SHOWN_PROFILES]],
        last_is_prose=True,
    )
    if len(profiles) > _SHOWN_PROFILES:
        out.print(f"  … the rest is in {path.name}", style="dim")


def _cells(profile: dict[str, Any]) -> tuple[str, ...]:
    count = f"{profile.get('num_rollouts')}/{profile.get('expected_num_rollouts')}"
    agent = profile.get(wire.AGENT_REF, {}).get("name")
    task = str(profile.get(wire.TASK_INDEX)) + (f" {agent}" if agent else "")
    numbers = (_number(profile, name) for name in ("mean", "std", "min", "max"))
    return (task, count, *numbers, _prompt(profile.get("sample", {})))


def _number(profile: dict[str, Any], statistic: str) -> str:
    value = profile.get(f"{statistic}/{wire.REWARD}")
    if statistic == "std" and profile.get("num_rollouts") == 1:
        return _UNKNOWN  # Gym writes 0.0 here; one rollout has no spread
    return _UNKNOWN if value is None else f"{value:.3f}"


def _prompt(sample: dict[str, Any]) -> str:
    """Return the beginning of the task's last message, on one line."""
    given = (sample.get(wire.PARAMS) or {}).get("input", "")
    if isinstance(given, list) and given and isinstance(given[-1], dict):
        given = given[-1].get("content", "")
    if isinstance(given, list):
        texts = [part.get("text", "") for part in given if isinstance(part, dict)]
        given = " ".join(str(text) for text in texts if text)
    return " ".join(str(given).split())
