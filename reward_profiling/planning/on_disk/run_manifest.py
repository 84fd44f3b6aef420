"""Which model an output's rollouts come from: one and the same, from run to run.

Rewards of two models in one file say nothing of either. The name is what the servers'
configuration gives, `policy_model_name`; where it gives none, nothing is checked.
"""

from typing import Any

import orjson

from reward_profiling.errors import ConfigError, PlanChangedError
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    replace_bytes,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.earlier_plan import is_collected

POLICY_MODEL = "policy_model_name"
OUTPUT = "output"
_INDENT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def known_model(files: RunFiles) -> str | None:
    """Return the model that the output's rollouts came from; None if not known.

    Raises:
        RecordError: the manifest cannot be read; names it.
    """
    name = _manifest(files).get(POLICY_MODEL)
    return name if isinstance(name, str) and name else None


def refuse_other_model(files: RunFiles, model: str | None) -> None:
    """Refuse to put rollouts of one model beside those of another.

    Raises:
        PlanChangedError: the output holds rollouts of another model.
    """
    known = known_model(files)
    if model and known and known != model and is_collected(files):
        raise PlanChangedError(
            f"{files.rollouts} holds rollouts of another model; nothing was touched."
            f"\n  {POLICY_MODEL}: {known} → {model}"
            "\nStart the servers with the old model to resume, or give another"
            " --output."
        )


def refuse_other_output(files: RunFiles) -> None:
    """Refuse an output whose files are named like those of another one.

    All files but the rollouts are named from the stem, as Gym names them: `run.v1` and
    `run.v2` would share a plan and its failures.

    Raises:
        ConfigError: another output in the folder has these files.
    """
    name = _manifest(files).get(OUTPUT)
    if isinstance(name, str) and name != files.rollouts.name:
        raise ConfigError(
            f"{files.run} belongs to the output {name}; {files.rollouts.name} would"
            " share its plan and failures. Give a name with another stem, such as"
            f" {files.rollouts.name.replace('.', '_')}.jsonl"
        )


def remember_model(files: RunFiles, model: str | None) -> None:
    """Note in the manifest which model answers from now on."""
    manifest = _manifest(files)
    if model and manifest.get(POLICY_MODEL) != model:
        content = orjson.dumps({**manifest, POLICY_MODEL: model}, option=_INDENT)
        replace_bytes(files.run, content)


def _manifest(files: RunFiles) -> dict[str, Any]:
    if not files.run.exists():
        return {}
    with open_to_read(files.run) as file, located(files.run, 1):
        return parse_object(file.read())
