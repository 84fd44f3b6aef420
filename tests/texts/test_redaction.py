import os
import sys
import time
from pathlib import Path
from subprocess import run

import pytest

from reward_profiling.texts.redaction import (
    learn,
    learn_configuration,
    redact,
    redact_beginning,
    scrub,
)


def test_what_was_learnt_is_taken_out() -> None:
    learn(["learnt-by-name", ""])
    learn_configuration({"a": {"my_api_key": "learnt-from-config"}})

    said = redact("learnt-by-name and learnt-from-config of a")

    assert said == "[redacted] and [redacted] of a"


def test_secrets_of_the_environment_are_known() -> None:
    code = (
        "from reward_profiling.texts.redaction import redact;"
        "print(redact('it is env-77'))"
    )
    env = {**os.environ, "SOME_TOKEN": "env-77"}

    done = run([sys.executable, "-c", code], env=env, capture_output=True, check=True)

    assert done.stdout == b"it is [redacted]\n"


def test_a_very_long_text_is_cut() -> None:
    assert len(redact("é" * 1_000_000)) < 300_000


@pytest.mark.parametrize("place", [262_144 - 5, 262_144 + 24_576 - 5])
def test_no_part_of_a_secret_is_left_at_a_cut(place: int) -> None:
    learn(["learnt-across-the-cut-77"])

    said = redact("." * place + "learnt-across-the-cut-77" + "." * 300_000)

    assert "learnt" not in said
    assert len(said) > 200_000


@pytest.mark.parametrize("unit", ["sk-", "://a:", "bearer ", "key=abcdefgh ", "\\"])
def test_an_endless_error_costs_little(unit: str) -> None:
    endless = unit * (50_000_000 // len(unit))
    started = time.process_time()

    redact_beginning(endless)

    assert time.process_time() - started < 0.5


def test_a_log_is_scrubbed_in_place(tmp_path: Path) -> None:
    learn(["in-the-log-1"])
    log = tmp_path / "servers.log"
    log.write_bytes(b"first\r\nthe key in-the-log-1\n\xff torn")
    log.chmod(0o600)

    scrub(log)

    assert log.read_bytes() == b"first\r\nthe key [redacted]\n\xff torn"
    assert log.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [log]


def test_a_log_without_secrets_is_unchanged(tmp_path: Path) -> None:
    log = tmp_path / "servers.log"
    log.write_text("nothing to see\n")
    before = log.stat().st_ino

    scrub(log)
    scrub(tmp_path / "missing.log")

    assert log.stat().st_ino == before
