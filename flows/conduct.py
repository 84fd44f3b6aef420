"""How a flow behaves in its process: its log, signals, and the end of its worker.

The log shows our own errors as one sentence: it has the file, the line and the remedy,
so a traceback would not help. Defects keep their traceback.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from reward_profiling.errors import RewardProfilingError
from reward_profiling.flows.survival import outlasting_its_worker
from reward_profiling.tasks.shared.prefect_internals import check_prefect
from reward_profiling.tasks.shared.present_run import PresentRun, present_run
from reward_profiling.tasks.shared.run_page import tell_start

_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")


@contextmanager
def conducted() -> Iterator[PresentRun]:
    """Let the flow in the block stop cleanly, and survive its worker.

    Raises:
        ConfigError: the installed Prefect lacks what a run needs.
    """
    check_prefect()
    _leave_out_tracebacks()
    tell_start()
    with (
        present_run().entered() as run,
        run.scope.hearing_signals(),
        outlasting_its_worker(),
    ):
        yield run


class _WithoutTraceback(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], RewardProfilingError):
            record.exc_info = record.exc_text = None
        return True


_FILTER = _WithoutTraceback()


def _leave_out_tracebacks() -> None:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # once, however often it is called
