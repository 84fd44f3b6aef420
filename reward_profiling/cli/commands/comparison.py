"""`compare`: is a candidate better than a baseline, and could these runs tell."""

import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.choosing.comparing.judgement import judgement_in_words
from reward_profiling.choosing.comparison import (
    CompareOptions,
    Comparison,
    Difference,
    Flip,
)
from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.option_groups import COMPARISON, FILES, fields_of
from reward_profiling.cli.terminal.lines import StyledLine, file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.library.comparing import compare as compare_outputs
from reward_profiling.numerics.figures import (
    figure,
    is_residue,
    setting,
    signed_figure,
)

_RULE = CompareOptions()
_OWN = Parameter(group=FILES)
_CODES = {
    None: ExitCode.WHOLE,
    "PASS": ExitCode.WHOLE,
    "REGRESSED": ExitCode.REGRESSED,
    "INCONCLUSIVE": ExitCode.INCONCLUSIVE,
}
_STYLES = {"PASS": "green", "REGRESSED": "bold red", "INCONCLUSIVE": "yellow"}
_SHOWN = 10


def compare(
    *,
    baseline: Annotated[Path, _OWN],
    candidate: Annotated[Path, _OWN],
    json: Annotated[Path | None, _OWN] = None,
    rule: Annotated[CompareOptions, fields_of(COMPARISON)] = _RULE,
) -> int:
    """Compare two outputs on the tasks that both scored, paired by what they say.

    With --max-regression the exit code is the verdict: 0 PASS, 5 REGRESSED, 6
    INCONCLUSIVE.

    Args:
        baseline: The rollouts file to compare with; its plan lies beside it.
        candidate: The rollouts file that is judged; its plan lies beside it.
        json: Write the whole comparison into this file, every flip and every task that
            only one of them has.
        rule: What is compared, and what is too much worse.
    """
    found = compare_outputs(baseline, candidate, rule, json=json)
    for warning in found.warnings:
        warn(warning)
    _show(found)
    if json is not None:
        out.show(file_lines([json]))
    return _CODES[found.judgement]


def _show(found: Comparison) -> None:
    out.show(_verdict(found))
    out.print()
    rows = [_cells(one) for one in (*found.agents, found.overall)]
    out.print_table(
        ("agent", "tasks", "before", "now", "change", "gained", "lost"), rows
    )
    out.print()
    for line in _notes(found):
        for part in textwrap.wrap(line, out.width - 1):
            out.print(f" {part}", "dim")
    _show_flips(found.flips)
    _show_alone(found)


def _verdict(found: Comparison) -> Iterator[StyledLine]:
    judgement = found.judgement or ""
    said = f"{judgement} {judgement_in_words(found)}".lstrip()
    first, *rest = textwrap.wrap(said, out.width)
    style = _STYLES.get(judgement, "")
    yield StyledLine(first.removeprefix(judgement), label=judgement, label_style=style)
    yield from map(StyledLine, rest)


def _cells(one: Difference) -> tuple[str, ...]:
    error = ""
    if one.standard_error and not is_residue(one.standard_error, one.baseline_mean):
        error = f" ± {figure(one.standard_error)}"
    return (
        one.agent or "all tasks",
        str(one.num_tasks),
        figure(one.baseline_mean),
        figure(one.candidate_mean),
        f"{signed_figure(one.difference)}{error}",
        str(one.mcnemar.gained),
        str(one.mcnemar.lost),
    )


def _notes(found: Comparison) -> list[str]:
    overall = found.overall
    notes = [overall.caution] if overall.caution else []
    if overall.mcnemar.p_value is not None:
        notes.append(
            f"tasks that most rollouts pass: {overall.mcnemar.gained} gained,"
            f" {overall.mcnemar.lost} lost, p = {figure(overall.mcnemar.p_value)}"
            " (exact McNemar)"
        )
    if overall.detectable is not None:
        notes.append(
            f"these {overall.num_tasks} tasks find a difference of"
            f" {figure(overall.detectable)} four times in five"
        )
    margin = found.max_regression or 0.0
    if overall.tasks_needed is not None and found.judgement == "INCONCLUSIVE":
        notes.append(
            f"a difference of {setting(margin)} would take"
            f" {overall.tasks_needed} such tasks"
        )
    return notes


def _show_flips(flips: tuple[Flip, ...]) -> None:
    if not flips:
        return
    out.print()
    rows = [
        (
            "lost" if flip.is_lost else "gained",
            f"{flip.agent} {flip.candidate_task}",
            f"{flip.baseline_passed}/{flip.baseline_scored}",
            f"{flip.candidate_passed}/{flip.candidate_scored}",
            flip.label or "",
        )
        for flip in flips[:_SHOWN]
    ]
    head = ("flip", "task", "before", "now", "input")
    out.print_table(head, rows, last_is_prose=True)
    if len(flips) > _SHOWN:
        more = f"  … and {len(flips) - _SHOWN} more; --json FILE lists them all"
        out.print(more, style="dim")


def _show_alone(found: Comparison) -> None:
    for unpaired, name in (
        (found.only_baseline, "baseline"),
        (found.only_candidate, "candidate"),
    ):
        reasons = Counter(task.reason for task in unpaired)
        for reason, count in reasons.most_common():
            out.print()
            tasks = "1 task" if count == 1 else f"{count} tasks"
            said = f"{tasks} of the {name} not compared: {reason}"
            out.print(said, "yellow")
