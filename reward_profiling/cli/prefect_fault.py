"""What is said when Prefect's server cannot be used."""

import httpx

_REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})


def prefect_fault(error: Exception) -> str:
    """Say whether the server is away or does not let us in, and what helps."""
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if status in _REFUSALS:
            return (
                f"Prefect's server refuses this client ({status}): put its login, such"
                " as admin:…, into the environment variable PREFECT_API_AUTH_STRING"
            )
    return f"Prefect's server does not answer: {error}"
