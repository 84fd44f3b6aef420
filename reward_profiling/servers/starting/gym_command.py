"""`gym env start`: finds it, prepares and calls it, and reads its log.

It runs in the working directory, where Gym looks for env.yaml and relative paths.
Hydra's copy of the arguments, which Gym would leave there, is switched off. A key stays
in the environment: Gym only gets the name of its variable.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from reward_profiling.errors import ConfigError
from reward_profiling.servers.allow_lists import check_command
from reward_profiling.servers.options import ServerOptions
from reward_profiling.texts.redaction import learn_configuration

_HEAD_PORT = re.compile(r"\+{0,2}head_server\.port=(\d+)")
_LOG_FOLDER = re.compile(r"\+{0,2}nemo_gym_log_dir=")
_ENDED = re.compile(r"Process `([^`\n]+)` finished unexpectedly!")
_NOT_SETTABLE = ("NEMO_GYM_CONFIG_DICT", "NEMO_GYM_CONFIG_PATH")
_USER_CONFIG = "env.yaml"
_LISTENING = "0A"


class PrivateFolder(NamedTuple):
    """A folder for one start of Gym, gone when everything it started is."""

    path: Path
    logs: Path
    """Where servers log: a link, since Gym gives the path to a shell as it is."""
    defaults: Path
    """A configuration that everything else overrides: a local model needs no key."""


def gym_executable(options: ServerOptions) -> str:
    """Return the path of Gym's command.

    Raises:
        ConfigError: it is not there, cannot be run, or may not be on this machine.
    """
    path = _executable(options)
    check_command(path)
    return path


def _executable(options: ServerOptions) -> str:
    if options.gym_venv is not None:
        path = Path(options.gym_venv).expanduser() / "bin" / "gym"
        if os.access(path, os.X_OK):
            return str(path.absolute())
        raise ConfigError(
            f"--gym-venv: {path} cannot be run; give the folder of the virtual"
            " environment that NeMo Gym is installed in"
        )
    found = shutil.which(os.path.expanduser(options.gym_command))  # noqa: PTH111 - text
    if found is None:
        raise ConfigError(
            f"--gym-command: {options.gym_command} cannot be run; install NeMo Gym, or"
            " give its virtual environment with --gym-venv, or run where its servers"
            " are up with --head-url"
        )
    return os.path.abspath(found)  # noqa: PTH100 - a link stays one


def gym_arguments(
    options: ServerOptions, executable: str, port: int, private: PrivateFolder
) -> list[str]:
    """Return the command that starts the servers; none of it is secret."""
    command = [executable, "env", "start"]
    has_key = bool(os.environ.get(options.key_variable))
    if not has_key:
        command += ["--config", str(private.defaults)]
    for flag, values in (
        ("--config", options.gym_config),
        ("--environment", options.gym_environment),
        ("--resources-server", options.gym_resources_server),
        ("--benchmark", options.gym_benchmark),
        ("--model-type", (options.gym_model_type,)),
        ("--agent-type", (options.gym_agent_type,)),
        ("--model-url", (options.model_url,)),
        ("--model", (options.model,)),
    ):
        for value in values:
            command += [flag, value] if value is not None else []
    if head_port(options) is None:
        command.append(f"++head_server.port={port}")
    command += [
        f"++nemo_gym_log_dir={private.logs}",
        # Otherwise Hydra writes the arguments to a file in the user's folder.
        f"hydra.run.dir={private.path}", "hydra.output_subdir=null",
    ]  # fmt: skip
    if has_key:
        command.append(f"++policy_api_key=${{oc.env:{options.key_variable}}}")
    return [*command, *options.gym_overrides]


def gym_environment(executable: str, private: Path) -> dict[str, str]:
    """Return the environment that Gym runs in."""
    kept = {k: v for k, v in os.environ.items() if k not in _NOT_SETTABLE}
    path = f"{Path(executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # A separate Ray: files of an earlier one, or another run, cannot interfere, and
    # what it leaves on disk is deleted with the folder.
    return {"RAY_TMPDIR": str(private), **kept, "PATH": path, "PYTHONUNBUFFERED": "1"}


@contextmanager
def private_folder(logs: Path) -> Iterator[PrivateFolder]:
    """Make a folder that only this user reads; it is deleted at the end.

    Its path is short, for the sockets in it, and has nothing that a shell reads.
    """
    logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = Path(tempfile.mkdtemp(prefix="rp-", dir="/tmp"))
    try:
        link = folder / "logs"
        link.symlink_to(logs.absolute())
        defaults = folder / "defaults.yaml"
        defaults.write_text("policy_api_key: none\n", encoding="utf-8")
        yield PrivateFolder(folder, link, defaults)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def head_port(options: ServerOptions) -> int | None:
    """Return the head server's port that the options give; None leaves it to us."""
    found = [_HEAD_PORT.fullmatch(override) for override in options.gym_overrides]
    ports = [int(match[1]) for match in found if match is not None]
    return ports[-1] if ports else None


def is_start_of(
    options: ServerOptions, private: PrivateFolder, config: Mapping[str, Any]
) -> bool:
    """Say whether a configuration is that of the start that has this folder.

    False for one that names no log folder, as that of an older Gym: then the process
    that listens is to be looked at.
    """
    is_overridden = any(_LOG_FOLDER.match(one) for one in options.gym_overrides)
    return is_overridden or config.get("nemo_gym_log_dir") == str(private.logs)


def check_gym(options: ServerOptions) -> None:
    """Check, before anything starts, what can be known of a start that would fail.

    Raises:
        ConfigError: there is no such command or key, or the given port is taken.
    """
    gym_executable(options)
    variable = options.model_api_key_env
    if variable is not None and not os.environ.get(variable):
        shown = f" {variable}" if variable.isupper() else ""
        raise ConfigError(
            f"--model-api-key-env: the environment variable{shown} is not set"
        )
    port = head_port(options)
    if port is not None and (holder := port_holder(port)) is not None:
        raise ConfigError(
            f"--gym-overrides: the head server's port {port} is in use by {holder};"
            " give another one, or leave ++head_server.port out to get a free one"
        )


def learn_secrets(options: ServerOptions) -> None:
    """Keep in mind the secrets of the files that Gym is going to read."""
    for path in (_USER_CONFIG, *options.gym_config):
        with suppress(OSError, ValueError, yaml.YAMLError, RecursionError):
            learn_configuration(yaml.load(Path(path).read_bytes(), yaml.CSafeLoader))


def ended_server(log: str) -> str | None:
    """Return the server that Gym's log says has ended; None when it names none."""
    found = _ENDED.findall(log)
    return found[-1] if found else None


def server_log(logs: Path, server: str) -> Path:
    """Return the log of one server, named as Gym names it."""
    return logs / f"{server.replace('/', '_')}.log"


def port_holder(port: int) -> str | None:
    """Say who listens on a port: "pid 12 (name)", or "another process"."""
    inodes = _listening(port)
    if not inodes:
        return None
    pid = _holder_of(inodes)
    if pid is None:
        return "another process"
    name = ""
    with suppress(OSError):
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return f"pid {pid} ({name})"


def port_holder_pid(port: int) -> int | None:
    """Return the process that listens on a port; None where that cannot be seen."""
    return _holder_of(_listening(port))


def _listening(port: int) -> set[str]:
    """Return the sockets that listen on a port, as /proc names them."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and fields[1].endswith(f":{port:04X}"):
                    inodes.add(f"socket:[{fields[9]}]")
    return inodes


def _holder_of(inodes: Container[str]) -> int | None:
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if os.readlink(link) in inodes:  # noqa: PTH115 - a name, not a path
                return int(link.parents[1].name)
    return None
