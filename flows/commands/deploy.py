"""`deploy` and `worker`: profiles that are run from Prefect's pages and by schedule."""

import asyncio
import os
import sys
from pathlib import Path

import httpx
from pydantic import SecretStr

from flows.exit_codes import ExitCode
from flows.terminal import complain, out
from tasks.core.errors import ConfigError


def deploy(
    *,
    folder: Path = Path(),
    prefect_file: Path | None = None,
    webhook_url_env: str | None = None,
) -> int:
    """Register the deployments, their work pool and their automations in Prefect.

    Again, to register them anew: nothing is there twice.

    Args:
        folder: Where runs work, and what relative paths of theirs start from.
        prefect_file: A prefect.yaml of your own; the installed one by default.
        webhook_url_env: Name of the environment variable with the address of a webhook
            to tell when a run is partial, regressed, or its verifier is suspect.
    """
    _need_server()
    from deployments.registering import PREFECT_FILE, register  # noqa: PLC0415

    if not folder.is_dir():
        raise ConfigError(f"--folder: {folder} is no folder; make it, or name another")
    webhook = _webhook_url(webhook_url_env)
    work = register(folder.resolve(), prefect_file or PREFECT_FILE, webhook)
    try:
        registered = asyncio.run(work)
    except httpx.TransportError as error:
        complain(f"Prefect's server does not answer: {error}")
        return ExitCode.FAILED
    out.print(f"deployments, which work in {folder.resolve()}:")
    for name, page in registered.deployments.items():
        out.print(f"  {name:10} {page}")
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
            f"--webhook-url-env: the environment has no {variable}; put the webhook's"
            " address there"
        )
    return SecretStr(os.environ[variable])


def worker(*, limit: int | None = None, name: str | None = None) -> int:
    """Run what is due, in processes of this machine, until stopped.

    Args:
        limit: Runs at the same time at most.
        name: The worker's name on Prefect's pages.
    """
    _need_server()
    from deployments.registering import POOL  # noqa: PLC0415

    command = [
        sys.executable, "-P", "-m", "prefect", "worker", "start",
        "--pool", POOL, "--type", "process",
    ]  # fmt: skip
    if limit is not None:
        command += ["--limit", str(limit)]
    if name is not None:
        command += ["--name", name]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 - Prefect's own command


def _need_server() -> None:
    """Refuse to register with Prefect's temporary server, which nobody could see.

    Raises:
        ConfigError: no server is named.
    """
    from prefect.settings import PREFECT_API_URL  # noqa: PLC0415

    if not PREFECT_API_URL.value():
        raise ConfigError(
            "no Prefect server is named: start one with `prefect server start`, and say"
            " once where it is: `prefect config set"
            " PREFECT_API_URL=http://127.0.0.1:4200/api`"
        )
