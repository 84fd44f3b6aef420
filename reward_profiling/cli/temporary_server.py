"""Prefect's own temporary server, in a session of its own.

A terminal's Ctrl-C goes to every process of the session: it would end the server with
the run, and the run would wait a minute and a half for an answer before it ends.
"""

import os
import subprocess
import sys
from typing import Any

import prefect
from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import get_current_settings


class _OwnSessionServer(SubprocessASGIServer):
    """The server as Prefect starts it, but for its session."""

    def _run_uvicorn_command(self) -> "subprocess.Popen[Any]":
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


def prepare_temporary_server() -> None:
    """Have Prefect use this server wherever it would start its temporary one.

    Prefect keeps one such server for a process, made by whoever asks first.
    """
    _OwnSessionServer()
