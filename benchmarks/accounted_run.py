"""A run that accounts for its processor time: the steps' own work, and all the rest.

    python benchmarks/accounted_run.py REPORT run …
    python benchmarks/accounted_run.py REPORT plain_run.py …

Runs the command line, or the script, behind REPORT in this process. The work of the
steps is what `plain_run.py` calls, by the clock of the thread that does it; the rest is
what the process takes beside, from the first step on: Prefect's engine between the
steps, its threads meanwhile, our own reports to it.
"""

import atexit
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from runpy import run_path
from typing import ParamSpec, TypeVar

WORK = {
    "reward_profiling.planning.materialization": ("materialize",),
    "reward_profiling.collecting.open_shard": ("open_shard",),
    "reward_profiling.collecting.shard_collection": ("collect_shard",),
    "reward_profiling.collecting.aggregation.aggregate_metrics": ("aggregate",),
    "reward_profiling.profiling.profile_run": ("profile_output",),
    "reward_profiling.insights.insights_run": ("add_insights",),
    "reward_profiling.reporting.report_run": ("add_report",),
}
P = ParamSpec("P")
T = TypeVar("T")


class Account:
    """Processor seconds of a run, from its first step on."""

    def __init__(self) -> None:
        self._steps = 0.0
        self._started: float | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """Count what this thread does meanwhile as a step's work."""
        if self._started is None:
            self._started = time.process_time()
        began = time.thread_time()
        try:
            yield
        finally:
            self._steps += time.thread_time() - began

    def called(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function whose calls count."""

        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> T:
            with self.step():
                return function(*given, **named)

        return call

    def awaited(self, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Return a coroutine function whose calls count."""

        @wraps(function)
        async def call(*given: P.args, **named: P.kwargs) -> T:
            with self.step():
                return await function(*given, **named)

        return call

    def write(self, path: Path) -> None:
        """Write what the run took."""
        if self._started is None:
            return  # no step was reached
        whole = time.process_time() - self._started
        path.write_text(json.dumps({"steps": self._steps, "rest": whole - self._steps}))


def main() -> None:
    """Run the command line, and account for it."""
    account = Account()
    atexit.register(account.write, Path(sys.argv[1]).absolute())
    for name, functions in WORK.items():
        module = import_module(name)
        for function in map(partial(getattr, module), functions):
            counts = (
                account.awaited if iscoroutinefunction(function) else account.called
            )
            setattr(module, function.__name__, counts(function))
    if sys.argv[2].endswith(".py"):
        sys.argv = sys.argv[2:]
        run_path(sys.argv[0], run_name="__main__")
        return
    sys.argv = ["reward-profiling", *sys.argv[2:]]
    from reward_profiling.cli.entry import main as run  # noqa: PLC0415 - what it imports is replaced

    run()


if __name__ == "__main__":
    main()
