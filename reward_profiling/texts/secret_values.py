"""Secrets: which values of a configuration are one, and texts without them.

Servers echo keys in their errors, and errors are stored and shown. Known secrets are
removed everywhere, and so is text that looks like a secret. Only error texts come here:
records of successful rollouts are not changed.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

REDACTED = "[redacted]"
_SHORTEST = 4
_SHORTEST_OF_WEAK = 6
_SHORTEST_IN_BASE64 = 8
_PLACEHOLDERS = frozenset({
    "", "???", "default", "dummy", "dummy_key", "empty", "fake", "local", "none",
    "not-needed", "null", "placeholder", "test", "true", "false", "unset",
})  # fmt: skip

_STRONG_NAME = (
    r"(?:api[_-]?key|secret|passw(?:or)?d|passphrase|credential|authorization|bearer"
    r"|cookie|auth[_-]?string|(?:access|private|auth|account|signing)[_-]?key"
    r"|(?:access|api|auth|session|refresh)[_-]?token)"
)
_STRONG = re.compile(_STRONG_NAME, re.IGNORECASE)
_WEAK = re.compile(r"(?:(?:^|[_.-])keys?|tokens?|pwd|(?:^|[_-])pat)$", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[a-z_]{1,19}|[\d.eE+-]+|(?:/[\w.-]+)+")
"""Values of a name such as `label_key` that are not secret."""
_KEY_FLAG = "--model-api-key"
_OF_SERVERS = frozenset({"entrypoint", "host", "port", "type"})
_FROM_ENVIRONMENT = re.compile(r"\$\{oc\.env:\s*(\w+)\s*(?:,([^}]*))?\}")
_SCHEME = re.compile(r"(?i)\s*(?:bearer|basic|token|apikey)\s+(\S+)\s*")
_IN_URL = re.compile(r"(://[^/\s:@\"']{0,256}:)([^@\s/\"']{1,512})(?=@)")
_ALONE_IN_URL = re.compile(r"(://)([^/\s:@\"']{8,512})(?=@)")

_DIGIT_AHEAD = r"(?=[^\s\"']{0,64}[0-9=])"
_LOOKS = (
    _IN_URL,
    _ALONE_IN_URL,
    re.compile(rf"(?i)(\b(?:bearer|basic)\s+){_DIGIT_AHEAD}([\w.~+/=-]{{8,4096}})"),
    re.compile(rf"()(\b(?:sk|nvapi|glpat|xox[a-z])-{_DIGIT_AHEAD}[\w-]{{8,512}})"),
    re.compile(r"()(\b(?:gh[a-z]|github_pat|hf|gsk|r8)_\w{16,512})"),
    re.compile(r"()(\bAIza[\w-]{20,512})"),
    re.compile(r"()(\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)"),
    re.compile(r"()(\beyJ[\w-]{8,2048}\.[\w-]{8,2048}\.[\w-]{8,2048})"),
    re.compile(r"()(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,16384})"),
    re.compile(
        rf"(?i)({_STRONG_NAME}\w{{0,20}}[\"'\\]{{0,4}}\s{{0,4}}[=:]\s{{0,4}}[\"'\\]{{0,4}})"
        r"(?!none\b|null\b|[$<]|\[redacted)([^\s\"'\\,;&}\])]{4,4096})"
    ),
    re.compile(
        rf"(?i)((?:\b|[_-])(?:key|token|pwd)=){_DIGIT_AHEAD}([^\s\"'\\,;&}}\])]{{8,4096}})"
    ),
)
"""Text that looks like a secret: the first group is kept, the second is removed.

Every repetition is bounded, so that no text makes a match slow.
"""


def secret_values(
    config: object, environ: Mapping[str, str] | None = None
) -> frozenset[str]:
    """Return the secrets of a configuration, found by their names and their looks.

    `${oc.env:NAME}` stands for the value that NAME has in `environ`. Placeholders, such
    as `none`, and interpolations are not secrets.
    """
    return frozenset(_secrets_in(config, "", environ or {}))


def environment_secrets(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values of the environment variables that are named like secrets."""
    return secret_values(dict(environ))


def without_secrets(config: object) -> Any:  # noqa: ANN401 - what it was, with less in it
    """Return a copy of a configuration in which no secret is left."""
    return _masked(config, "")


def is_secret_name(name: str) -> bool:
    """Say whether what is called this is probably a secret."""
    return bool(_STRONG.search(name) or _WEAK.search(name))


def has_secret(text: str) -> bool:
    """Say whether a text has a part with a secret's look."""
    return any(pattern.search(text) for pattern in _LOOKS)


def is_secret_override(override: str) -> bool:
    """Say whether an override, such as `++judge_api_key=…`, holds a secret itself.

    An interpolation, such as `${oc.env:NAME}`, and a placeholder do not.
    """
    if override == _KEY_FLAG:  # its value is the next argument
        return True
    path, _, value = override.lstrip("+-").partition("=")
    name = path.rpartition(".")[2]
    return has_secret(value) or bool(secret_values({name: value.strip("\"'")}))


class Redactor:
    """Takes secrets out of texts; made once for a set of known values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one secret may be a prefix of another, which would leave
        # the rest of the longer one in the text.
        known = sorted(set(secrets), key=lambda secret: (-len(secret), secret))
        pattern = "|".join(map(_spelled, known))
        self._known = re.compile(pattern) if known else None

    def __call__(self, text: str) -> str:
        """Return the text with `[redacted]` in place of every secret."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        for pattern in _LOOKS:
            text = pattern.sub(rf"\g<1>{REDACTED}", text)
        return text


def redacted_tree(value: object, redact: Callable[[str], str]) -> Any:  # noqa: ANN401 - as it came
    """Return a JSON value whose texts and names have no secrets."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted_tree(inner, redact) for inner in value]
    if isinstance(value, Mapping):
        return {
            redact(name): redacted_tree(inner, redact) for name, inner in value.items()
        }
    return value


def _secrets_in(node: object, name: str, environ: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, inner in node.items():
            yield from _secrets_in(inner, _name_of(key, inner, node, name), environ)
    elif isinstance(node, list | tuple):
        for inner in node:
            yield from _secrets_in(inner, name, environ)
    elif isinstance(node, str):
        yield from _secrets_of_text(node, name, environ)
    elif isinstance(node, int) and not isinstance(node, bool) and _STRONG.search(name):
        yield from _kept((str(node),), _SHORTEST)


def _name_of(key: object, inner: object, node: Mapping[Any, Any], above: str) -> str:
    """Return the name that decides whether a member of `node` is secret.

    What lies right under a secret's name is secret, whatever its own name is; a server
    that is called so is not.
    """
    is_listed = bool(_STRONG.search(above)) and not isinstance(inner, Mapping)
    return above if is_listed and not _OF_SERVERS & node.keys() else str(key)


def _secrets_of_text(text: str, name: str, environ: Mapping[str, str]) -> Iterator[str]:
    for pattern in (_IN_URL, _ALONE_IN_URL):
        yield from _kept((found[2] for found in pattern.finditer(text)), _SHORTEST)
    is_strong = bool(_STRONG.search(name))
    for variable, default in _FROM_ENVIRONMENT.findall(text):
        if is_secret_name(name) or is_secret_name(variable):
            yield from _kept((environ.get(variable, ""), default), _SHORTEST)
    if scheme := _SCHEME.fullmatch(text):
        yield from _kept((scheme[1],), _SHORTEST_OF_WEAK)
    elif is_strong:
        yield from _kept((text,), _SHORTEST)
    elif _WEAK.search(name) and not _PLAIN_WORD.fullmatch(text):
        yield from _kept((text,), _SHORTEST_OF_WEAK)


def _kept(values: Iterable[str], shortest: int) -> Iterator[str]:
    for value in values:
        bare = value.strip()
        is_placeholder = "${" in bare or bare.casefold() in _PLACEHOLDERS
        if len(bare) >= shortest and not is_placeholder:
            yield bare


def _masked(node: object, name: str) -> object:
    if isinstance(node, Mapping):
        return {
            key: _masked(inner, _name_of(key, inner, node, name))
            for key, inner in node.items()
        }
    if isinstance(node, list):
        return [_masked(inner, name) for inner in node]
    return REDACTED if any(_secrets_in(node, name, {})) else node


def _spelled(secret: str) -> str:
    """Return a pattern of a secret as it is, or as others write it.

    In JSON however deep: every server that passes an error on puts backslashes before
    what is special. In a URL, in hexadecimal digits, and within a text in base64.
    """
    kept = secret.encode("utf-8", "surrogatepass")
    in_json = "".join(map(_spelled_in_json, secret))
    in_url = {quote(secret, safe=safe, errors="surrogatepass") for safe in ("", "/")}
    in_digits = (f"(?i:{kept.hex()})", f"(?i:{kept.hex('%').join(('%', ''))})")
    escaped = map(re.escape, sorted(in_url))
    return "|".join((in_json, *escaped, *in_digits, *_in_base64(kept)))


def _spelled_in_json(character: str) -> str:
    if character == "\\":
        return r"\\{1,256}"
    if character in "\"'/":
        return rf"\\{{0,256}}{character}"
    escaped = json.dumps(character)[1:-1]
    if escaped == character:
        return re.escape(character)
    return rf"(?:{re.escape(character)}|\\{{1,256}}{escaped.lstrip(chr(92))})"


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield what base64 makes of a secret, wherever it stands among other bytes."""
    if len(secret) < _SHORTEST_IN_BASE64:
        return
    for before in range(3):
        coded = b64encode(bytes(before) + secret).decode().rstrip("=")
        # What neighbours decide in part: up to the secret's first whole character, and
        # the last one where the secret ends within it.
        first = (0, 2, 3)[before]
        last = len(coded) - bool((before + len(secret)) % 3)
        core = re.escape(coded[first:last])
        yield core.replace(r"\+", "[+-]").replace("/", "[/_]")
