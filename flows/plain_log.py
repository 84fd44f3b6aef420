"""Errors of ours stand in a run's log as a sentence: a traceback tells nobody more.

They name the file, the line and the remedy; what is a defect keeps its traceback.
"""

import logging

from reward_profiling.errors import RewardProfilingError

_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")


class _WithoutTraceback(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], RewardProfilingError):
            record.exc_info = record.exc_text = None
        return True


_FILTER = _WithoutTraceback()


def leave_out_tracebacks() -> None:
    """Have Prefect log errors of ours without one, in this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # once, however often it is called
