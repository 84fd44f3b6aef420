"""`inspect`: shows an output's files, its completion and the results of its tasks."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.terminal.screen import out
from reward_profiling.files.run_files import RunFiles
from reward_profiling.numerics.figures import figure, percent
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.gym_health import read_gym_health
from reward_profiling.reporting.inspection import (
    FileGlance,
    NamedTask,
    Overview,
    output_named,
    overview,
)
from reward_profiling.reporting.overview import Tenth
from reward_profiling.reporting.summary_words import COLUMNS, agent_cells, notices

_BAR = "█"
_PARTS = " ▏▎▍▌▋▊▉"
_BAR_WIDTH = 40
_READING = ProfileOptions()
_OF_A_RUN = ("findings", "stopped", "is_failed")


def inspect(
    output: Path,
    /,
    *,
    pass_threshold: float = _READING.pass_threshold,
    json: bool = False,
) -> int:
    """Show an output: its files, how complete it is, and how its tasks did.

    Args:
        output: The rollouts file, or its folder.
        pass_threshold: A rollout passes when its reward is at least this.
        json: Print one JSON object, for machines.
    """
    reading = ProfileOptions(pass_threshold=pass_threshold)  # which refuses "nan"
    files = output_named(output)
    found = overview(files, pass_threshold=reading.pass_threshold)
    if json:
        said = msgspec.json.encode(_told(found))
        sys.stdout.buffer.write(msgspec.json.format(said))
        sys.stdout.buffer.write(b"\n")
    else:
        _show(found, files)
    is_partial = found.counts is not None and found.counts.is_partial
    return ExitCode.PARTIAL if is_partial else ExitCode.WHOLE


def _told(found: Overview) -> dict[str, Any]:
    """Return an overview as JSON has it; how a run ended is not in its files."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    for name in _OF_A_RUN if told["counts"] else ():
        del told["counts"][name]
    return told


def _show(found: Overview, files: RunFiles) -> None:
    rows = [
        (file.name, f"{file.num_lines:,}" if file.num_lines else "", _size(file))
        for file in found.files
    ]
    out.print_table(("file", "lines", "size"), rows)
    if found.counts is not None:
        out.print()
        _show_completion(found, found.counts)
    _show_health(files)
    if found.is_outdated:
        said = "the profile is older than the records; run `profile` again"
        out.print(said, "yellow")
    if found.counts is not None:
        _show_tasks(found, found.counts)


def _size(file: FileGlance) -> str:
    size = file.num_bytes
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} B"


def _show_completion(found: Overview, counts: RunSummary) -> None:
    """Print how much of the plan there is, and what is not."""
    share = f" ({percent(counts.collected / counts.planned)})" if counts.planned else ""
    parts = [
        f"{counts.collected} of {counts.planned} planned rollouts collected{share}"
    ]
    for count, words in (
        (found.num_owed, "owed"),
        (found.num_given_up, "given up"),
        (counts.masked, "masked"),
        (counts.unscored, "without a usable reward"),
    ):
        if count:
            parts.append(f"{count} {words}")
    style = "yellow" if counts.is_partial else "green"
    out.print(", ".join(parts), f"bold {style}")
    for notice in notices(counts):
        out.print(f"  ! {notice}", "yellow")


def _show_health(files: RunFiles) -> None:
    """Print the verdicts of Gym's own health check, where there are any."""
    health = read_gym_health(files)
    if health is None:
        return
    counts = [f"{count} {verdict}" for verdict, count in health.verdicts.items()]
    said = ", ".join(counts) or "no rollouts"
    style = "yellow" if health.verdicts.get("unhealthy") else "default"
    out.print(f"Gym's health check: {said}", style)
    for check, count in health.issues.items():
        out.print(f"  {count} {check}", style)
    for rollout, found in health.unhealthy:
        out.print(f"  {rollout}: {found}", "dim")


def _show_tasks(found: Overview, counts: RunSummary) -> None:
    out.print()
    out.print_table(COLUMNS, [agent_cells(agent) for agent in counts.agents])
    if not found.tenths:
        return
    out.print()
    scored = counts.num_scored_tasks
    out.print(f" mean reward of {_tasks(scored)}", "bold")
    for line in reward_bars(found.tenths, min(_BAR_WIDTH, out.width - 30)):
        out.print(f" {line}")
    for title, tasks in (
        ("most solved", found.most_solved),
        ("least solved", found.least_solved),
    ):
        if tasks:
            out.print()
            _show_named(title, tasks)


def _tasks(count: int) -> str:
    return f"{count} task" + "s" * (count != 1)


def reward_bars(tenths: Iterable[Tenth], width: int) -> list[str]:
    """Return a line for each tenth: its bounds, a bar, and how many tasks it has.

    The longest bar has `width` characters; a tenth with tasks has at least a sliver.
    """
    listed = list(tenths)
    most = max(tenth.num_tasks for tenth in listed)
    bounds = [f"{figure(tenth.low)} to {figure(tenth.high)}" for tenth in listed]
    column = max(map(len, bounds))
    return [
        f"{bound:>{column}}  {_bar(tenth.num_tasks, most, width)} {tenth.num_tasks}"
        for bound, tenth in zip(bounds, listed, strict=True)
    ]


def _bar(count: int, most: int, width: int) -> str:
    eighths = max(8 * width * count // most, 1) if count else 0
    return _BAR * (eighths // 8) + _PARTS[eighths % 8].strip()


def _show_named(title: str, tasks: Iterable[NamedTask]) -> None:
    rows = [task_cells(named) for named in tasks]
    head = (title, "scored", "mean", "pass", "input")
    out.print_table(head, rows, last_is_prose=True)


def task_cells(named: NamedTask) -> tuple[str, ...]:
    """Return the row of a task that is named."""
    return (
        str(named.task.task_index),
        f"{named.task.scored}/{named.task.planned}",
        figure(named.task.mean_reward),
        percent(named.task.pass_rate),
        named.label,
    )
