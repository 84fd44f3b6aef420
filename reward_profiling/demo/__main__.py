"""The embedded environment as its own process: `python -m reward_profiling.demo`.

It prints its address as one JSON line on standard output: `{"url": "http://…"}`. With
`--watch-stdin` it ends when its standard input closes, so it never survives its owner.
With a real model it answers only to who sends `Authorization: Bearer` and the token
that the variable REWARD_PROFILING_DEMO_TOKEN holds, here and there; it must be set.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
import threading
import time

import orjson
from aiohttp import web

from reward_profiling import wire
from reward_profiling.demo.head import HOST
from reward_profiling.demo.policy import ScriptedPolicy
from reward_profiling.demo.responses import Policy
from reward_profiling.demo.server import make_app

BACKLOG = 4096
OPEN_FILES = 65_536
KEEPALIVE_SECONDS = 75.0
LAST_REPLIES_SECONDS = 0.1
GRACE_SECONDS = 2.0
READ_BYTES = 65_536


def main() -> None:
    """Read the options, listen, and serve until told to stop."""
    options = _options()
    _allow_many_sockets()
    asyncio.run(_serve(options))


def _options() -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args()
    if options.model_url is not None:
        if not options.model_url.startswith(("http://", "https://")):
            parser.error("--model-url must start with http:// or https://")
        if not options.model:
            parser.error("--model-url needs --model, the name the endpoint knows")
        if not os.environ.get(wire.DEMO_VARIABLE):
            parser.error(
                f"--model-url needs the variable {wire.DEMO_VARIABLE}: a token of those"
                " who may spend the model's key"
            )
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reward_profiling.demo", description=__doc__
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="of the scripted policy")
    parser.add_argument(
        "--latency-scale", type=float, default=1.0, help="0 answers at once"
    )
    parser.add_argument("--model-url", help="ask this OpenAI-compatible endpoint")
    parser.add_argument("--model", default="", help="its model")
    parser.add_argument(
        "--model-api", choices=["auto", "responses", "chat"], default="auto"
    )
    parser.add_argument(
        "--model-api-key-env",
        default="MODEL_API_KEY",
        metavar="NAME",
        help="environment variable that holds the key; unset sends none",
    )
    parser.add_argument(
        "--watch-stdin", action="store_true", help="end when standard input does"
    )
    return parser


async def _serve(options: argparse.Namespace) -> None:
    stop = _stop_signal(watch_stdin=options.watch_stdin)
    listener = socket.create_server((HOST, options.port), backlog=BACKLOG)
    port = listener.getsockname()[1]
    policy = _policy(options)
    token = None if options.model_url is None else os.environ[wire.DEMO_VARIABLE]
    runner = web.AppRunner(
        make_app(port, policy, token),
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=LAST_REPLIES_SECONDS,
    )
    await runner.setup()
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    _announce(port)
    await stop.wait()
    await runner.cleanup()
    await policy.aclose()


def _policy(options: argparse.Namespace) -> Policy:
    if options.model_url is None:
        return ScriptedPolicy(options.seed, options.latency_scale)
    # Imported here: only a real model needs the HTTP client, which is slow to import.
    from reward_profiling.demo.model_endpoint import ModelEndpoint  # noqa: PLC0415

    key = os.environ.get(options.model_api_key_env, "")
    return ModelEndpoint(
        options.model_url, options.model, api=options.model_api, api_key=key
    )


def _stop_signal(*, watch_stdin: bool) -> asyncio.Event:
    """Give the event that SIGTERM, SIGINT or the end of standard input sets."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if watch_stdin:
        watcher = threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True)
        watcher.start()
    return stop


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Read to the end, ask the loop to stop, and do not wait for it for long."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), READ_BYTES):
            pass
    loop.call_soon_threadsafe(stop.set)
    time.sleep(GRACE_SECONDS)
    os._exit(0)


def _announce(port: int) -> None:
    line = orjson.dumps({"url": f"http://{HOST}:{port}"}).decode()
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _allow_many_sockets() -> None:
    """Raise the limit on open files as far as this user may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(most, OPEN_FILES)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


if __name__ == "__main__":
    main()
