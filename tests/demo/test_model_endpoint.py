import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import orjson
import pytest

Rows = Sequence[Mapping[str, object]]
Launch = Callable[..., httpx.Client]

KEY = "sk-demo-0123456789"
CHAT = {
    "id": "chatcmpl-1",
    "created": 1,
    "model": "m",
    "choices": [{"message": {"content": "Answer: Canberra"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
PART = {"type": "output_text", "text": "Answer: Canberra", "annotations": []}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "output": [{"type": "message", "role": "assistant", "content": [PART]}],
    "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
}


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint that answers each path as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.replies: dict[str, tuple[int, object]] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str, dict[str, object]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Authorization", "")
        self.server.asked.append((self.path, key, body))
        status, reply = self.server.replies.get(
            self.path, (404, {"detail": "Not Found"})
        )
        content = reply if isinstance(reply, bytes) else orjson.dumps(reply)
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    launch: Launch, url: str, row: Mapping[str, object], api: str = "auto"
) -> httpx.Response:
    """Roll one row out with the model behind `url`."""
    options = ("--model-url", url, "--model", "m", "--model-api", api)
    env = {**os.environ, "DEMO_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    client = launch(*options, "--model-api-key-env", "DEMO_KEY", env=env)
    return client.post("/run", json=row)


def test_responses_are_asked_first(
    launch: Launch, endpoint: Endpoint, task_rows: Rows
) -> None:
    endpoint.replies["/v1/responses"] = (200, RESPONSE)
    params = {"input": "Capital?", "temperature": 0.5, "top_p": None}

    reply = ask(
        launch, endpoint.url, {**task_rows[0], "responses_create_params": params}
    )

    asked = {"input": "Capital?", "temperature": 0.5, "model": "m"}
    assert endpoint.asked == [("/v1/responses", f"Bearer {KEY}", asked)]
    assert (reply.json()["reward"], reply.json()["response"]) == (1.0, RESPONSE)
    assert reply.json()["responses_create_params"] == params


@pytest.mark.parametrize("status", [404, 405, 501])
def test_without_responses_chat_is_asked(
    launch: Launch, endpoint: Endpoint, task_rows: Rows, status: int
) -> None:
    endpoint.replies["/v1/responses"] = (status, {})
    endpoint.replies["/v1/chat/completions"] = (200, CHAT)
    client = launch("--model-url", f"{endpoint.url}/v1", "--model", "m")

    rewards = [
        client.post("/run", json=task_rows[0]).json()["reward"] for _ in range(3)
    ]

    assert rewards == [1.0, 1.0, 1.0]
    paths = [path for path, _, _ in endpoint.asked]
    assert paths == ["/v1/responses", *["/v1/chat/completions"] * 3]
    assert {key for _, key, _ in endpoint.asked} == {""}


def test_only_the_chosen_api_is_asked(
    launch: Launch, endpoint: Endpoint, task_rows: Rows
) -> None:
    endpoint.replies["/v1/chat/completions"] = (200, CHAT)

    chat = ask(launch, endpoint.url, task_rows[0], "chat")
    responses = ask(launch, endpoint.url, task_rows[0], "responses")

    assert chat.json()["response"]["usage"]["total_tokens"] == 5
    assert (responses.status_code, responses.json()[:15]) == (424, "Error code: 404")


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_request_is_passed_on(
    launch: Launch, endpoint: Endpoint, task_rows: Rows, status: int
) -> None:
    endpoint.replies["/v1/responses"] = (status, {"error": "slow down"})
    endpoint.headers["Retry-After"] = "7"

    reply = ask(launch, endpoint.url, task_rows[0])

    assert (reply.status_code, reply.headers["Retry-After"]) == (status, "7")


def test_a_refusal_hides_the_key(
    launch: Launch, endpoint: Endpoint, task_rows: Rows
) -> None:
    error = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    endpoint.replies["/v1/responses"] = (401, error)

    reply = ask(launch, endpoint.url, task_rows[0])

    assert reply.status_code == 424
    assert reply.json().startswith("Error code: 401 - ")
    assert "Incorrect API key provided: [key]" in reply.json()
    assert KEY not in reply.text


@pytest.mark.parametrize(
    "answer", [b"<html>", {"no": "output"}, {"output": [], "status": "failed"}]
)
def test_a_bad_response_is_a_500(
    launch: Launch, endpoint: Endpoint, task_rows: Rows, answer: object
) -> None:
    endpoint.replies["/v1/responses"] = (200, answer)

    reply = ask(launch, endpoint.url, task_rows[0])

    assert reply.status_code == 500
    assert isinstance(reply.json(), str)


def test_a_bad_completion_is_a_500(
    launch: Launch, endpoint: Endpoint, task_rows: Rows
) -> None:
    endpoint.replies["/v1/chat/completions"] = (200, {})

    reply = ask(launch, endpoint.url, task_rows[0], "chat")

    assert (reply.status_code, "Not a chat completion" in reply.json()) == (500, True)


def test_the_remedy_names_a_missing_key(
    endpoint: Endpoint, launch: Launch, task_rows: Rows
) -> None:
    endpoint.replies["/v1/responses"] = (401, {"error": "no key"})
    keyless = {name: v for name, v in os.environ.items() if name != "MODEL_API_KEY"}
    client = launch("--model-url", endpoint.url, "--model", "m", env=keyless)

    reply = client.post("/run", json=task_rows[0])

    assert reply.status_code == 424
    assert "set MODEL_API_KEY" in reply.json()


def test_an_absent_endpoint_is_a_bad_gateway(launch: Launch, task_rows: Rows) -> None:
    with Endpoint() as gone:
        url = gone.url

    reply = ask(launch, url, task_rows[0])

    assert reply.status_code == 502
    assert reply.json().startswith("No answer from the model: ConnectError")


def test_a_bad_row_never_reaches_the_model(
    launch: Launch, endpoint: Endpoint, task_rows: Rows
) -> None:
    reply = ask(launch, endpoint.url, {**task_rows[0], "expected_answer": []})

    assert (reply.status_code, endpoint.asked) == (422, [])
