"""Registers everything with Prefect's server; doing so again changes nothing.

An existing work pool stays as it is. Deployments come from a prefect.yaml, which
Prefect's own command reads; automations are identified by name.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from prefect.automations import AutomationCore
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.types import SecretDict
from prefect.utilities.urls import url_for
from pydantic import SecretStr

from reward_profiling.deployments.automations import automations
from reward_profiling.errors import ConfigError
from reward_profiling.reporting.outcome import RUN_TAG, SHARD_TAG

POOL = "reward-profiling"
"""The work pool of the deployments: processes on the machines that have a worker."""
PREFECT_FILE = Path(__file__).with_name("prefect.yaml")
"""The deployments, as installed."""
_WEBHOOK = "reward-profiling"
_SHOWN_LINES = 12


class Registered(NamedTuple):
    """What Prefect's server knows now."""

    deployments: dict[str, str]
    """From name to page, in order of name."""
    automations: list[str]
    """Names."""


async def register(
    folder: Path, prefect_file: Path, webhook_url: SecretStr | None
) -> Registered:
    """Register the work pool, the deployments and the automations.

    Runs of the deployments work in `folder`, which must be there.

    Raises:
        ConfigError: Prefect does not take the deployments.
        httpx.HTTPError: Prefect's server does not answer.
    """
    async with get_client() as client:
        await _make_pool(client)
        _deploy(folder, prefect_file)
        webhook = None if webhook_url is None else await _keep(webhook_url)
        names = [
            await _put_automation(client, automation)
            for automation in automations(webhook)
        ]
        return Registered(await _deployments(client), names)


async def _make_pool(client: PrefectClient) -> None:
    pool = WorkPoolCreate(
        name=POOL, type="process", description="Reward profiles, each in a process."
    )
    try:
        await client.create_work_pool(pool)
    except ObjectAlreadyExists:
        return


def _deploy(folder: Path, prefect_file: Path) -> None:
    """Let Prefect's own command read the file, in the working directory of the runs."""
    done = subprocess.run(  # noqa: S603 - Prefect's own command
        [
            sys.executable, "-P", "-m", "prefect", "--no-prompt",
            "deploy", "--all", "--prefect-file", str(prefect_file.resolve()),
        ],
        cwd=folder, env={**os.environ, "COLUMNS": "88"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:]
        raise ConfigError(f"Prefect refuses {prefect_file}:\n" + "\n".join(said))


async def _keep(url: SecretStr) -> UUID:
    """Keep the webhook's address in a block, since Prefect encrypts blocks."""
    headers = SecretDict({"Content-Type": "application/json"})
    block: Webhook = Webhook(url=url, headers=headers)
    kept = await block.save(_WEBHOOK, overwrite=True)
    return UUID(str(kept))


async def _put_automation(client: PrefectClient, automation: AutomationCore) -> str:
    there = await client.read_automations_by_name(automation.name)
    for found in there:
        await client.update_automation(found.id, automation)
    if not there:
        await client.create_automation(automation)
    return automation.name


async def _deployments(client: PrefectClient) -> dict[str, str]:
    found = [
        deployment
        for deployment in await client.read_deployments()
        if {RUN_TAG, SHARD_TAG} & set(deployment.tags or [])
    ]
    return {
        deployment.name: url_for("deployment", deployment.id) or ""
        for deployment in sorted(found, key=lambda one: one.name)
    }
