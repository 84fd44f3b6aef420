"""The manifest, `<stem>_run.json`: what a plan was made from, and for which model.

One JSON object, written completely or not at all. The plan itself is authoritative; the
manifest records its origin, so that a message can name the setting that changed. Gym
writes no manifest; a missing one is read as an empty one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    open_to_read,
    parse_object,
    replace_bytes,
)
from reward_profiling.files.own_version import made_by
from reward_profiling.files.run_files import RunFiles

POLICY_MODEL = "policy_model_name"
"""Member for the model's name; the servers' configuration calls it the same."""
_ADAPTIVE = "adaptive"
_OUTPUT = "output"
_PLAN = "plan"
_SETTINGS = "settings"
_VERSION = 1
AGAIN = (
    "Run `materialize` again with the same input and options: it writes the file again"
    " and keeps every record"
)
_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Manifest:
    """The members of one manifest; empty where there is none."""

    path: Path
    members: dict[str, Any]

    @property
    def policy_model(self) -> str | None:
        """Model that the rollouts came from; None if not known."""
        name = self.members.get(POLICY_MODEL)
        return name if isinstance(name, str) and name else None

    @property
    def output(self) -> str | None:
        """File name of the output that it belongs to; None if not known."""
        name = self.members.get(_OUTPUT)
        return name if isinstance(name, str) else None

    @property
    def is_adaptive(self) -> bool:
        """Whether tasks were given more repeats than the settings say."""
        return bool(self.members.get(_ADAPTIVE))

    @property
    def settings(self) -> dict[str, Any]:
        """Options of the plan by name; those of younger versions are not in it.

        Raises:
            RecordError: they are no object; names the file.
        """
        return self._object(_SETTINGS)

    @property
    def counts(self) -> dict[str, Any]:
        """What the plan came to: `num_tasks` and `num_rollouts`.

        Raises:
            RecordError: they are no object; names the file.
        """
        return self._object(_PLAN)

    def _object(self, name: str) -> dict[str, Any]:
        value = self.members.get(name, {})
        if not isinstance(value, dict):
            raise RecordError(f"{self.path}: {name} is not an object")
        return value


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """What a plan was made from, and what it came to."""

    input: Path
    """File of the task rows."""
    num_rows: int
    """Task rows that were planned."""
    digest: str
    """SHA-256 of those rows, line endings left out; 64 hexadecimal digits."""
    settings: dict[str, Any]
    """Options by name; a file that one names stands there by its content."""
    num_tasks: int
    """Distinct task indices."""
    num_rollouts: int
    """Lines of the plan."""
    is_adaptive: bool
    """Whether tasks were given more repeats than the settings say."""


def read_manifest(files: RunFiles) -> Manifest:
    """Read an output's manifest; an empty one where there is no file.

    Raises:
        ConfigError: the file cannot be read.
        RecordError: it is no JSON object; names the file.
    """
    path = files.run
    if not path.exists():
        return Manifest(path, {})
    with open_to_read(path) as file:
        text = file.read()
    try:
        return Manifest(path, parse_object(text))
    except RecordError as error:
        raise RecordError(f"{path}:1: {error}. {AGAIN}") from error


def sound_manifest(files: RunFiles) -> Manifest:
    """Read an output's manifest; an empty one where it is damaged.

    For checking whether a plan would change. The plan's own lines decide that; the
    manifest only adds the name of a setting, so a damaged one must not stop a run that
    has nothing to do. Writing a plan uses `read_manifest`, which refuses the damage.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return read_manifest(files)
    except RecordError:
        return Manifest(files.run, {})


def set_aside_damaged(files: RunFiles) -> list[str]:
    """Move a manifest that cannot be read aside; return what is to be said of it.

    The plan says what is planned: only the origin and the model's name are lost.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        read_manifest(files)
    except RecordError:
        aside = files.run.with_name(f"{files.run.name}.damaged")
        files.run.replace(aside)
        return [f"{files.run} was damaged; it is {aside.name} now, and written again"]
    return []


def input_digest(files: RunFiles) -> str | None:
    """Return the digest of the rows that the plan was made from; None if not known."""
    given = sound_manifest(files).members.get("input")
    return given.get("sha256") if isinstance(given, dict) else None


def refuse_cut_plan(
    files: RunFiles, num_rollouts: int, index: int = 0, count: int = 1
) -> None:
    """Refuse a plan with fewer lines than were written.

    `num_rollouts` were read of the plan, or of what is dealt to shard `index` of
    `count`. A plan of Gym has no manifest, and says nothing of its length.

    Raises:
        RecordError: the plan was cut; says how to have it again.
    """
    written = sound_manifest(files).members.get(_PLAN)
    whole = written.get("num_rollouts") if isinstance(written, dict) else None
    if not isinstance(whole, int):
        return
    expected = len(range(index, whole, count))  # they are dealt like cards
    if num_rollouts < expected:
        lacking = f"{expected - num_rollouts} of {expected} planned rollouts"
        raise RecordError(
            f"{files.materialized_inputs} was cut: {lacking} are missing from it."
            f" {AGAIN}"
        )


def replace_manifest(files: RunFiles, origin: PlanOrigin) -> None:
    """Write the manifest of a new plan; the model that is known stays.

    Raises:
        RecordError: the manifest that is there is damaged; names the file.
        OutputWriteError: the disk does not take it; what was there stays.
    """
    members = {
        "manifest_version": _VERSION,
        "made_by": made_by(),
        "input": {
            "path": str(origin.input),
            "num_rows": origin.num_rows,
            "sha256": origin.digest,
        },
        _SETTINGS: origin.settings,
        _PLAN: {"num_tasks": origin.num_tasks, "num_rollouts": origin.num_rollouts},
        POLICY_MODEL: known_model(files),
        _OUTPUT: files.rollouts.name,
    }
    if origin.is_adaptive:
        members[_ADAPTIVE] = True
    _write(files, members)


def mark_adaptive(files: RunFiles, num_rollouts: int | None = None) -> None:
    """Note that the plan is adaptive, and how many rollouts it holds where given.

    Where there is no manifest, none is made.

    Raises:
        RecordError: the manifest is damaged; names the file.
        OutputWriteError: the disk does not take it; what was there stays.
    """
    if not files.run.exists():
        return
    manifest = read_manifest(files)
    counts = manifest.counts
    if num_rollouts is not None:
        counts = {**counts, "num_rollouts": num_rollouts}
    _write(files, {**manifest.members, _ADAPTIVE: True, _PLAN: counts})


def known_model(files: RunFiles) -> str | None:
    """Return the model that the output's rollouts came from; None if not known.

    Raises:
        RecordError: the manifest is damaged; names the file.
    """
    return read_manifest(files).policy_model


def remember_model(files: RunFiles, model: str | None) -> None:
    """Note which model answers from now on; None changes nothing.

    Raises:
        RecordError: the manifest is damaged; names the file.
        OutputWriteError: the disk does not take it; what was there stays.
    """
    members = read_manifest(files).members
    if model and members.get(POLICY_MODEL) != model:
        _write(files, {**members, POLICY_MODEL: model})


def _write(files: RunFiles, members: dict[str, Any]) -> None:
    replace_bytes(files.run, orjson.dumps(members, option=_INDENT))
