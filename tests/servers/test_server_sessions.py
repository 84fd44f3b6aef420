import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from aiohttp import web

from reward_profiling.errors import ConfigError, ServersNotReadyError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.servers.options import ServerOptions
from reward_profiling.servers.readiness import unseen, wait_until_ready
from reward_profiling.servers.server_sessions import check_servers, serving
from reward_profiling.servers.server_states import ObserveServers
from reward_profiling.servers.starting.child_processes import free_port
from reward_profiling.stop_scope import Cause, StopScope
from tests.observing import HTTP

CONFIG = {"math_agent": {"responses_api_agents": {"a": {"port": 1}}}}
pytestmark = pytest.mark.anyio

# Serves a head on the port it is given, as `gym env start` does: starting at first,
# then ready, with a server of its own in the background, and gone at an interrupt.
FAKE_GYM = """#!{python}
import http.server, json, os, pathlib, signal, subprocess, sys
folder = pathlib.Path({folder!r})
(folder / "arguments").write_text(json.dumps(sys.argv[1:]))
child = subprocess.Popen(["sleep", "60"])
(folder / "pids").write_text(f"{{os.getpid()}} {{child.pid}}")
print("gym is starting", flush=True)
num_probes, num_starting = 0, 2
{before}
class Head(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global num_probes
        num_probes += self.path == "/readyz"
        is_starting = self.path == "/readyz" and num_probes <= num_starting
        (logs,) = [a[19:] for a in sys.argv if a.startswith("++nemo_gym_log_dir=")]
        body = json.dumps({{**{config!r}, "nemo_gym_log_dir": logs}}).encode()
        if self.path == "/server_instances":
            math = {{"process_name": "math", "url": "http://127.0.0.1:9"}}
            body = json.dumps([{{**math, "pid": child.pid}}]).encode()
        self.send_response(503 if is_starting else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
(port,) = [int(one[19:]) for one in sys.argv if one.startswith("++head_server.port=")]
try:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Head)
except OSError as error:
    sys.exit(
        "ERROR:    [Errno 98] error while attempting to bind on address"
        f" ('127.0.0.1', {{port}}): address already in use"
    )
try:
    server.serve_forever()
except KeyboardInterrupt:
    print("gym was interrupted", flush=True)
"""


def served(
    options: ServerOptions, files: RunFiles, observe: ObserveServers = unseen
) -> AbstractAsyncContextManager[str]:
    return serving(options, files, StopScope(), observe)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(tmp_path / "r.jsonl")


@pytest.fixture
def gym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Give a way to put a fake gym on PATH, which does something before it serves."""

    def make(before: str = "") -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        script = FAKE_GYM.format(
            python=sys.executable, folder=str(tmp_path), config=CONFIG, before=before
        )
        (folder / "fake-gym").write_text(script)
        (folder / "fake-gym").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return "fake-gym"

    return make


@asynccontextmanager
async def head(*statuses: int, config: object = CONFIG) -> AsyncIterator[str]:
    """Run a head server whose probe answers so, the last status for ever."""
    left = list(statuses)

    async def ready(_: web.Request) -> web.Response:
        return web.Response(status=left.pop(0) if len(left) > 1 else left[0])

    async def configuration(_: web.Request) -> web.Response:
        return web.Response(body=orjson.dumps(config))

    app = web.Application()
    app.router.add_get("/readyz", ready)
    app.router.add_get("/global_config_dict_yaml", configuration)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def is_up(url: str) -> bool:
    try:
        return HTTP.get(f"{url}/readyz").is_success
    except httpx.TransportError:
        return False


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def running_of(tmp_path: Path) -> list[bool]:
    pids = (tmp_path / "pids").read_text().split()
    return [is_running(int(pid)) for pid in pids]


def arguments_in(tmp_path: Path) -> list[str]:
    given: list[str] = orjson.loads((tmp_path / "arguments").read_bytes())
    return given


def text(log: Path) -> str:
    return log.read_text() if log.exists() else ""


# Servers that are found.


async def test_found_servers_are_left_alone(files: RunFiles) -> None:
    async with head(503, 200) as url:
        async with served(ServerOptions(head_url=url + "/"), files) as given:
            assert given == url

        probe = await asyncio.to_thread(httpx.get, f"{url}/readyz", trust_env=False)
        assert probe.status_code == 503  # the first probe that it got
    assert text(files.server_log) == ""


# The embedded environment.


async def test_the_environment_is_ready_at_once(files: RunFiles) -> None:
    async with served(ServerOptions(demo=True), files) as url:
        assert is_up(url)
        servers = await wait_until_ready(url, 1.0)
        assert "number_match_agent" in servers.agents

    assert not is_up(url)


async def test_the_environment_gets_the_model(files: RunFiles) -> None:
    options = ServerOptions(demo=True, model_url="no-url", model="m")

    with pytest.raises(ServersNotReadyError, match="--model-url must start with http"):
        async with served(options, files):
            pass


def command_lines() -> list[bytes]:
    """Give those of the processes that this one started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children]


async def test_a_key_is_on_no_command_line(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "planted-key")
    options = ServerOptions(
        demo=True, model_url="http://127.0.0.1:9/v1", model="m",
        model_api_key_env="MY_KEY",
    )  # fmt: skip

    async with served(options, files):
        (line,) = [one for one in command_lines() if b"http://127.0.0.1:9/v1" in one]

    assert b"\0--model-api-key-env\0MY_KEY\0" in line
    assert b"planted" not in line


# Gym.


async def test_gym_gets_its_flags_and_is_awaited(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(
        gym_config=("a.yaml", "b.yaml"), gym_command=gym(),
        gym_environment=("math",), gym_resources_server=("mcqa",), gym_benchmark=("b",),
        gym_model_type="openai_model", gym_agent_type="simple_agent",
        model_url="http://127.0.0.1:8000/v1", model="llama", gym_overrides=("+a=1",),
    )  # fmt: skip

    async with served(options, files) as url:
        assert is_up(url)

    given = arguments_in(tmp_path)
    private = next(one[14:] for one in given if one.startswith("hydra.run.dir="))
    assert given == [
        "env", "start", "--config", f"{private}/defaults.yaml",
        "--config", "a.yaml", "--config", "b.yaml",
        "--environment", "math", "--resources-server", "mcqa", "--benchmark", "b",
        "--model-type", "openai_model", "--agent-type", "simple_agent",
        "--model-url", "http://127.0.0.1:8000/v1", "--model", "llama",
        f"++head_server.port={url.rpartition(':')[2]}",
        f"++nemo_gym_log_dir={private}/logs", f"hydra.run.dir={private}",
        "hydra.output_subdir=null", "+a=1",
    ]  # fmt: skip
    assert await asyncio.to_thread(Path(private).exists) is False


async def test_gym_leaves_nothing_behind(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())

    async with served(options, files) as url:
        assert running_of(tmp_path) == [True, True]

    assert not is_up(url)
    assert running_of(tmp_path) == [False, False]
    assert text(files.server_log) == "gym is starting\ngym was interrupted\n"


async def test_an_ended_gym_shows_its_last_lines(
    gym: Callable[..., str], files: RunFiles
) -> None:
    command = gym("print('no such config'); sys.exit(1)")
    options = ServerOptions(gym_config=("a.yaml",), gym_command=command)

    with pytest.raises(ServersNotReadyError) as caught:
        async with served(options, files):
            pass

    assert str(caught.value) == (
        f"`fake-gym env start` ended with exit code 1; the end of {files.server_log}:\n"
        "gym is starting\nno such config"
    )


async def test_a_missing_gym_comes_with_a_remedy(
    files: RunFiles, tmp_path: Path
) -> None:
    missing = ServerOptions(gym_config=("a.yaml",), gym_command="no-such-gym")
    empty = ServerOptions(gym_config=("a.yaml",), gym_venv=str(tmp_path))

    with pytest.raises(ConfigError, match="no-such-gym cannot be run; install NeMo"):
        check_servers(missing)
    with pytest.raises(ConfigError, match="bin/gym cannot be run; give the folder"):
        async with served(empty, files):
            pass


async def test_gym_finds_its_own_neighbours_first(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    gym("(folder / 'path').write_text(os.environ['PATH'])")
    (tmp_path / "bin" / "fake-gym").rename(tmp_path / "bin" / "gym")
    options = ServerOptions(gym_resources_server=("mcqa",), gym_venv=str(tmp_path))

    async with served(options, files):
        pass

    assert text(tmp_path / "path").startswith(f"{tmp_path}/bin:")


async def test_gym_gets_a_key_by_its_variable(
    gym: Callable[..., str],
    files: RunFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "planted-key")
    command = gym("print('the key is', os.environ['MY_KEY'], flush=True)")
    options = ServerOptions(
        gym_config=("a.yaml",), gym_command=command, model_api_key_env="MY_KEY"
    )

    async with served(options, files):
        assert "++policy_api_key=${oc.env:MY_KEY}" in arguments_in(tmp_path)
        assert "planted-key" not in " ".join(arguments_in(tmp_path))
        assert files.server_log.stat().st_mode & 0o077 == 0

    assert text(files.server_log).startswith("gym is starting\nthe key is [redacted]\n")


def test_an_unset_variable_is_named(
    gym: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    options = ServerOptions(
        gym_config=("a.yaml",), gym_command=gym(), model_api_key_env="MY_KEY"
    )

    with pytest.raises(ConfigError, match="environment variable MY_KEY is not set"):
        check_servers(options)


def test_a_taken_port_names_its_holder(
    gym: Callable[..., str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ServerOptions(
            gym_config=("a.yaml",), gym_command=gym(),
            gym_overrides=(f"++head_server.port={port}",),
        )  # fmt: skip

        with pytest.raises(
            ConfigError, match=f"{port} is in use by pid {os.getpid()} "
        ):
            check_servers(options)


async def test_gym_is_looked_for_at_a_given_port(
    gym: Callable[..., str], files: RunFiles
) -> None:
    port = free_port()
    options = ServerOptions(
        gym_config=("a.yaml",), gym_command=gym(),
        gym_overrides=(f"++head_server.port={port}",),
    )  # fmt: skip

    async with served(options, files) as url:
        assert url == f"http://127.0.0.1:{port}"


async def test_the_failed_servers_log_is_shown(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    command = gym(
        "(logs,) = [a[19:] for a in sys.argv if a.startswith('++nemo_gym_log_dir=')]\n"
        "pathlib.Path(logs, 'math.log').write_text('no module named sums\\n')\n"
        "print('RuntimeError: Process `math` finished unexpectedly!'); sys.exit(1)"
    )
    options = ServerOptions(gym_config=("a.yaml",), gym_command=command)

    with pytest.raises(ServersNotReadyError) as caught:
        async with served(options, files):
            pass

    log = tmp_path / "r_server_logs" / "math.log"
    assert str(caught.value) == (
        "server math failed, and `fake-gym env start` ended with exit code 1; the end"
        f" of {log}:\nno module named sums"
    )
    assert running_of(tmp_path) == [False, False]


async def test_an_ended_gym_stops_the_run(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())
    causes: list[Cause] = []
    came = asyncio.Event()

    def stop(cause: Cause) -> None:
        causes.append(cause)
        came.set()

    scope = StopScope()
    async with serving(options, files, scope):
        os.kill(int(text(tmp_path / "pids").split()[0]), signal.SIGKILL)
        with scope.on_stop(stop):
            await asyncio.wait_for(came.wait(), 5)
        with scope.on_stop(stop):  # what begins later hears of it too
            assert len(causes) == 2
    with scope.on_stop(stop):
        assert len(causes) == 2

    assert causes[0].is_failure
    assert causes[0].reason == (
        "`fake-gym env start` ended with exit code 137 during the run; see"
        f" {files.server_log}. The missing rollouts are still owed"
    )


async def test_gym_is_named_though_servers_end_first(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())
    came: asyncio.Queue[Cause] = asyncio.Queue()

    scope = StopScope()
    async with serving(options, files, scope):
        own, server = map(int, text(tmp_path / "pids").split()[:2])
        stat = text(Path(f"/proc/{own}/stat"))
        guardian = int(stat.rpartition(")")[2].split()[1])
        os.kill(guardian, signal.SIGSTOP)
        with scope.on_stop(came.put_nowait):
            os.kill(server, signal.SIGKILL)
            os.kill(own, signal.SIGKILL)
            await asyncio.sleep(1.1)  # it is looked once a second
            os.kill(guardian, signal.SIGCONT)
            cause = await asyncio.wait_for(came.get(), 5)

    assert cause.reason == (
        "`fake-gym env start` ended with exit code 137 during the run; see"
        f" {files.server_log}. The missing rollouts are still owed"
    )


async def test_a_failed_server_is_noticed_first(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    command = gym(
        "num_starting = 10**6\n"
        "print('Starting `math` from venv /venvs/math/.venv', flush=True)\n"
        "(logs,) = [a[19:] for a in sys.argv if a.startswith('++nemo_gym_log_dir=')]\n"
        "said = 'ModuleNotFoundError: No module named \\'sums\\'\\n'\n"
        "pathlib.Path(logs, 'math.log').open('a').write(said)\n"
        "child.kill()"
    )
    options = ServerOptions(gym_config=("a.yaml",), gym_command=command)
    (tmp_path / "r_server_logs").mkdir()
    (tmp_path / "r_server_logs" / "math.log").write_text("of an earlier start\n")
    seen: list[str] = []

    with pytest.raises(ServersNotReadyError) as caught:
        async with served(options, files, lambda s: seen.extend(map(str, s))):
            pass

    log = tmp_path / "r_server_logs" / "math.log"
    assert str(caught.value) == (
        f"server math failed while starting; the end of {log}:\n"
        "ModuleNotFoundError: No module named 'sums'\n"
        "likely cause: /venvs/math/.venv lacks the module sums: an installation was"
        " probably interrupted. Delete that folder and start again; with"
        " ++skip_venv_if_present=true Gym uses an existing folder unchanged"
    )
    assert any("name='math', state='failed'" in one for one in seen)
    assert running_of(tmp_path) == [False, False]


async def test_an_ended_server_stops_the_run(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())
    came: asyncio.Queue[Cause] = asyncio.Queue()

    scope = StopScope()
    async with serving(options, files, scope) as url:
        with scope.on_stop(came.put_nowait):
            os.kill(int(text(tmp_path / "pids").split()[1]), signal.SIGKILL)
            cause = await asyncio.wait_for(came.get(), 5)
        assert is_up(url)  # Gym has not noticed yet

    assert cause.reason == (
        f"server math failed during the run; see {files.server_log}. The missing"
        " rollouts are still owed"
    )


async def test_a_port_lost_midway_is_replaced(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    # The first start finds its port taken by a head server of somebody else.
    taking = (
        "(port,) = [a[19:] for a in sys.argv if a.startswith('++head_server.port=')]\n"
        "if not (folder / 'taken').exists():\n"
        "    (folder / 'taken').write_text(port)\n"
        "    other = [sys.executable, '-m', 'http.server', '-b', '127.0.0.1', port]\n"
        "    subprocess.Popen(other)\n"
        "    import time; time.sleep(30)"
    )
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym(taking))
    seen: list[str] = []

    async with served(options, files, lambda s: seen.extend(str(o) for o in s)) as url:
        assert is_up(url)

    taken = text(tmp_path / "taken")
    assert not url.endswith(taken)
    again = f"restarting, because another process took port {taken}"
    assert sum(again in one for one in seen) == 1


async def test_losing_a_given_port_ends_the_start(
    gym: Callable[..., str], files: RunFiles
) -> None:
    port = free_port()
    taken = "import socket; taken = socket.create_server(('127.0.0.1', port))"
    options = ServerOptions(
        gym_config=("a.yaml",), gym_overrides=(f"++head_server.port={port}",),
        gym_command=gym(f"port = {port}; {taken}"),
    )  # fmt: skip

    with pytest.raises(
        ServersNotReadyError, match=f"port {port} of the head server was taken by "
    ) as caught:
        async with served(options, files):
            pass

    assert text(files.server_log).count("gym is starting") == 1
    assert "ended with exit code 1" in str(caught.value)


async def test_two_gyms_at_once_share_nothing(
    gym: Callable[..., str], tmp_path: Path
) -> None:
    options = ServerOptions(
        gym_config=("a.yaml",),
        gym_command=gym("print(os.environ['RAY_TMPDIR'], flush=True)"),
    )
    one, other = RunFiles(tmp_path / "one.jsonl"), RunFiles(tmp_path / "other.jsonl")

    async with served(options, one) as first, served(options, other) as second:
        assert is_up(first)
        assert is_up(second)

    folders = {text(files.server_log).splitlines()[1] for files in (one, other)}
    assert len(folders) == 2


async def test_a_gym_that_stays_down_is_stopped(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(
        gym_config=("a.yaml",), gym_command=gym("signal.pause()"), start_timeout=0.5
    )

    with pytest.raises(
        ServersNotReadyError, match=r"not ready within 0\.5 s"
    ) as caught:
        async with served(options, files):
            pass

    assert "gym is starting" in str(caught.value)
    assert running_of(tmp_path) == [False, False]


async def test_an_exception_of_ours_ends_gym(
    gym: Callable[..., str], files: RunFiles, tmp_path: Path
) -> None:
    options = ServerOptions(gym_config=("a.yaml",), gym_command=gym())

    with pytest.raises(RuntimeError, match="ours"):
        async with served(options, files):
            raise RuntimeError("ours")

    assert running_of(tmp_path) == [False, False]
