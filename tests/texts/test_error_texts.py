import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.texts.error_texts import innermost

SERVERS = ("OpenAIModel___policy", "SimpleAgent___math_agent", "Relay___math_server")


def passed_on(server: str, body: bytes) -> bytes:
    """Give what a server of Gym answers when another one answered it with `body`."""
    said = f"Hit an exception in {server} calling an inner server: {body!r}"
    return json.dumps(said, ensure_ascii=False).encode()


def through(body: bytes, servers: tuple[str, ...] = SERVERS) -> str:
    for server in servers:
        body = passed_on(server, body)
    return body.decode()


def test_a_message_is_found_behind_three_hops() -> None:
    error = {"message": 'key "\\x" of Zoë 😀 is wrong', "code": "invalid_api_key"}
    text = through(json.dumps({"error": error}).encode())

    assert text.count("\\") > 100
    assert innermost(text) == (
        'key "\\x" of Zoë 😀 is wrong (invalid_api_key), passed on by policy'
    )


@given(st.text(), st.integers(0, 4))
def test_any_message_comes_out_unchanged(text: str, hops: int) -> None:
    message = f"it is {text}."
    body = json.dumps({"error": {"message": message}}).encode()

    said = innermost(through(body, SERVERS[:1] * hops))

    assert said == message + (", passed on by policy" if hops else "")


@given(st.text(max_size=60), st.integers(0, 900))
def test_no_text_and_no_cut_is_too_much(text: str, end: int) -> None:
    assert isinstance(innermost(text), str)
    cut = through(json.dumps({"detail": text}).encode())[:end]
    assert innermost(cut).count("\\\\\\") <= json.dumps(text).count("\\\\\\")


def test_a_cut_off_text_is_unwrapped_in_part() -> None:
    text = through(b'{"error": {"message": "the tank is empty"}}')

    assert innermost(text[:-50]) == (
        '{"error": {"message": "the tank is emp, passed on by policy'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" plain words ", "plain words"),
        ("", ""),
        ('"foo" is no model', '"foo" is no model'),
        ('"RuntimeError(\'out of \\"disk\\"\')"', 'RuntimeError: out of "disk"'),
        (
            "KeyError(\"Error code: 401 - {'error': {'message': 'no', 'code': 'x'}}\")",
            "KeyError: 401: no (x)",
        ),
        ("Error code: 500 - {'x': 1}", "500: {'x': 1}"),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"error": "busy"}', "busy"),
        ('{"error": {"message": "m", "code": 7}}', "m"),
        ('{"reward": 1.0}', '{"reward": 1.0}'),
        ('{"broken', '{"broken'),
        ('{"a":' * 5_000, '{"a":' * 5_000),
        (passed_on("A___b", b"").decode(), "an empty body, passed on by b"),
        (passed_on("A___b", b"\xff\xfe").decode(), "\ufffd\ufffd, passed on by b"),
        ("'\\U99999999'", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_what_servers_say_is_said_plainly(text: str, said: str) -> None:
    assert innermost(text) == said


def test_a_refused_row_names_its_members() -> None:
    fault = {"loc": ["body", "responses_create_params", 0], "msg": "Field required"}
    detail = [fault, {"msg": "second"}, {"loc": ["a"]}, fault, fault]

    assert innermost(json.dumps({"detail": detail})) == (
        "body.responses_create_params.0: Field required; : second;"
        " body.responses_create_params.0: Field required and 1 more"
    )
    assert innermost('{"detail": [1]}') == '{"detail": [1]}'


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            (
                "<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>"
                "<center><h1>504 Gateway Time-out</h1></center><hr>nginx"
            ),
            "504 Gateway Time-out (a page in HTML)",
        ),
        (
            "<!DOCTYPE html><html><body><h1>Bad <b>gateway</b> &amp; co</h1></body>",
            "Bad gateway & co (a page in HTML)",
        ),
        ("<!doctype html>\n<html><body>nothing", "no title (a page in HTML)"),
        ("<html><title>\n  Two\n lines </title>", "Two lines (a page in HTML)"),
    ],
)
def test_a_page_is_its_title(page: str, said: str) -> None:
    assert innermost(page) == said


def test_a_page_within_layers_is_its_title() -> None:
    page = "<html><head><title>502 Bad Gateway</title>"
    text = f"Hit an exception in A___policy calling an inner server: {page.encode()!r}"

    assert innermost(text) == "502 Bad Gateway (a page in HTML), passed on by policy"
