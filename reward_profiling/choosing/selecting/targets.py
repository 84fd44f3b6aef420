"""Where a selection is written: three files that add up to the source."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from reward_profiling.choosing.selecting.dataset_folder import dataset_files
from reward_profiling.choosing.selecting.source_rows import SourceFile, is_stamp
from reward_profiling.choosing.selecting.task_verdicts import Decision
from reward_profiling.choosing.selection import VERDICTS, SelectOptions, Verdict
from reward_profiling.errors import ConfigError
from reward_profiling.files.json_lines import located, open_to_read, replace_file
from reward_profiling.files.line_edits import with_member, without_members
from reward_profiling.files.run_files import RunFiles


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

    @property
    def written(self) -> list[Path]:
        """The three files, and those of the dataset folder where one is asked for."""
        folder = self.dataset_folder
        return [*self.paths, *(() if folder is None else dataset_files(folder))]


def refuse_targets(targets: Targets, sources: Sequence[Path]) -> None:
    """Refuse to write over what is read, or over a file that is no selection.

    Raises:
        ConfigError: a file of the selection is one of these, and the remedy.
    """
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


def write_rows(
    source: SourceFile,
    targets: Targets,
    dealt: Mapping[Verdict, Sequence[int]],
    decisions: Sequence[Decision],
    options: SelectOptions,
) -> None:
    """Write the rows of each verdict into its file, in the bytes that they had.

    `dealt` lists positions in the source; `decisions` has one entry per row of it.

    Raises:
        RecordError: a row cannot take the note that is written into it.
        OutputWriteError: the disk does not take a file; what was there stays.
    """
    with open_to_read(source.path) as file:
        # What is kept comes last: it is there only when the others are, so that the
        # same command is not refused after it was killed in between.
        for verdict in reversed(VERDICTS):
            lines = _lines(source, file, dealt[verdict], decisions, options)
            replace_file(targets.of(verdict), _writer(lines))


def _writer(lines: Iterable[bytes]) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        for line in lines:
            file.write(line)

    return write


def _lines(
    source: SourceFile,
    file: IO[bytes],
    places: Iterable[int],
    decisions: Sequence[Decision],
    options: SelectOptions,
) -> Iterator[bytes]:
    for place in places:
        file.seek(source.places[place])
        line = file.readline()
        text = line.rstrip(b"\r\n")
        ending = line[len(text) :]
        if source.num_stamped:
            text = without_members(text, is_stamp)
        if options.annotate is not None:
            rate = decisions[place].rate
            value = orjson.dumps(None if rate is None else float(rate))
            with located(source.path, source.numbers[place]):
                text = with_member(text, options.annotate, value)
        yield text + (ending if ending.endswith(b"\n") else source.ending)
