"""How a run ended: the message of its state, and the events that announce it.

A finding that needs attention makes the numbers misleading; a note is only worth
knowing.
"""

from collections.abc import Sequence

from reward_profiling.profiling.finding import SEVERITIES, Evidence, Finding
from reward_profiling.profiling.options import Strictness
from reward_profiling.profiling.summary.run_summary import RunSummary
from reward_profiling.reporting.summary_words import headline
from reward_profiling.texts.visible import visible

RUN_TAG = "reward-profiling"
"""On every run that automations watch: those of the deployments, and of the command."""
SHARD_TAG = "reward-profiling-shard"
"""On the runs of shards: automations mark them when they go silent, but only the run
that they belong to starts them again."""
PARTIAL_STATE = "Partial"
"""Name of the state of a run that lacks rollouts."""
INTERRUPTED_STATE = "Interrupted"
"""Name of the state of a run that a signal stopped before all rollouts were done."""

COMPLETED = "reward-profiling.completed"
PARTIAL = "reward-profiling.partial"
CANCELLED = "reward-profiling.cancelled"
FAILED = "reward-profiling.failed"
REGRESSED = "reward-profiling.regressed"
VERIFIER_SUSPECT = "reward-profiling.verifier-suspect"
EVENTS = (COMPLETED, PARTIAL, CANCELLED, FAILED, REGRESSED, VERIFIER_SUSPECT)
"""Names of the events that runs emit; automations wait for them."""

REGRESSION = "regressed"
"""Name of the finding that a run's rewards are below its baseline's."""
SUSPECT = frozenset({
    "answer_scored_differently", "constant_reward", "empty_answers_rewarded",
    "mostly_masked", "nothing_scored", "reward_ignores_answer",
})  # fmt: skip
"""Names of the findings that say the verifier itself may be wrong."""
_MAX_FINDINGS = 20
_MAX_EVIDENCE = 10
_MAX_WORDS = 4_000
"""Characters of a state's message at most."""


def attention(summary: RunSummary) -> list[Finding]:
    """Return the findings that need attention, the worst first."""
    return as_bad_as("warning", summary)


def as_bad_as(severity: Strictness, summary: RunSummary) -> list[Finding]:
    """Return the findings of that severity or a worse one, the worst first."""
    worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
    return [found for found in summary.findings if found.severity in worse]


def too_bad(strict: Strictness | None, summary: RunSummary) -> str | None:
    """Say which findings are as bad as `--strict` says; None when none is."""
    found = [] if strict is None else as_bad_as(strict, summary)
    return f"--strict {strict}: {shortened(_sentences(found), 500)}" if found else None


def state_message(summary: RunSummary) -> str:
    """Say how much there is, what is missing, and what needs attention."""
    said = headline(summary)
    needs = attention(summary)
    if summary.stopped:
        said += f"; ended early: {summary.stopped}"
    if needs:
        said += f"; needs attention: {_sentences(needs)}"
    return shortened(visible(said))


def _sentences(findings: Sequence[Finding]) -> str:
    return "; ".join(
        f"{found.agent}: {found.sentence}" if found.agent else found.sentence
        for found in findings
    )


def shortened(text: str, limit: int = _MAX_WORDS) -> str:
    """Return a text that fits; what was cut is marked."""
    return text if len(text) <= limit else text[: limit - 2] + " …"


def announcements(summary: RunSummary) -> list[str]:
    """Return the names of the events that a run's end is announced by."""
    names = [PARTIAL if summary.is_partial else COMPLETED]
    kinds = {found.name for found in summary.findings}
    if REGRESSION in kinds:
        names.append(REGRESSED)
    if any(found.name in SUSPECT for found in attention(summary)):
        names.append(VERIFIER_SUSPECT)
    return names


def announcement(summary: RunSummary) -> dict[str, object]:
    """Return what an event carries: counts and sentences, never rows."""
    return {
        "output": summary.output,
        "message": state_message(summary),
        "planned": summary.planned,
        "collected": summary.collected,
        "scored": summary.scored,
        "masked": summary.masked,
        "failed": summary.failed,
        "missing": summary.missing,
        "mean_reward": summary.mean_reward,
        "num_scored_tasks": summary.num_scored_tasks,
        "findings": [
            {
                "name": found.name,
                "severity": found.severity,
                "agent": found.agent,
                "sentence": shortened(found.sentence, 500),
                "evidence": _short_evidence(found),
            }
            for found in summary.findings[:_MAX_FINDINGS]
        ],
    }


def _short_evidence(found: Finding) -> dict[str, Evidence]:
    kept = list(found.evidence.items())[:_MAX_EVIDENCE]
    return {
        name: shortened(value, 200) if isinstance(value, str) else value
        for name, value in kept
    }
