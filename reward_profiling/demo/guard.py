"""Who may use the embedded environment: with a real model, it spends somebody's key.

It listens on the loopback address, which every user and every web page of the machine
reaches. A page is known by its Origin, or by a host name that it had resolved to here.
"""

import secrets
from http import HTTPStatus

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

_JSON = "application/json"
_OF_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
"""What a page may send anywhere without asking first (Fetch standard, §2.2.2)."""


def guard(port: int, token: str | None) -> Middleware:
    """Give the middleware that refuses strangers; `token` is what friends send."""
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host not in hosts:
            return _refusal(
                HTTPStatus.FORBIDDEN, "only 127.0.0.1 and localhost are served"
            )
        if "Origin" in request.headers:
            return _refusal(HTTPStatus.FORBIDDEN, "no web page is served")
        if request.content_type in _OF_FORMS:
            return _refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send {_JSON}")
        if token is not None and not _is_known(request, token):
            return _refusal(
                HTTPStatus.UNAUTHORIZED,
                "only the run that started this environment may use it: it spends the"
                " key of a model",
            )
        return await handler(request)

    return guarded


def _is_known(request: web.Request, token: str) -> bool:
    said = request.headers.get("Authorization", "")
    given = said.encode("utf-8", "surrogateescape")  # as any bytes may stand there
    return secrets.compare_digest(given, f"Bearer {token}".encode())


def _refusal(status: HTTPStatus, detail: str) -> web.Response:
    body = orjson.dumps({"detail": detail})
    return web.Response(body=body, status=status, content_type=_JSON)
