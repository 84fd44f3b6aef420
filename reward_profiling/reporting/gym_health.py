"""Gym's own health check of an output, if Gym left one beside it.

Source: `gym-contract.md` §1.5. Both files have fixed names, so they describe the last
Gym run in the folder, whatever the name of its output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reward_profiling.errors import RecordError
from reward_profiling.files.json_lines import (
    located,
    open_to_read,
    parse_object,
    read_lines,
)
from reward_profiling.files.run_files import RunFiles

SHOWN_ROLLOUTS = 5


@dataclass(frozen=True, slots=True)
class GymHealth:
    """What the check found."""

    verdicts: Mapping[str, int]
    """Rollouts by verdict: healthy, unhealthy, unobserved."""
    issues: Mapping[str, int]
    """Findings by check."""
    unhealthy: tuple[tuple[str, str], ...]
    """The first unhealthy rollouts and what was found, in words."""


def read_gym_health(files: RunFiles) -> GymHealth | None:
    """Read the check's summary and verdicts; None where there is no summary.

    Raises:
        RecordError: a file is not what the check writes; names the file.
    """
    if not files.quality_summary.exists():
        return None
    with open_to_read(files.quality_summary) as file, located(files.quality_summary, 1):
        run = parse_object(file.read()).get("run")
        if not isinstance(run, Mapping):
            raise RecordError(
                "has no summary of a run; did Gym's health check write it?"
            )
    return GymHealth(
        verdicts=_counts(run.get("verdicts")),
        issues=_counts(run.get("issues")),
        unhealthy=tuple(_unhealthy(files)),
    )


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    return {str(k): v for k, v in value.items() if isinstance(v, int) and v}


def _unhealthy(files: RunFiles) -> list[tuple[str, str]]:
    path, found = files.rollout_verdicts, []
    for line in read_lines(path) if path.exists() else ():
        with located(path, line.number):
            verdict = parse_object(line.text)
        if verdict.get("verdict") == "unhealthy":
            found.append((str(verdict.get("rollout_id")), _in_words(verdict)))
        if len(found) == SHOWN_ROLLOUTS:
            break
    return found


def _in_words(verdict: Mapping[str, Any]) -> str:
    findings = verdict.get("findings")
    parts = [
        ": ".join(str(f[name]) for name in ("check", "detail") if f.get(name))
        for f in (findings if isinstance(findings, list) else [])
        if isinstance(f, Mapping)
    ]
    return "; ".join(parts)
