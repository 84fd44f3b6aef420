"""Select: a source file's rows are dealt into kept, rejected and undetermined.

The three files add up to the source: every row of it stands in exactly one of them, in
the bytes that it had.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import orjson

from reward_profiling import wire
from reward_profiling.choosing.dataset_folder import Columns, card
from reward_profiling.choosing.row_matching import (
    PlannedContents,
    SourceRow,
    TaskIndex,
    contents_of,
    given_index,
    match_rows,
)
from reward_profiling.choosing.selection import (
    VERDICTS,
    Counts,
    Judged,
    SelectionSummary,
    SelectOptions,
    Verdict,
    compare_rates,
    earlier_rate,
    judge,
    mean_rate,
    ordered,
)
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    read_lines,
    replace_bytes,
    replace_file,
    replace_rows,
)
from reward_profiling.files.line_edits import with_member, without_members
from reward_profiling.files.run_files import RunFiles
from reward_profiling.insights.table_reading import as_read
from reward_profiling.insights.units import units_of
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.table_of_output import read_rollout_table

CountsByTask = Mapping[TaskIndex, Mapping[str, Counts]]
"""What decides about each task, by the agent that ran it."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Where a selection is written."""

    kept: Path
    rejected: Path
    undetermined: Path
    dataset_folder: Path | None = None

    @classmethod
    def beside(cls, files: RunFiles, output: Path | None) -> "Targets":
        """Return the files named from `output`, or from the rollouts file."""
        if output is None:
            path = files.rollouts
            kept = path.with_name(f"{path.stem}_kept.jsonl")
        else:
            path = kept = output
        names = [f"{path.stem}_{kind}.jsonl" for kind in ("rejected", "undetermined")]
        return cls(kept, *(kept.with_name(name) for name in names))

    def of(self, verdict: Verdict) -> Path:
        """Return the file of a verdict."""
        return {
            "kept": self.kept,
            "rejected": self.rejected,
            "undetermined": self.undetermined,
        }[verdict]

    @property
    def paths(self) -> list[Path]:
        """The three files."""
        return [self.of(verdict) for verdict in VERDICTS]


@dataclass(slots=True)
class _Source:
    """The source's rows: places and what is known of each, not their text."""

    path: Path
    places: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    distinct: list[int] = field(default_factory=list)
    """Which distinct row each one is."""
    rows: list[SourceRow] = field(default_factory=list)
    """The distinct rows, in order of first appearance."""
    old: list[float | None] = field(default_factory=list)
    """The earlier pass rate that each row holds."""
    num_odd: int = 0
    """Rows that hold something else there."""
    ending: bytes = b"\n"
    """What ends the source's last line, where that has no end of its own."""
    num_stamped: int = 0
    """Rows that hold stamps of Gym's, which are left out of what is written."""


def select_rows(
    source: Path,
    files: RunFiles,
    targets: Targets,
    options: SelectOptions,
    *,
    inputs: Path | None = None,
) -> SelectionSummary:
    """Deal the rows of a source file by the rollouts that were made of them.

    `inputs` is the plan, where it is not the one beside the rollouts.

    Raises:
        ConfigError: a file cannot be read or would be overwritten, or the rows were
            run by several agents and none was named.
        DatasetError: rows and plan do not belong together.
        RecordError: a line cannot be read; names file and line.
    """
    options.require_rule()
    plan = inputs or files.materialized_inputs
    _refuse_targets(targets, [source, files.rollouts, plan])
    read = _read_source(source, options)
    tasks = _matched(read, plan, options.notes)
    counts = _chosen(_counts(files, plan, options), options)
    of_row = [counts.get(tasks[which]) for which in read.distinct]
    judged = [_judged(tasks[w], counts, options) for w in read.distinct]
    dealt = _dealt(of_row, judged, options)
    _write(read, targets, dealt, of_row, options)
    summary = replace(
        _summary(read, of_row, judged, targets, options),
        num_tasks=len(set(tasks) - {None}),
    )
    if targets.dataset_folder is not None:
        written = _write_dataset(targets.dataset_folder, targets.kept, summary)
        summary = replace(summary, files=(*summary.files, *written))
    return summary


def _refuse_targets(targets: Targets, sources: Sequence[Path]) -> None:
    """Refuse to write over what is read, or over a file that is no selection."""
    read = {path.resolve() for path in sources}
    for path in targets.paths:
        if path.resolve() in read:
            raise ConfigError(f"{path} is read here; give another --output")
    if targets.kept.exists() and not all(path.exists() for path in targets.paths):
        raise ConfigError(
            f"{targets.kept} exists and is no earlier selection ("
            f"{targets.rejected.name} is not beside it); give another --output"
        )
    folder = targets.dataset_folder
    if folder is not None and folder.exists():
        ours = {"README.md", "data"}
        if not folder.is_dir() or {path.name for path in folder.iterdir()} - ours:
            raise ConfigError(f"{folder} holds other files; give an empty folder")


def _read_source(path: Path, options: SelectOptions) -> _Source:
    source = _Source(path)
    old, notes = options.old_column, options.notes
    known: dict[bytes, int] = {}
    for line in read_lines(path):
        with located(path, line.number):
            row = parse_object(line.text)
            given = given_index(row)
        digest = blake2b(line.text, digest_size=16).digest()
        if digest not in known:
            known[digest] = len(source.rows)
            contents = contents_of(row, _encode, has_input=_has_input(row), notes=notes)
            source.rows.append(SourceRow(line.number, contents, given))
        source.places.append(line.place)
        source.numbers.append(line.number)
        source.distinct.append(known[digest])
        source.old.append(earlier_rate(row.get(old)))
        source.num_odd += row.get(old) is not None and source.old[-1] is None
        source.num_stamped += any(map(_is_stamp, row))
    if not source.rows:
        raise ConfigError(f"{path} holds no task rows")
    with open_to_read(path) as file:
        source.ending = b"\r\n" if file.readline().endswith(b"\r\n") else b"\n"
    return source


def _encode(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _is_stamp(name: str) -> bool:
    return name.startswith(wire.NG_PREFIX)


def _has_input(row: Mapping[str, Any]) -> bool:
    params = row.get(wire.PARAMS)
    return isinstance(params, Mapping) and bool(params.get(wire.INPUT))


def _matched(
    source: _Source, plan: Path, notes: Collection[str]
) -> list[TaskIndex | None]:
    """Return the task of each distinct row."""
    with open_to_read(source.path) as file:
        file.seek(source.places[0])
        first = parse_object(file.readline().rstrip(b"\r\n"))
    planned = PlannedContents()
    for line in read_lines(plan):
        with located(plan, line.number):
            row = parse_object(line.text)
            index = given_index(row)
        if index is not None and index not in planned.indices:
            contents = contents_of(
                row, _encode, has_input=_has_input(first), notes=notes
            )
            planned.add(index, contents)
    tasks = match_rows(source.rows, planned, str(source.path))
    if not any(task is not None for task in tasks):
        raise ConfigError(
            f"no row of {source.path} was planned in {plan}; give the input that the"
            " rollouts were made from"
        )
    return tasks


def _counts(files: RunFiles, plan: Path, options: SelectOptions) -> CountsByTask:
    table = read_rollout_table(files, inputs=plan)
    reading = ProfileOptions(
        pass_threshold=options.pass_threshold,
        signal_tolerance=options.signal_tolerance,
        leave_out_empty=options.leave_out_empty,
    )
    table = as_read(table, reading)
    counts: dict[TaskIndex, dict[str, Counts]] = {}
    for unit in units_of(table, reading):
        by_agent = counts.setdefault(table.tasks[unit.task], {})
        by_agent[table.agents[unit.agent]] = Counts(unit.n, unit.c, unit.has_signal)
    return counts


def _chosen(
    counts: CountsByTask, options: SelectOptions
) -> dict[TaskIndex | None, Counts]:
    """Return what decides about each task, by the agent that was chosen.

    Raises:
        ConfigError: a task was run by several, or nothing by the one that was named.
    """
    if options.agent is not None:
        chosen: dict[TaskIndex | None, Counts] = {
            task: by_agent[options.agent]
            for task, by_agent in counts.items()
            if options.agent in by_agent
        }
        if not chosen:
            known = sorted(
                {agent for by_agent in counts.values() for agent in by_agent}
            )
            raise ConfigError(
                f"agent {options.agent!r} ran none of the tasks; there are"
                f" {', '.join(known)}"
            )
        return chosen
    for task, by_agent in counts.items():
        if len(by_agent) > 1:
            raise ConfigError(
                f"task {task} was run by several agents ({', '.join(by_agent)}); say"
                " whose rollouts decide with --agent"
            )
    return {task: next(iter(by.values())) for task, by in counts.items()}


def _judged(
    task: TaskIndex | None,
    counts: Mapping[TaskIndex | None, Counts],
    options: SelectOptions,
) -> Judged:
    if task is not None and task not in counts:
        return Judged("undetermined", f"not run by {options.agent}")
    return judge(None if task is None else counts[task], options)


def _dealt(
    counts: Sequence[Counts | None], judged: Sequence[Judged], options: SelectOptions
) -> dict[Verdict, list[int]]:
    """Return the rows of each verdict, in the order that they are written in."""
    dealt: dict[Verdict, list[int]] = {verdict: [] for verdict in VERDICTS}
    for place, (verdict, _) in enumerate(judged):
        dealt[verdict].append(place)
    kept = dealt["kept"]
    rates = [_rate(counts[place]) or Fraction() for place in kept]
    dealt["kept"] = [kept[place] for place in ordered(rates, options.order)]
    return dealt


def _rate(counts: Counts | None) -> Fraction | None:
    return counts.rate if counts is not None and counts.n else None


def _write(
    source: _Source,
    targets: Targets,
    dealt: Mapping[Verdict, Sequence[int]],
    counts: Sequence[Counts | None],
    options: SelectOptions,
) -> None:
    with open_to_read(source.path) as file:
        # What is kept comes last: it is there only when the others are, so that the
        # same command is not refused after it was killed in between.
        for verdict in reversed(VERDICTS):
            lines = _lines(source, file, dealt[verdict], counts, options)
            replace_file(targets.of(verdict), _writer(lines))


def _writer(lines: Iterable[bytes]) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        for line in lines:
            file.write(line)

    return write


def _lines(
    source: _Source,
    file: IO[bytes],
    places: Iterable[int],
    counts: Sequence[Counts | None],
    options: SelectOptions,
) -> Iterator[bytes]:
    for place in places:
        file.seek(source.places[place])
        line = file.readline()
        text = line.rstrip(b"\r\n")
        ending = line[len(text) :]
        if source.num_stamped:
            text = without_members(text, _is_stamp)
        if options.annotate is not None:
            rate = _rate(counts[place])
            value = orjson.dumps(None if rate is None else float(rate))
            with located(source.path, source.numbers[place]):
                text = with_member(text, options.annotate, value)
        yield text + (ending if ending.endswith(b"\n") else source.ending)


def _summary(
    source: _Source,
    counts: Sequence[Counts | None],
    judged: Sequence[Judged],
    targets: Targets,
    options: SelectOptions,
) -> SelectionSummary:
    totals = Counter(verdict for verdict, _ in judged)
    rates = [_rate(one) for one in counts]
    pairs = [
        (old, rate)
        for old, rate in zip(source.old, rates, strict=True)
        if old is not None and rate is not None
    ]
    kept = [
        rate
        for rate, (verdict, _) in zip(rates, judged, strict=True)
        if verdict == "kept" and rate is not None
    ]
    return SelectionSummary(
        num_rows=len(source.places),
        kept=totals["kept"],
        rejected=totals["rejected"],
        undetermined=totals["undetermined"],
        num_tasks=0,
        reasons=dict(Counter(reason for _, reason in judged if reason).most_common()),
        band=str(options.band),
        mean_pass_rate=mean_rate(kept),
        old_rates=compare_rates(options.old_column, pairs, options.band),
        files=tuple(str(path) for path in targets.paths),
        warnings=tuple(_warnings(source, options)),
    )


def _warnings(source: _Source, options: SelectOptions) -> Iterator[str]:
    if source.num_stamped:
        yield (
            f"{source.num_stamped} rows held stamps of an earlier plan"
            f" ({wire.NG_PREFIX}…), which were left out"
        )
    if source.num_odd:
        yield (
            f"{source.num_odd} rows hold no rate between 0 and 1 in"
            f" {options.old_column!r}: they are not compared with the new one"
        )
    if options.old_pass_rate and not any(old is not None for old in source.old):
        yield f"no row has a number in {options.old_pass_rate!r}"


def _write_dataset(
    folder: Path, kept: Path, summary: SelectionSummary
) -> tuple[str, ...]:
    """Write the kept rows as a folder that `datasets.load_dataset` takes."""
    columns = Columns()
    for line in read_lines(kept):
        columns.see(parse_object(line.text))
    data, readme = folder / "data" / "train.jsonl", folder / "README.md"
    replace_rows(data, (columns.row(parse_object(r.text)) for r in read_lines(kept)))
    text = card(folder.resolve().name, _figures(summary), columns.as_text)
    replace_bytes(readme, text.encode())
    return str(data), str(readme)


def _figures(summary: SelectionSummary) -> Iterator[str]:
    yield (
        f"{summary.kept} of {summary.num_rows} task rows, selected by pass rate in"
        f" {summary.band}"
    )
    if summary.mean_pass_rate is not None:
        yield f"mean pass rate {summary.mean_pass_rate:.3f} (n={summary.kept} rows)"
    yield f"{summary.rejected} rows rejected, {summary.undetermined} undetermined"
    for reason, count in summary.reasons.items():
        yield f"{count} rows: {reason}"
