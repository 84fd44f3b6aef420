"""Gym's HTTP surface on one port: head, environment servers, and the knobs.

`/run` answers like a native Gym agent, with the verifier's findings at the end. One
port serves all environment servers, so `/aggregate_metrics` profiles whatever rows
the client groups.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from reward_profiling.demo.guard import guard
from reward_profiling.demo.head import (
    config_text,
    environment_of_agent,
    server_instances,
)
from reward_profiling.demo.knobs import Faults
from reward_profiling.demo.responses import (
    Json,
    ModelCallError,
    Policy,
    output_text,
    pad_output,
)
from reward_profiling.demo.verifying.verifiers import VERIFIERS, Verdict
from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.wire import (
    AGENT_REF,
    AGGREGATE_PATH,
    CONFIG_PATH,
    MASK_SAMPLE,
    PARAMS,
    READY_PATH,
    RESPONSE,
    REWARD,
    ROLLOUT_INDEX,
    RUN_PATH,
    TASK_INDEX,
)

MAX_BODY_BYTES = 256 * 1024 * 1024
HEALTH_PATHS = ("/", "/livez", READY_PATH, "/healthz", "/health")
KNOBS_PATH = "/_knobs"
ROW_KEY = {TASK_INDEX, ROLLOUT_INDEX}

# What a defect can raise while a request is handled, by family.
DEFECTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

logger = logging.getLogger(__name__)


class UnprocessableError(ConfigError):
    """A request body is not what the route takes; `detail` is FastAPI's."""

    def __init__(self, kind: str, place: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.detail = [{"type": kind, "loc": ["body", *place], "msg": message}]


def make_app(port: int, policy: Policy, token: str | None = None) -> web.Application:
    """Give the application that serves `port`; with a token, to those who send it.

    Only a scripted policy has knobs: a real model's rewards must not be set.
    """
    app = web.Application(
        client_max_size=MAX_BODY_BYTES,
        middlewares=[guard(port, token), _fault_replies],
    )
    faults = Faults()
    routes = Routes(port, policy, faults)
    app.add_routes([web.get(path, _health) for path in HEALTH_PATHS])
    app.add_routes(
        [
            web.get(CONFIG_PATH, routes.config),
            web.get("/server_instances", routes.instances),
            web.post(RUN_PATH, routes.run),
            web.post(AGGREGATE_PATH, _aggregate),
        ]
    )
    if token is None:
        app.add_routes(
            [
                web.get(KNOBS_PATH, routes.knobs),
                web.post(KNOBS_PATH, routes.turn_knobs),
            ]
        )
    return app


@dataclass(frozen=True)
class Routes:
    """The routes that know the port, the policy or the faults."""

    port: int
    policy: Policy
    faults: Faults

    async def config(self, _: web.Request) -> web.Response:
        """Give the merged configuration, a JSON string of YAML text."""
        return _json(config_text(self.port, self.policy.model))

    async def instances(self, _: web.Request) -> web.Response:
        """List the servers."""
        return _json(server_instances(self.port))

    async def knobs(self, _: web.Request) -> web.Response:
        """Give knobs and counters."""
        return _json(self.faults.snapshot())

    async def turn_knobs(self, request: web.Request) -> web.Response:
        """Turn the knobs that the body names."""
        try:
            self.faults.merge(_object(await request.read()))
        except ConfigError as error:
            return _json({"detail": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
        return _json(self.faults.snapshot())

    async def run(self, request: web.Request) -> web.Response:
        """Roll one materialized row out: policy, then verifier."""
        body = await request.read()
        with self.faults.counted(_rollout_key(body)):
            ordered = await self.faults.reply(request, body)
            return ordered or await self._rolled_out(_object(body), body)

    async def _rolled_out(self, row: Json, body: bytes) -> web.Response:
        params = _params(row)
        agent = row.get(AGENT_REF)
        environment = environment_of_agent(_name(agent))
        if environment is None:
            detail = f"no agent is called {_name(agent)!r}"
            return _json({"detail": detail}, HTTPStatus.NOT_FOUND)
        if row.get("expected_answer") is None:
            raise _missing("expected_answer")
        verify = VERIFIERS[environment]
        verify("", row)  # an unusable row is refused before the model is paid
        reply = await self.policy.reply(row, params)
        await asyncio.sleep(self._latency_seconds(reply.latency_seconds))
        pad_output(reply.response, self.faults.knobs.pad_bytes)
        verdict = verify(output_text(reply.response), row)
        record = _record(row, reply.response, verdict)
        record[REWARD] = self.faults.reward(verdict.reward, body)
        return _json(record)

    def _latency_seconds(self, scripted: float) -> float:
        fixed = self.faults.knobs.latency_ms
        return fixed / 1000 if fixed >= 0 else scripted


def _record(row: Json, response: Json, verdict: Verdict) -> Json:
    """Give the reply of a native agent; a number expected is echoed as text.

    Gym makes a metric of every numeric field, and an expectation is not one.
    """
    expected = row["expected_answer"]
    return {
        PARAMS: row[PARAMS],
        RESPONSE: response,
        REWARD: verdict.reward,
        MASK_SAMPLE: False,
        "failure_kind": None,
        "failure_reason": None,
        "expected_answer": expected if isinstance(expected, list) else str(expected),
        "extracted_answer": verdict.extracted_answer,
    }


async def _health(_: web.Request) -> web.Response:
    return _json({"status": "ok"})


async def _aggregate(request: web.Request) -> web.Response:
    # Imported here: it would slow every start down, and few clients need it.
    from reward_profiling.demo.aggregate_replies import aggregate_reply  # noqa: PLC0415

    rows = _object(await request.read()).get("verify_responses")
    if not isinstance(rows, list):
        raise _missing("verify_responses")
    return _json(await asyncio.to_thread(aggregate_reply, rows))


@web.middleware
async def _fault_replies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Put everything that can go wrong into the status and body Gym gives it."""
    try:
        return await handler(request)
    except UnprocessableError as error:
        return _json({"detail": error.detail}, HTTPStatus.UNPROCESSABLE_ENTITY)
    except DatasetError as error:
        detail = UnprocessableError("value_error", (), str(error)).detail
        return _json({"detail": detail}, HTTPStatus.UNPROCESSABLE_ENTITY)
    except ModelCallError as error:
        reply = _json(error.message, error.status)
        if error.retry_after:
            reply.headers["Retry-After"] = error.retry_after
        return reply
    except DEFECTS as error:
        logger.exception("%s %s", request.method, request.path)
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        return _json(f"{type(error).__name__}: {error}", status)


def _json(value: object, status: int = HTTPStatus.OK) -> web.Response:
    body = orjson.dumps(value)
    return web.Response(body=body, status=status, content_type="application/json")


def _object(body: bytes) -> Json:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        message = f"JSON decode error: {error.msg}"
        raise UnprocessableError("json_invalid", (error.pos,), message) from error
    if not isinstance(value, dict):
        message = "Input should be a valid dictionary"
        raise UnprocessableError("model_attributes_type", (), message)
    return value


def _params(row: Json) -> Json:
    params = row.get(PARAMS)
    if params is None:
        raise _missing(PARAMS)
    if not isinstance(params, dict):
        message = "Input should be a valid dictionary"
        raise UnprocessableError("model_attributes_type", (PARAMS,), message)
    if not isinstance(params.get("input"), str | list):
        raise _missing(PARAMS, "input")
    return params


def _missing(*place: str) -> UnprocessableError:
    return UnprocessableError("missing", place, "Field required")


def _name(agent: object) -> object:
    return agent.get("name") if isinstance(agent, Mapping) else None


def _rollout_key(body: bytes) -> str | None:
    """Give `task:rollout` of a row, or nothing when the body is not one."""
    try:
        row = _object(body)
    except UnprocessableError:
        return None
    return f"{row[TASK_INDEX]}:{row[ROLLOUT_INDEX]}" if row.keys() >= ROW_KEY else None
