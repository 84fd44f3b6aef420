"""The token of the embedded environment: who has it may spend the key of its model.

It is passed on in the environment, which only this user can read: to the environment
itself, and to processes on this machine that collect its rollouts.
"""

import os
import secrets

import httpx

from reward_profiling import wire
from reward_profiling.texts.redaction import learn


def make_token() -> None:
    """Have a token in this process, unless it was given one."""
    token = os.environ.setdefault(wire.DEMO_VARIABLE, secrets.token_urlsafe())
    learn([token])


def authorization(url: str) -> dict[str, str]:
    """Return the header for a server of this machine; nothing for any other."""
    token = os.environ.get(wire.DEMO_VARIABLE)
    if token is None or httpx.URL(url).host != "127.0.0.1":
        return {}
    return {"Authorization": f"Bearer {token}"}
