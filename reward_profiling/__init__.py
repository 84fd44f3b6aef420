"""The rewards of NeMo Gym environments: planned, collected, profiled, and read.

    from reward_profiling import PlanOptions, open_output, plan, profile

    plan("tasks.jsonl", "runs/a.jsonl", PlanOptions(num_repeats=8))
    ...                                    # await collect("runs/a.jsonl", head_url)
    summary = profile("runs/a.jsonl")
    table = open_output("runs/a.jsonl").rollouts()

What asks servers is awaited: `collect`, `aggregate`, and `serving`, which starts them.
Everything else works on files. The command line calls these same functions. Options are
frozen dataclasses that check themselves; errors are `RewardProfilingError`s whose
message says what happened, where, and what to do. The flow of Prefect is
`reward_profiling.flows.reward_profiling`, its steps are in `reward_profiling.tasks`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
    from reward_profiling.choosing.comparison import CompareOptions, Comparison
    from reward_profiling.choosing.selection import SelectionSummary, SelectOptions
    from reward_profiling.collecting.options import AggregateOptions, CollectOptions
    from reward_profiling.errors import RewardProfilingError
    from reward_profiling.insights.document import Insights
    from reward_profiling.insights.task_insights import TaskInsight
    from reward_profiling.library.collecting import (
        CollectionSummary,
        Watcher,
        aggregate,
        collect,
        serving,
    )
    from reward_profiling.library.comparing import compare
    from reward_profiling.library.output import Output, open_output
    from reward_profiling.library.planning import plan
    from reward_profiling.library.profiling import profile
    from reward_profiling.library.reporting import report
    from reward_profiling.library.selecting import select
    from reward_profiling.planning.options import PlanOptions
    from reward_profiling.planning.plan_summary import PlanSummary
    from reward_profiling.profiling.finding import Finding
    from reward_profiling.profiling.options import ProfileOptions
    from reward_profiling.profiling.summary.run_summary import RunSummary
    from reward_profiling.servers.options import EMBEDDED_TASKS, ServerOptions

__all__ = [
    "EMBEDDED_TASKS",
    "AdaptiveOptions",
    "AggregateOptions",
    "CollectOptions",
    "CollectionSummary",
    "CompareOptions",
    "Comparison",
    "Finding",
    "Insights",
    "Output",
    "PlanOptions",
    "PlanSummary",
    "ProfileOptions",
    "RewardProfilingError",
    "RunSummary",
    "SelectOptions",
    "SelectionSummary",
    "ServerOptions",
    "TaskInsight",
    "Watcher",
    "aggregate",
    "collect",
    "compare",
    "open_output",
    "plan",
    "profile",
    "report",
    "select",
    "serving",
]

_ROOMS = {
    "choosing.adaptive_rounds": ("AdaptiveOptions",),
    "choosing.comparison": ("CompareOptions", "Comparison"),
    "choosing.selection": ("SelectOptions", "SelectionSummary"),
    "collecting.options": ("AggregateOptions", "CollectOptions"),
    "errors": ("RewardProfilingError",),
    "insights.document": ("Insights",),
    "insights.task_insights": ("TaskInsight",),
    "library.collecting": (
        "CollectionSummary", "Watcher", "aggregate", "collect", "serving",
    ),
    "library.comparing": ("compare",),
    "library.output": ("Output", "open_output"),
    "library.planning": ("plan",),
    "library.profiling": ("profile",),
    "library.reporting": ("report",),
    "library.selecting": ("select",),
    "planning.options": ("PlanOptions",),
    "planning.plan_summary": ("PlanSummary",),
    "profiling.finding": ("Finding",),
    "profiling.options": ("ProfileOptions",),
    "profiling.summary.run_summary": ("RunSummary",),
    "servers.options": ("EMBEDDED_TASKS", "ServerOptions"),
}  # fmt: skip
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


if not TYPE_CHECKING:  # who checks types knows the names, and no others

    def __getattr__(name: str) -> object:
        """Import a public name at first use: a command needs few of them."""
        room = _ROOM_OF.get(name)
        if room is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module(f"{__name__}.{room}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
