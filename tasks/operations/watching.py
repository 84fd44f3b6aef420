"""Who watches a collection in this process, besides Prefect: a terminal, or nobody."""

from contextvars import ContextVar

from tasks.operations.collecting import Observer, silent

watcher: ContextVar[Observer] = ContextVar("watcher", default=silent)
"""Set by the command line before it runs the flow; inherited by the flow's steps."""
