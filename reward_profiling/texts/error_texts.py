"""The original message of a server's error, without what each hop wrapped around it.

Every server of Gym that passes an error on quotes the bytes of the answer in its own
JSON string, so backslashes double from hop to hop: three hops make a kilobyte of them.
Source: `gym-wire.md`, "Error path".
"""

import json
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

_MOST_LAYERS = 32
_SHOWN_FAULTS = 3
_HOP = re.compile(
    r"\s*Hit an exception in (\S{1,300}) calling an inner server: (.*)", re.DOTALL
)
_RAISED = re.compile(
    r"\s*(\w{1,80}(?:Error|Exception|Timeout|Disconnected))\((b?[\"'].*)\)\s*",
    re.DOTALL,
)
_STATUS = re.compile(r"\s*Error code: (\d{3}) - (\{.*)", re.DOTALL)
_LITERALS = (
    re.compile(r'\s*(b?)"((?:[^"\\]|\\.)*)(?:"\s*|\\?)', re.DOTALL),
    re.compile(r"\s*(b?)'((?:[^'\\]|\\.)*)(?:'\s*|\\?)", re.DOTALL),
)
"""A string of JSON or Python, or bytes; its end may have been cut off."""
_MESSAGE_IN_REPR = re.compile(
    r"""["']message["']: ("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
)
_CODE_IN_REPR = re.compile(r"""["']code["']: ["']([\w.-]{1,80})["']""")
_PAGE = re.compile(r"(?is)\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html)\b")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_HEADING = re.compile(r"<h1[^>]{0,200}>(.{1,2000}?)</h1", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]{0,500}>")
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0"}
_LAST_CHARACTER = 0x10FFFF


class _Layer(NamedTuple):
    """A text with one layer taken off."""

    text: str
    server: str = ""
    """Who passed it on, if that was the layer."""
    prefix: str = ""
    """What the layer said itself: the exception's name or the status."""


def innermost(text: str) -> str:
    """Return the message of the first server, and who passed it on.

    `Hit an exception in M___policy calling an inner server: b'{"detail":"no"}'` becomes
    `no, passed on by policy`. A text without layers comes back without the spaces
    around it; one whose end was cut off is unwrapped as far as it goes.
    """
    server, prefixes = "", []
    for _ in range(_MOST_LAYERS):
        layer = _without_a_layer(text)
        if layer is None:
            break
        text, server = layer.text, layer.server or server
        prefixes += [layer.prefix] if layer.prefix else []
    said = ": ".join([*prefixes, text.strip() or "an empty body"])
    if not prefixes and not server and not text.strip():
        return ""
    return f"{said}, passed on by {server}" if server else said


def _without_a_layer(text: str) -> _Layer | None:
    if _PAGE.match(text):
        return _Layer(_title_of(text))
    if found := _HOP.fullmatch(text):
        # Gym calls a server by its class and its name: `SimpleAgent___mcqa_agent`.
        return _Layer(found[2], server=found[1].rpartition("___")[2])
    if found := _RAISED.fullmatch(text):
        return _Layer(found[2], prefix=found[1])
    if found := _STATUS.fullmatch(text):
        return _Layer(_said_in_repr(found[2]), prefix=found[1])
    for pattern in _LITERALS:
        if found := pattern.fullmatch(text):
            return _Layer(_unescaped(found[2], is_bytes=bool(found[1])))
    said = _said_in_json(text)
    return None if said is None else _Layer(said)


def _title_of(page: str) -> str:
    """Return what a page is called, on one line: a proxy answers with one."""
    found = _TITLE.search(page) or _HEADING.search(page)
    title = " ".join(unescape(_TAG.sub(" ", found[1])).split()) if found else ""
    return f"{title or 'no title'} (a page in HTML)"


def _unescaped(text: str, *, is_bytes: bool) -> str:
    """Return what the inside of a literal stands for."""
    plain = _ESCAPE.sub(_character, text)
    if is_bytes:
        return plain.encode("latin-1", "replace").decode("utf-8", "replace")
    # JSON spells what is beyond 16 bits as a pair of surrogates.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    name = escape[1]
    if len(name) > 1:
        number = int(name[1:], 16)
        return chr(number) if number <= _LAST_CHARACTER else "\N{REPLACEMENT CHARACTER}"
    return _SHORT_ESCAPES.get(name, name)


def _said_in_repr(text: str) -> str:
    """Return the message of an error body that Python has printed, else the whole."""
    message, code = _MESSAGE_IN_REPR.search(text), _CODE_IN_REPR.search(text)
    if message is None:
        return text
    said = _unescaped(message[1][1:-1], is_bytes=False)
    return f"{said} ({code[1]})" if code else said


def _said_in_json(text: str) -> str | None:
    """Return the message of a JSON object; None when there is no such thing."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _said_in(body)


def _said_in(body: Mapping[str, Any]) -> str | None:
    error = body.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        code = error.get("code") or error.get("type")
        said = str(error["message"])
        return f"{said} ({code})" if isinstance(code, str) else said
    detail = body.get("detail")
    if isinstance(detail, list):  # FastAPI's own, for a body that it does not accept
        return _faults(detail) or None
    for value in (detail, error, body.get("message")):
        if isinstance(value, str) and value:
            return value
    return None


def _faults(detail: Sequence[object]) -> str:
    faults = [
        f"{'.'.join(map(str, _listed(fault.get('loc'))))}: {fault['msg']}"
        for fault in detail
        if isinstance(fault, Mapping) and isinstance(fault.get("msg"), str)
    ]
    more = f" and {len(faults) - _SHOWN_FAULTS} more" if faults[_SHOWN_FAULTS:] else ""
    return "; ".join(faults[:_SHOWN_FAULTS]) + more


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
