import json
import pickle
import time
from base64 import b64encode, urlsafe_b64encode
from math import ceil
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.errors import ConfigError
from reward_profiling.servers.options import ServerOptions
from reward_profiling.texts.secret_values import (
    REDACTED,
    Redactor,
    environment_secrets,
    has_secret,
    is_secret_override,
    redacted_tree,
    secret_values,
    without_secrets,
)

SPECIAL = 'p"w\\1é/\n'
texts = st.text(max_size=40)


# What is a secret.


@pytest.mark.parametrize(
    ("config", "secret"),
    [
        ({"openai_api_key": "abc123def"}, "abc123def"),
        ({"judge_key": "Zx81-qrs"}, "Zx81-qrs"),
        ({"hf_token": "hf-tok-77"}, "hf-tok-77"),
        ({"db": {"password": "horse battery"}}, "horse battery"),
        ({"password": 912345}, "912345"),
        ({"client_secret": "s3cr3t-x"}, "s3cr3t-x"),
        ({"headers": {"Authorization": "Bearer b-77-xyz"}}, "b-77-xyz"),
        ({"base_url": "http://user:pa55w@host/v1"}, "pa55w"),
        ({"index": "https://tok-12345@host/simple"}, "tok-12345"),
        ({"api_keys": ["first-11", "second-22"]}, "second-22"),
        ({"secrets": {"left": "under-it"}}, "under-it"),
        ({"a_agent": {"impl": [{"x": {"accessToken": "deep-123"}}]}}, "deep-123"),
        ({"k_key": "${oc.env:MY_VAR}"}, "from-the-env"),
        ({"api_key": "${oc.env:UNSET,fall-back-9}"}, "fall-back-9"),
    ],
)
def test_a_secret_is_known_by_name_or_place(config: object, secret: str) -> None:
    assert secret in secret_values(config, {"MY_VAR": "from-the-env"})


@pytest.mark.parametrize(
    "config",
    [
        {"max_output_tokens": 8192, "cost_per_token": 0.5, "token_id_capture": True},
        {"label_key": "expected_answer", "sort_keys": True},
        {"api_key": "none", "openai_api_key": "EMPTY", "judge_api_key": ""},
        {"api_key": "${policy_api_key}", "other_api_key": None, "k_api_key": "???"},
        {"base_url": "http://127.0.0.1:8000/v1", "tokenizer_model": "gpt-4o"},
        {"password_agent": {"impl": {"entrypoint": "app.py", "host": "h", "port": 80}}},
    ],
)
def test_what_only_sounds_secret_is_none(config: object) -> None:
    assert secret_values(config) == frozenset()
    assert without_secrets(config) == config


def test_environment_variables_count_by_name() -> None:
    environ = {"HF_TOKEN": "hf-value-1", "PATH": "/usr/bin", "MY_API_KEY": "mine-12"}

    assert environment_secrets(environ) == {"hf-value-1", "mine-12"}


def test_routing_survives_redaction() -> None:
    agent = {"host": "127.0.0.1", "port": 8000, "password": "hunter22"}
    config = {"cookie_agent": {"responses_api_agents": {"simple_agent": agent}}}

    assert without_secrets(config) == {
        "cookie_agent": {
            "responses_api_agents": {"simple_agent": {**agent, "password": REDACTED}}
        }
    }


# Texts without them.


@pytest.mark.parametrize(
    "spelled",
    [
        SPECIAL,
        json.dumps(SPECIAL)[1:-1],
        json.dumps(json.dumps(SPECIAL))[1:-1],
        json.dumps(json.dumps(json.dumps(SPECIAL)))[1:-1],
        quote(SPECIAL),
        "".join(f"%{byte:02x}" for byte in SPECIAL.encode()),
        SPECIAL.encode().hex(),
        SPECIAL.encode().hex().upper(),
    ],
    ids=[
        "as it is",
        "in JSON",
        "in JSON in JSON",
        "deeper",
        "in a URL",
        "percent-encoded",
        "in hexadecimal",
        "in capitals",
    ],
)
def test_any_spelling_of_a_secret_is_removed(spelled: str) -> None:
    said = Redactor([SPECIAL])(f"a {spelled} b")

    assert said.replace("\\", "").replace('"', "") == f"a {REDACTED} b"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=9, max_size=40),
    st.binary(max_size=7),
    st.binary(max_size=7),
)
def test_a_secret_in_base64_is_removed(
    secret: str, before: bytes, after: bytes
) -> None:
    for coded in (b64encode, urlsafe_b64encode):
        said = Redactor([secret])(coded(before + secret.encode() + after).decode())
        rest = said.replace(REDACTED, "")
        assert REDACTED in said
        assert len(rest) <= 4 * (ceil(len(before) / 3) + ceil(len(after) / 3) + 1)


def test_names_of_members_are_redacted() -> None:
    failure = {"k": [{"the key known-1": "known-1"}], "number": 7}

    assert redacted_tree(failure, Redactor(["known-1"])) == {
        "k": [{f"the key {REDACTED}": REDACTED}], "number": 7,
    }  # fmt: skip


def test_the_longer_secret_leaves_no_rest() -> None:
    assert Redactor(["abcd", "abcd-efgh"])("abcd-efgh abcd") == f"{REDACTED} {REDACTED}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc123xyz9", "Authorization: [redacted] [redacted]"),
        ("sent bearer abc.123-xyz", "sent bearer [redacted]"),
        ("Incorrect API key provided: sk-proj-12345678.", None),
        ('{"my_api_key": "zyx98765", "a": 1}', '{"my_api_key": "[redacted]", "a": 1}'),
        (r"{\"password\": \"zyx9\"}", r"{\"password\": \"[redacted]\"}"),
        ("GET http://h/v1?key=AbC12345678&x=1", "GET http://h/v1?key=[redacted]&x=1"),
        ("http://user:pw@host/", "http://user:[redacted]@host/"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("nvapi-abc_123-def456", "[redacted]"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", "[redacted]"),
    ],
)  # fmt: skip
def test_what_looks_secret_is_taken_out(text: str, left: str | None) -> None:
    assert has_secret(text)
    assert Redactor()(text) == (left or "Incorrect API key provided: [redacted].")


@pytest.mark.parametrize(
    "text",
    [
        "missing key: reward", "KeyError: 'answer'", "Basic authentication failed",
        "bearer authentication is required", "max_tokens=4096", "risk-assessment-12",
        "http://127.0.0.1:8000/run answered 500", "api_key: None", "token: expected",
    ],
)  # fmt: skip
def test_ordinary_error_words_stay(text: str) -> None:
    assert Redactor()(text) == text


@pytest.mark.parametrize(
    "unit", ["a", "eyJ", "sk-", "://", "://a:", "api_key", "bearer ", "-----BEGIN "]
)
def test_no_text_takes_long(unit: str) -> None:
    started = time.monotonic()

    Redactor(["known"])(unit * (262_144 // len(unit)))

    assert time.monotonic() - started < 5


@given(st.lists(st.text(min_size=4, max_size=12), max_size=4), texts, texts)
def test_no_known_secret_is_left(secrets: list[str], before: str, after: str) -> None:
    for secret in secrets:
        said = Redactor([secret])(before + secret + after)
        assert secret not in said.replace(REDACTED, "\0")


@given(texts)
def test_redacting_again_changes_nothing(text: str) -> None:
    once = Redactor()(text)

    assert Redactor()(once) == once


# Options that would carry one.


@pytest.mark.parametrize(
    ("override", "is_secret"),
    [
        ("++policy_api_key=sk-12345678", True),
        ("+judge.token=abcdef-12", True),
        ("++policy_base_url=http://u:pass@h/v1", True),
        ("--model-api-key=abcdef", True),
        ("--model-api-key", True),
        ("++judge_api_key=${oc.env:JUDGE,sk-12345678}", True),
        ("++policy_api_key=none", False),
        ("++judge_api_key=${oc.env:JUDGE_KEY}", False),
        ("++skip_venv_if_present=true", False),
        ("++max_tokens=4096", False),
    ],
)
def test_an_override_with_a_secret_is_told(override: str, *, is_secret: bool) -> None:
    assert is_secret_override(override) is is_secret


@pytest.mark.parametrize(
    "options",
    [
        {"gym_config": ("a",), "gym_overrides": ("++judge_api_key=planted-77",)},
        {"head_url": "http://user:planted-77@127.0.0.1:11000"},
        {"demo": True, "model": "m", "model_url": "http://h/v1?api_key=planted-77"},
        {"demo": True, "model_api_key_env": "planted-77"},
    ],
)
def test_refused_secrets_are_not_shown(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerOptions.made(options)

    assert "planted" not in str(caught.value)
    assert "planted" not in repr(caught.value)


def test_a_redactor_crosses_a_process() -> None:
    assert pickle.loads(pickle.dumps(Redactor(["abcd"])))("abcd") == REDACTED  # noqa: S301 - ours
