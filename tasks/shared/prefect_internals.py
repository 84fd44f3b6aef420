"""Every private or undocumented part of Prefect in use: another version may lack it.

Parts that a run can do without are looked up on use, with a warning if they are gone.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

import prefect
from prefect import Flow, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture
from prefect.settings import get_current_settings
from prefect.utilities.annotations import quote
from pydantic_core import to_jsonable_python
from rich.console import Console

from reward_profiling.errors import ConfigError
from reward_profiling.values import Checked

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_TAGS = "prefect.context:TagsContext"
_CONSOLE_HANDLER = "prefect.logging.handlers:PrefectConsoleHandler"
SERVER = "prefect.server.api.server:SubprocessASGIServer._run_uvicorn_command"
TESTED = "3.9.1"
NEEDED = {
    "prefect.artifacts:aupdate_progress_artifact": "shows how far a collection is",
    "prefect.cache_policies:CachePolicy.from_cache_key_fn": "keys the steps' results",
    "prefect.exceptions:Abort": "says that a run was ended on Prefect's page",
    "prefect.exceptions:Pause": "says that a run was suspended on Prefect's page",
    "prefect.serializers:Serializer": "keeps the steps' results",
    "prefect.utilities.urls:url_for": "names the page of a run",
}
"""What a run cannot do without: where it is, and what it does."""
DISPENSABLE = {
    _TAGS: "steps have their run's tags, and wait while Prefect's server is away",
    _CONSOLE_HANDLER: "a run ends when it logs a line and its worker is gone",
}
"""What a run can do without: where it is, and what it costs."""


def found(path: str) -> Any:  # noqa: ANN401 - whatever lies there
    """Return the object at `MODULE:NAME.NAME`; None if this Prefect lacks it."""
    module, _, names = path.partition(":")
    try:
        value: Any = import_module(module)
        for name in names.split("."):
            value = getattr(value, name)
    except (ImportError, AttributeError):
        return None
    return value


def check_prefect(needed: Mapping[str, str] = NEEDED) -> None:
    """Check that the installed Prefect has what a run needs.

    Raises:
        ConfigError: names what is missing, and what it is for.
    """
    for path, does in needed.items():
        if found(path) is None:
            raise ConfigError(
                f"Prefect {prefect.__version__} lacks {path}, which {does}; install a"
                f" version that has it, such as {TESTED}"
            )


def done_without(dispensable: Mapping[str, str] = DISPENSABLE) -> list[str]:
    """Return which optional parts the installed Prefect lacks, and the consequences."""
    return [
        f"Prefect {prefect.__version__} lacks {path}: {cost}"
        for path, cost in dispensable.items()
        if found(path) is None
    ]


def as_it_is(value: T) -> T:
    """Pass a value to a step untouched: Prefect would search all of it for futures."""
    return cast("T", quote(value))


class ModelFlow(Flow[P, R]):
    """Sends its parameters to Prefect's server as JSON made by Pydantic.

    Prefect's own flow uses FastAPI's encoder, which takes some tenths of a second to
    import and which a run needs for nothing else. If a Prefect version does not call
    this method, only that time is lost.
    """

    def serialize_parameters(
        self, parameters: dict[str, Any | PrefectFuture[Any] | State]
    ) -> dict[str, Any]:
        """Return the parameters as they are in JSON, by name."""
        told = {
            name: to_jsonable_python(value)
            for name, value in parameters.items()
            if isinstance(value, Checked)
        }
        if len(told) < len(parameters):
            return super().serialize_parameters(parameters)
        return told


def model_flow(
    *, name: str, flow_run_name: Callable[[], str] | None = None
) -> Callable[[Callable[P, R]], ModelFlow[P, R]]:
    """Make a flow of a function, as Prefect's own decorator does."""

    def decorate(function: Callable[P, R]) -> ModelFlow[P, R]:
        return ModelFlow(function, name=name, flow_run_name=flow_run_name)

    return decorate


@contextmanager
def untagged_steps() -> Iterator[None]:
    """Keep the run's tags away from the steps that are called in the block.

    Prefect asks its server for a slot per tag of each step: a step with tags could not
    start while the server is down.
    """
    tags = found(_TAGS)
    if tags is None:
        yield
        return
    with tags(current_tags=set()):
        yield


@asynccontextmanager
async def engine_client() -> AsyncIterator[PrefectClient]:
    """Yield the client of the present run's engine, or a new one.

    Making a client takes twenty times as long as a request with it.
    """
    client: PrefectClient | None = getattr(FlowRunContext.get(), "client", None)
    if client is None:
        async with get_client() as new:
            yield new
    else:
        yield client


def console_of(handler: object) -> Console | None:
    """Return the console of Prefect's own handler of log lines; None of any other."""
    kind = found(_CONSOLE_HANDLER)
    if kind is None or not isinstance(handler, kind):
        return None
    console = getattr(handler, "console", None)
    return console if isinstance(console, Console) else None


def start_runner(runner: Any) -> None:  # noqa: ANN401 - each package has its own
    """Start a task runner together with what it would start on first use.

    Dask's runner makes its cluster then: make it here, once, and not in two threads.
    """
    runner.__enter__()
    getattr(runner, "client", None)


def give_server_its_session() -> str | None:
    """Let Prefect start its temporary server in a session of its own.

    A terminal sends Ctrl-C to every process of its session: the server would end with
    the run, which would then wait a minute and a half for it.

    Prefect keeps one such server per process, made by the first caller.

    Returns:
        A warning, if this Prefect cannot do so.
    """
    if found(SERVER) is None:
        lost = "Ctrl-C ends Prefect's temporary server before the run has ended"
        return done_without({SERVER: lost})[0]
    server: Any = found(SERVER.rpartition(".")[0])
    type("OwnSessionServer", (server,), {"_run_uvicorn_command": _run_server})()
    return None


def _run_server(self: Any) -> "subprocess.Popen[Any]":  # noqa: ANN401
    """Start the server as Prefect does, but in a new session."""
    given = get_current_settings().to_environment_variables(exclude_unset=True)
    marks = {
        "PREFECT_UI_ENABLED": "0",
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_FINAL": "1",
    }
    return subprocess.Popen(  # noqa: S603 - Prefect's own command
        [
            sys.executable, "-m", "uvicorn",
            "--app-dir", str(prefect.__module_path__.parent),
            "--factory", "prefect.server.api.server:create_app",
            "--host", "127.0.0.1", "--port", str(self.port),
            "--log-level", "error", "--lifespan", "on",
        ],
        env={**os.environ, **marks, **given},
        start_new_session=True,
    )  # fmt: skip
