"""Automations: what Prefect's server does when a run ends or goes silent.

It marks a silent run Crashed. It restarts a crashed run of a deployment as the same
run, which keeps its output and collects what is still owed: at most `MAX_RESTARTS`
times, and only if the run had begun.
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from prefect.automations import AutomationCore
from prefect.client.schemas.objects import StateType
from prefect.events.actions import CallWebhook, ChangeFlowRunState
from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

from reward_profiling.reporting.outcome import (
    FAILED,
    INTERRUPTED_STATE,
    PARTIAL,
    REGRESSED,
    RUN_TAG,
    SHARD_TAG,
    VERIFIER_SUSPECT,
)

SILENCE = timedelta(seconds=120)
"""How long a run may be silent. Heartbeats come every 30 s, and a server that is down
for a minute must not look like a crash."""
MAX_RESTARTS = 3
"""How often a run is started again."""
PAUSE = timedelta(seconds=15)
"""Between a crash and the next start."""
CHOSEN_STATE = "Restarting"
"""Name of the state, of the type CRASHED, of a run that is started again soon."""
_EACH_RUN = {"prefect.resource.id"}
_RUNS = ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"})


def _tagged(*tags: str) -> ResourceSpecification:
    ids = [f"prefect.tag.{tag}" for tag in tags]
    return ResourceSpecification(
        {"prefect.resource.id": ids, "prefect.resource.role": "tag"}
    )


_TAGGED = _tagged(RUN_TAG)
_DEPLOYED = ResourceSpecification({"prefect.resource.role": "deployment"})


def silent_runs_crash() -> AutomationCore:
    """Mark a run Crashed if it sent no heartbeat for `SILENCE`."""
    return AutomationCore(
        name="reward-profiling: a silent run has crashed",
        description=f"No heartbeat for {SILENCE.seconds} s: its process is gone.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.*"},  # its end by any name, or another beat
            match=_RUNS,
            match_related=_tagged(RUN_TAG, SHARD_TAG),
            for_each=_EACH_RUN,
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message=f"no heartbeat for {SILENCE.seconds} s: its process is gone",
            )
        ],
    )


def crashed_runs_are_chosen() -> AutomationCore:
    """Choose the crashed runs of deployments that are started again.

    They stay crashed for a moment: a worker reports a killed process twice, some
    seconds apart, and the second report would undo an immediate restart.
    """
    counts = [str(count) for count in range(1, MAX_RESTARTS + 1)]
    return AutomationCore(
        name="reward-profiling: a crashed run may start again",
        description=f"At most {MAX_RESTARTS} times, and only if it had begun.",
        trigger=EventTrigger(
            after={"prefect.flow-run.Running"},  # one that cannot even start stays down
            expect={
                f"prefect.flow-run.{name}" for name in ("Crashed", INTERRUPTED_STATE)
            },
            match=ResourceSpecification({**_RUNS.root, "prefect.run-count": counts}),
            match_related=[_TAGGED, _DEPLOYED],
            for_each=_EACH_RUN,
            posture=Posture.Reactive,
            threshold=1,
            within=timedelta(days=30),
        ),
        actions=[
            ChangeFlowRunState(
                name=CHOSEN_STATE,
                state=StateType.CRASHED,
                message="it crashed and restarts in a moment",
                force=True,
            )
        ],
    )


def chosen_runs_start_again() -> AutomationCore:
    """Start a chosen run again, as the same run: it does what is still owed."""
    return AutomationCore(
        name="reward-profiling: a crashed run starts again",
        description=f"{PAUSE.seconds} s after the crash; it collects what is owed.",
        trigger=EventTrigger(
            after={f"prefect.flow-run.{CHOSEN_STATE}"},
            expect={"prefect.flow-run.AwaitingRetry"},  # by a person, before us
            match=_RUNS,
            match_related=[_TAGGED, _DEPLOYED],
            for_each=_EACH_RUN,
            posture=Posture.Proactive,
            threshold=1,
            within=PAUSE,
        ),
        actions=[
            ChangeFlowRunState(
                name="AwaitingRetry",
                state=StateType.SCHEDULED,
                message="it crashed; it restarts and collects what is still owed",
            )
        ],
    )


def webhook_is_told(block: UUID) -> AutomationCore:
    """Call a webhook when a run is partial, failed or regressed, or is suspect."""
    return AutomationCore(
        name="reward-profiling: tell the webhook",
        description="Partial, failed, regressed, or a suspect verifier.",
        trigger=EventTrigger(
            expect={PARTIAL, FAILED, REGRESSED, VERIFIER_SUSPECT},
            match=ResourceSpecification(
                {"prefect.resource.id": "reward-profiling.output.*"}
            ),
            for_each=_EACH_RUN,
            posture=Posture.Reactive,
            threshold=1,
            within=timedelta(0),
        ),
        actions=[CallWebhook(block_document_id=block, payload=_PAYLOAD)],
    )


# Prefect renders it; `text` is what chat services show.
_PAYLOAD = """{
  "text": {{ (event.event ~ ": " ~ event.payload["message"]) | tojson }},
  "event": {{ event.event | tojson }},
  "output": {{ event.payload["output"] | tojson }},
  "payload": {{ event.payload | tojson }},
  "page": {{ event.payload["page"] | tojson }}
}"""


def automations(webhook: UUID | None) -> Sequence[AutomationCore]:
    """Return every automation; that of the webhook where there is one."""
    given = [
        silent_runs_crash(),
        crashed_runs_are_chosen(),
        chosen_runs_start_again(),
    ]
    return given if webhook is None else [*given, webhook_is_told(webhook)]
