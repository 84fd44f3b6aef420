"""`run` and `demo`: the whole workflow, run by Prefect."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Never

from reward_profiling.choosing.adaptive_rounds import AdaptiveOptions
from reward_profiling.choosing.options import BaselineOptions
from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.importing import to_stay
from reward_profiling.cli.option_groups import (
    ADAPTIVE,
    BASELINE,
    COLLECTION,
    METRICS,
    PLAN,
    PROFILE,
    SERVERS,
    SPREADING,
    fields_of,
)
from reward_profiling.cli.summary_view import show_summary
from reward_profiling.cli.terminal.live import Live
from reward_profiling.cli.terminal.screen import complain, err
from reward_profiling.collecting.options import AggregateOptions, CollectOptions
from reward_profiling.collecting.spreading.spread import SpreadOptions
from reward_profiling.files.run_files import RunFiles
from reward_profiling.flows.parameters import RewardProfilingParams
from reward_profiling.flows.spreading.runner_extras import need_extra
from reward_profiling.planning.checked_input import CheckedInput, check_input
from reward_profiling.planning.materialization import refuse_change
from reward_profiling.planning.options import PlanOptions
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.servers.allow_lists import check_output
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.server_sessions import check_servers
from reward_profiling.servers.starting.child_processes import leftovers_stopped
from reward_profiling.tasks.shared.present_run import PresentRun

DEMO_OUTPUT = Path("reward-profiling-demo/rollouts.jsonl")
_DEMO_REPEATS = 8
_STARTING = "starting Prefect's temporary server …"
_PREFECT_DEFAULTS = {
    # The command line shows the run itself; Prefect's page has the full log.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "DO_NOT_TRACK": "1",
}

for value, group in (
    (RewardProfilingParams, PLAN),
    (ServerOptions, SERVERS),
    (PlanOptions, PLAN),
    (CollectOptions, COLLECTION),
    (AdaptiveOptions, ADAPTIVE),
    (SpreadOptions, SPREADING),
    (AggregateOptions, METRICS),
    (ProfileOptions, PROFILE),
    (BaselineOptions, BASELINE),
):
    fields_of(group)(value)


def run(*, params: RewardProfilingParams) -> int:
    """Plan, collect and profile; running it again does only what is left.

    Args:
        params: What to profile.
    """
    files = RunFiles(params.output)
    need_extra(params.spread.runner)
    # Check early: Prefect takes seconds to start, and servers take minutes.
    check_output(params.output)
    checked = check_input(params.input_path, params.plan)
    refuse_change(checked, files)
    if not files.rollouts.exists():  # else there may be nothing to start servers for
        check_servers(params.servers)
    return _run_flow(params, checked)


def demo(
    *,
    output: Path | None = None,
    num_repeats: int = _DEMO_REPEATS,
    concurrency: int = 16,
    model_url: str | None = None,
    model: str | None = None,
) -> int:
    """Profile the embedded environment: 24 small tasks, three verifiers.

    Args:
        output: The rollouts file. Default: in a new folder, reward-profiling-demo.
        num_repeats: Rollouts per task.
        concurrency: The most rollouts in flight.
        model_url: OpenAI-compatible endpoint to ask instead of the scripted policy;
            its key comes from the environment variable MODEL_API_KEY.
        model: Name of the model at that endpoint.
    """
    return run(
        params=RewardProfilingParams(
            output=output or _unused(DEMO_OUTPUT),
            servers=ServerOptions(demo=True, model_url=model_url, model=model),
            plan=PlanOptions(num_repeats=num_repeats),
            collect=CollectOptions(concurrency=concurrency),
        )
    )


def _unused(output: Path) -> Path:
    """Return the path, in the first numbered folder that does not exist yet."""
    folder, number = output.parent, 1
    while folder.exists():
        number += 1
        folder = output.parent.with_name(f"{output.parent.name}-{number}")
    return folder / output.name


def _has_no_settings() -> bool:
    """Say whether Prefect can know no server: by the environment or by a file."""
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    here = map(Path, ("prefect.toml", "pyproject.toml", ".env"))
    files = (home / "profiles.toml", *here)
    told = {"PREFECT_API_URL", "PREFECT_PROFILES_PATH"}
    is_told = any(name.upper() in told for name in os.environ)
    return not is_told and not any(map(Path.exists, files))


def _run_flow(params: RewardProfilingParams, checked: CheckedInput) -> int:
    for name, value in _PREFECT_DEFAULTS.items():
        os.environ.setdefault(name, value)
    for name in ("NO_PROXY", "no_proxy"):
        # A proxy of the network does not know this machine's own addresses.
        hosts = [host for host in os.environ.get(name, "").split(",") if host]
        os.environ[name] = ",".join(dict.fromkeys([*hosts, "127.0.0.1", "localhost"]))
    is_told = _has_no_settings()
    if is_told:  # before the imports, which take a while
        err.print(_STARTING, style="dim")
    # Read after the environment is set: Prefect takes its settings on import.
    with to_stay():
        from reward_profiling.tasks.shared.prefect_internals import check_prefect  # noqa: PLC0415

        check_prefect()
        from reward_profiling.cli.conducting import conduct, is_server_temporary  # noqa: PLC0415

    # Not before: an exception while extension modules are imported can crash them.
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    if not is_told and is_server_temporary():
        err.print(_STARTING, style="dim")
    live = Live()
    run = PresentRun(observer=live, checked=checked)
    with run.entered(), leftovers_stopped(), live.showing():
        ended = asyncio.run(conduct(params, live))
    if ended.summary is not None:
        show_summary(ended.summary)
    if ended.message:
        complain(ended.message)
    if ended.is_prefect_away:
        _leave_prefect(ended.exit_code)
    return ended.exit_code


def _leave_prefect(code: int) -> Never:
    """End the process at once, even if Prefect still has logs and events to send.

    Its services register with `threading`, which waits for them before `atexit` runs:
    they would retry a dead server for a minute and a half. Our own work is done, and
    all output is flushed.
    """
    os._exit(code)


def _exit_on_sigterm(*_: object) -> Never:
    sys.exit(ExitCode.TERMINATED)
