"""The report's page: its template, style and scripts, which the package carries.

The page is one file that asks nothing of any network, and says so to the browser: its
policy allows only the scripts that were put into it, by their digests. The template
escapes every text; what is not text of the report is marked as such here, once.
"""

import base64
import gzip
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import orjson
from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from reward_profiling.reporting.page.parts import Page

VERSIONS = {"d3": "7.9.2", "plot": "0.6.17"}
"""Of the libraries in `vendor`, as they were released."""

_SCRIPTS = (
    "vendor/d3.min.js",
    "vendor/plot.umd.min.js",
    "figures.js",
    "charts.js",
    "task_table.js",
    "page.js",
)
_SHOWN_CARDS = 12
_LEVEL = 6
"""Of compression: beyond it, much time buys little."""


def rendered(
    page: Page, tasks: Mapping[str, Any], rollouts: Mapping[str, Any] | None
) -> bytes:
    """Return the page as UTF-8; the same insights give the same bytes."""
    folder = files("reward_profiling.reporting").joinpath("template")
    scripts = [_script(folder, name) for name in _SCRIPTS]
    template = _environment().from_string(_text(folder, "page.html"))
    said = template.render(
        page=page,
        policy=_policy(scripts),
        style=Markup(_text(folder, "page.css")),  # noqa: S704 - our own file
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - likewise
        charts=_json({chart.name: chart.data for chart in page.charts}),
        task_data=_packed(tasks),
        rollout_data=_packed(rollouts),
        shown_cards=_SHOWN_CARDS,
        versions=VERSIONS,
        licences=_text(folder, "vendor/LICENSES.txt"),
    )
    return said.encode()


def _environment() -> Environment:
    return Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip


def _text(folder: Traversable, name: str) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


def _script(folder: Traversable, name: str) -> str:
    """Return a script as it must stand between its tags, where its digest is taken."""
    text = _text(folder, name).replace("\r\n", "\n")
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError(f"{name} would end its own script element")
    return text


def _policy(scripts: Iterable[str]) -> str:
    """Return the content security policy: nothing from anywhere, these scripts only."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(
        f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests
    )
    # The plots' library writes style elements of its own.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline';"
        " base-uri 'none'; form-action 'none'"
    )


def _json(value: object) -> Markup:
    """Return JSON that no text in it can end: "<" is written as an escape."""
    text = orjson.dumps(value).decode().replace("<", "\\u003c")
    return Markup(text)  # noqa: S704 - no "<" is left


def _packed(value: object) -> str:
    """Return JSON, compressed, in the letters of base 64; the same for the same."""
    return base64.b64encode(
        gzip.compress(orjson.dumps(value), _LEVEL, mtime=0)
    ).decode()
