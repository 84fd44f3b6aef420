"""A real model behind an OpenAI-compatible endpoint, asked in either of its APIs.

The key goes into one header and nowhere else: no log, no error text, not even when
the endpoint echoes it.
"""

import re
from collections.abc import Mapping

import httpx
import orjson

from reward_profiling.demo.chat_completions import (
    NotACompletionError,
    chat_request,
    response_from_chat,
)
from reward_profiling.demo.responses import Json, ModelCallError, Reply

RESPONSES_PATH, CHAT_PATH = "/responses", "/chat/completions"
NO_SUCH_API = frozenset({404, 405, 501})
PASSED_ON = frozenset({429, 503})
WORTH_ASKING_AGAIN = frozenset({408, 409, 425})
UNAUTHORIZED = frozenset({401, 403})
NO_KEY = (
    "no key was given: set MODEL_API_KEY, or give another variable with"
    " --model-api-key-env"
)
FAILED_DEPENDENCY = 424
BAD_GATEWAY = 502
TIMEOUTS = httpx.Timeout(600.0, connect=10.0)
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)
SHOWN_CHARACTERS = 300
VERSION_SEGMENT = re.compile(r"/v\d\w*(?:/|$)")


class ModelEndpoint:
    """Asks a model; `auto` takes Responses, or Chat where there is no Responses."""

    def __init__(self, url: str, model: str, *, api: str, api_key: str) -> None:
        self.model = model
        self._api = api
        self._api_key = api_key.strip()
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        self._client = httpx.AsyncClient(
            base_url=base_url(url), headers=headers, timeout=TIMEOUTS, limits=LIMITS
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def reply(self, _: Mapping[str, object], params: Json) -> Reply:
        """Ask what `params` ask.

        Raises:
            ModelCallError: The endpoint refused, failed, or could not be reached.
            DatasetError: The row cannot be asked in the API that there is.
        """
        asked = {name: value for name, value in params.items() if value is not None}
        if self._api == "chat":
            return Reply(await self._chat(asked))
        answer = await self._post(RESPONSES_PATH, asked | {"model": self.model})
        if self._api == "responses" or answer.status_code not in NO_SUCH_API:
            return Reply(self._response(answer))
        response = await self._chat(asked)
        self._api = "chat"
        return Reply(response)

    async def _chat(self, params: Json) -> Json:
        answer = await self._post(CHAT_PATH, chat_request(params, self.model))
        try:
            return response_from_chat(self._parsed(answer), params)
        except NotACompletionError as error:
            raise ModelCallError(f"Not a chat completion: {error}") from error

    def _response(self, answer: httpx.Response) -> Json:
        response = self._parsed(answer)
        if not isinstance(response, dict) or not isinstance(
            response.get("output"), list
        ):
            raise ModelCallError("Not a Responses object: the reply has no `output`")
        if response.get("status") == "failed":
            text = self._shown(orjson.dumps(response.get("error")).decode())
            raise ModelCallError(f"The response failed: {text}")
        return response

    async def _post(self, path: str, body: Json) -> httpx.Response:
        try:
            return await self._client.post(path, content=orjson.dumps(body))
        except httpx.TransportError as error:
            text = self._shown(f"No answer from the model: {_named(error)}")
            raise ModelCallError(text, BAD_GATEWAY) from error

    def _parsed(self, answer: httpx.Response) -> object:
        if not answer.is_success:
            raise self._refusal(answer)
        try:
            return orjson.loads(answer.content)
        except orjson.JSONDecodeError as error:
            raise ModelCallError(f"The reply is not JSON: {error.msg}") from error

    def _refusal(self, answer: httpx.Response) -> ModelCallError:
        """Pass on what asks for patience, and tell a refusal from a failure.

        A wrong key, an unknown model or an input that is too long stays what it is:
        424, unlike 500, says that asking again would not help.
        """
        code = answer.status_code
        message = f"Error code: {code} - {self._shown(answer.text)}"
        if code in UNAUTHORIZED and not self._api_key:
            message += f" ({NO_KEY})"
        if code in PASSED_ON:
            return ModelCallError(message, code, answer.headers.get("Retry-After", ""))
        is_refusal = answer.is_client_error and code not in WORTH_ASKING_AGAIN
        return ModelCallError(message, FAILED_DEPENDENCY if is_refusal else 500)

    def _shown(self, text: str) -> str:
        """Shorten a text from outside, without the key."""
        if self._api_key:
            text = text.replace(self._api_key, "[key]")
        return " ".join(text.split())[:SHOWN_CHARACTERS]


def base_url(url: str) -> str:
    """Give the URL that API paths are put behind; a version is added to one without."""
    base = url.rstrip("/").removesuffix(RESPONSES_PATH).removesuffix(CHAT_PATH)
    path = httpx.URL(base).path
    return base if VERSION_SEGMENT.search(path) else f"{base}/v1"


def _named(error: httpx.TransportError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
