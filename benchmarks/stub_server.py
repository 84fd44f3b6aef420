"""A head server and an environment server that answer at once, or after a delay.

As small as can be, so that a benchmark measures the client: a hand-written HTTP/1.1
protocol, one port, one canned reply.

    python benchmarks/stub_server.py PORT SECONDS BYTES
"""

import asyncio
import json
import sys

_AGENT, _SERVER = "stub_agent", "stub_environment_server"


def canned_reply(size: int) -> bytes:
    """Return a reply of a native agent, of about `size` bytes."""
    item = {
        "id": "msg_0",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {
                "type": "output_text",
                "text": 'He said "x = 3"; then:\n\tprint("yes")\n' * 4,
                "annotations": [],
            }
        ],
    }
    count = max(1, size // len(json.dumps(item)))
    usage = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    reply = {
        "responses_create_params": {"input": "a"},
        "response": {"id": "r", "output": [item] * count, "usage": usage},
        "reward": 1.0,
        "mask_sample": False,
        "failure_kind": None,
        "failure_reason": None,
    }
    return json.dumps(reply, separators=(",", ":")).encode()


def configuration(port: int) -> bytes:
    """Return the merged configuration as the head server gives it."""
    place = {"entrypoint": "app.py", "host": "127.0.0.1", "port": port}
    config = {
        _AGENT: {"responses_api_agents": {"stub": place}},
        _SERVER: {
            "environment_servers": {
                "legacy_agent": {
                    **place,
                    "agent_server": {"type": "responses_api_agents", "name": _AGENT},
                }
            }
        },
    }
    return json.dumps(json.dumps(config)).encode()


def response(body: bytes) -> bytes:
    """Return a whole HTTP response."""
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Stub(asyncio.Protocol):
    """One connection: reads requests one after another and answers each."""

    def __init__(self, replies: dict[bytes, bytes], seconds: float) -> None:
        self._replies = replies
        self._seconds = seconds
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request that has come."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(head.split(b" ", 2)[1])

    def _answer(self, path: bytes) -> None:
        reply = self._replies.get(path, self._replies[b"/"])
        if path == b"/run" and self._seconds:
            asyncio.get_running_loop().call_later(self._seconds, self._write, reply)
        else:
            self._write(reply)

    def _write(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def serve(port: int, seconds: float, size: int) -> None:
    """Serve until the process is ended."""
    replies = {
        b"/": response(b'{"status":"ok"}'),
        b"/global_config_dict_yaml": response(configuration(port)),
        b"/run": response(canned_reply(size)),
        b"/aggregate_metrics": response(b"{}"),
    }
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Stub(replies, seconds), "127.0.0.1", port, backlog=8192
    )
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
