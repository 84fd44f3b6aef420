"""`select`: picks the task rows that a trainer should see from their source file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from reward_profiling.choosing.selection import SelectionSummary, SelectOptions
from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.option_groups import FILES, SELECTION, fields_of
from reward_profiling.cli.terminal.lines import file_lines
from reward_profiling.cli.terminal.screen import out, warn
from reward_profiling.library.selecting import select as select_rows
from reward_profiling.numerics.figures import correlation, percent
from reward_profiling.values import Checked


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectionFiles(Checked):
    """Files of a selection beside the input and the rollouts."""

    inputs: Path | None = None
    """The plan, the materialized inputs. Default: the one beside the rollouts."""

    output: Path | None = None
    """File of the kept rows; the other two are named after it. Default: beside the
    rollouts, as _kept.jsonl, _rejected.jsonl and _undetermined.jsonl."""

    dataset_folder: Path | None = None
    """Also write the kept rows as a folder that Hugging Face's load_dataset takes,
    with a card."""


_FILES = SelectionFiles()
_RULE = SelectOptions()
_OWN = Parameter(group=FILES)


def select(
    *,
    input: Annotated[Path, _OWN],  # noqa: A002 - the flag's name
    rollouts: Annotated[Path, _OWN],
    where: Annotated[SelectionFiles, fields_of(FILES)] = _FILES,
    rule: Annotated[SelectOptions, fields_of(SELECTION)] = _RULE,
) -> int:
    """Sort task rows into kept, rejected and undetermined, by their pass rate.

    The three files add up to the input, and every row keeps its bytes.

    Args:
        input: The task rows that the rollouts were made from.
        rollouts: The collected records, Gym's or ours; their plan is beside them.
        where: Which files are written.
        rule: Which rows are kept, and how they are written.
    """
    summary = select_rows(
        input,
        rollouts,
        rule,
        inputs=where.inputs,
        output=where.output,
        dataset_folder=where.dataset_folder,
    )
    for warning in summary.warnings:
        warn(warning)
    _show(summary)
    return ExitCode.WHOLE


def _show(summary: SelectionSummary) -> None:
    mean = summary.mean_pass_rate
    rate = "" if mean is None else f", mean pass rate {percent(mean)}"
    out.print(
        f"{summary.kept} of {summary.num_rows} rows kept (pass rate in"
        f" {summary.band}){rate}"
    )
    out.print()
    rows = [
        ("kept", str(summary.kept)),
        ("rejected", str(summary.rejected)),
        ("undetermined", str(summary.undetermined)),
        *((f"  {reason}", str(count)) for reason, count in summary.reasons.items()),
    ]
    out.print_table(("rows", "n"), rows)
    old = summary.old_rates
    if old is not None:
        said = (
            ""
            if old.correlation is None
            else f", correlation {correlation(old.correlation)}"
        )
        out.print()
        out.print(
            f"{old.field}: {percent(old.old_mean)} before,"
            f" {percent(old.new_mean)} now"
            f" (n={old.num_rows} rows{said}); {old.num_moved} rows moved into the band"
            " or out of it"
        )
    out.print()
    out.show(file_lines(summary.files))
