"""The parts of a window, put together by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson

from reward_profiling.collecting.budgets import Streak
from reward_profiling.collecting.options import CollectOptions
from reward_profiling.collecting.progress import Progress
from reward_profiling.collecting.replies.finished_rollout import (
    FinishedRollout,
    finished_by_error,
)
from reward_profiling.collecting.replies.reply import finished_by_reply
from reward_profiling.collecting.window.recorder import Journals, Recorder
from reward_profiling.collecting.window.server_gates import Gates
from reward_profiling.collecting.window.tries import Asker
from reward_profiling.errors import GymError
from reward_profiling.planning.on_disk.planned_rollouts import PlannedRollout
from reward_profiling.servers.gym_client import GymClient
from reward_profiling.servers.routes import Route

ROUTE = Route("http://one", None, None)
Answer = Callable[[httpx.Request], httpx.Response]


def planned(task: int, repeat: int = 0, agent: str = "a") -> PlannedRollout:
    stamps = {"_ng_task_index": task, "_ng_rollout_index": repeat}
    body = orjson.dumps({**stamps, "agent_ref": {"name": agent}})
    return PlannedRollout((task, repeat), agent, None, 0, body, stamps)


def success(rollout: PlannedRollout, reply: bytes = b'{"reward":1.0}') -> Any:  # noqa: ANN401
    return finished_by_reply(reply, rollout.stamps)


def failure(rollout: PlannedRollout, error: GymError) -> FinishedRollout:
    return finished_by_error(error, rollout.stamps)


class Heard:
    """Hears of a collection."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, progress: Progress, note: str | None) -> None:
        del progress
        if note is not None:
            self.notes.append(note)


def recorder(journals: Journals, heard: Heard, limit: int = 3) -> Recorder:
    return Recorder(journals, Progress(planned=9), heard, Streak(limit, num_tasks=9))


def asker(answer: Answer, recorder: Recorder, **options: Any) -> Asker:  # noqa: ANN401
    client = GymClient(httpx.AsyncClient(transport=httpx.MockTransport(answer)))
    chosen = CollectOptions.made(options)
    gates = Gates(client, {"a": ROUTE}, recorder, draw=lambda: 0.0)
    return Asker(client, gates, chosen, recorder, draw=lambda: 0.0)


def rows(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
