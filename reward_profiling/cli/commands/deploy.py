"""`deploy` and `worker`: profiles that are run from Prefect's pages and by schedule."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import httpx
from pydantic import SecretStr

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.prefect_fault import prefect_fault
from reward_profiling.cli.terminal.screen import err, out
from reward_profiling.errors import ConfigError, ServersNotReadyError

_START_SECONDS = 60.0
_POLL_SECONDS = 0.5


def deploy(
    *,
    folder: Path = Path(),
    prefect_file: Path | None = None,
    webhook_url_env: str | None = None,
) -> int:
    """Register the deployments, their work pool and their automations in Prefect.

    Run it again to update them; it never creates duplicates.

    Args:
        folder: The working directory of the runs; their relative paths start here.
        prefect_file: Your own prefect.yaml. Default: the installed one.
        webhook_url_env: Name of the environment variable with the address of a webhook
            to tell when a run is partial, regressed, or its verifier is suspect.
    """
    url = _server_url()
    from reward_profiling.deployments.registering import PREFECT_FILE, register  # noqa: PLC0415

    if not folder.is_dir():
        raise ConfigError(f"--folder: {folder} is not a folder; create it first")
    webhook = _webhook_url(webhook_url_env)
    _wait_for(url)
    work = register(folder.resolve(), prefect_file or PREFECT_FILE, webhook)
    try:
        registered = asyncio.run(work)
    except httpx.HTTPError as error:
        raise ServersNotReadyError(
            f"not everything is registered; deploy again. {prefect_fault(error)}"
        ) from error
    out.print(f"deployments, which work in {folder.resolve()}:")
    width = max(map(len, registered.deployments), default=0)
    for name, page in registered.deployments.items():
        out.print(f"  {name:{width}} {page}")
    out.print("automations:")
    for name in registered.automations:
        out.print(f"  {name}")
    out.print("a worker runs them: reward-profiling worker")
    return ExitCode.WHOLE


def _webhook_url(variable: str | None) -> SecretStr | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise ConfigError(
            f"--webhook-url-env: the environment variable {variable} is not set; put"
            " the webhook's address there"
        )
    if not os.environ[variable].startswith(("http://", "https://")):
        raise ConfigError(
            f"--webhook-url-env: the value of {variable} must be an address that starts"
            " with https:// or http://"
        )
    return SecretStr(os.environ[variable])


def worker(*, limit: int | None = None, name: str | None = None) -> int:
    """Run what is due, in processes on this machine, until stopped.

    Args:
        limit: The most runs at the same time.
        name: The worker's name on Prefect's pages.
    """
    _server_url()
    from reward_profiling.deployments.registering import POOL  # noqa: PLC0415

    command = [
        sys.executable, "-P", "-m", "prefect", "worker", "start",
        "--pool", POOL, "--type", "process",
    ]  # fmt: skip
    if limit is not None:
        command += ["--limit", str(limit)]
    if name is not None:
        command += ["--name", name]
    # Prefect makes SIGTERM an interrupt, and a script has what it starts in the
    # background ignore those: such a worker would never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - Prefect's own command


def _server_url() -> str:
    """Return the API's URL; not that of Prefect's temporary server, which nobody sees.

    Raises:
        ConfigError: no server is named.
    """
    from prefect.settings import PREFECT_API_URL  # noqa: PLC0415

    url = PREFECT_API_URL.value()
    if not url:
        raise ConfigError(
            "no Prefect server is configured: start one with `prefect server start`,"
            " then run `prefect config set"
            " PREFECT_API_URL=http://127.0.0.1:4200/api` once"
        )
    return str(url)


def _wait_for(url: str) -> None:
    """Wait until Prefect's server answers: a new one needs some seconds.

    Raises:
        ServersNotReadyError: it does not.
    """
    deadline = time.monotonic() + _START_SECONDS
    is_told = False
    while (problem := _problem(url)) is not None:
        if time.monotonic() > deadline:
            raise ServersNotReadyError(f"Prefect's server does not answer: {problem}")
        if not is_told:
            err.print(f"waiting for Prefect's server at {url} …", style="dim")
            is_told = True
        time.sleep(_POLL_SECONDS)


def _problem(url: str) -> str | None:
    try:
        reply = httpx.get(f"{url}/health", timeout=5.0)
    except httpx.HTTPError as error:
        return f"{url}: {error}"
    return None if reply.is_success else f"{url} answered {reply.status_code}"
