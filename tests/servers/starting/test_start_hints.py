import pytest

from reward_profiling.servers.starting.start_hints import hint, ports_in_use, venv_of

VENV = "/venvs/policy/.venv"
TOO_OLD = """(policy) error: No solution found when resolving dependencies
(policy)   cause: Because the current Python version (3.13) does not satisfy
(policy)          Python>=3.13.14 and policy==0.2 depends on Python>=3.13.14, we can"""
UNSATISFIABLE = """(policy) error: No solution found when resolving dependencies
(policy)   cause: Because there is no version of sums==9 and you require sums==9, we
(policy)          can conclude that your requirements are unsatisfiable."""
OFFLINE = """error: No solution found when resolving dependencies
  cause: Because sums was not found in the cache and you require sums, we can conclude
hint: Packages were unavailable because the network was disabled."""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("error: Request failed\n  cause: Failed to fetch: http://127.0.0.1:9/sums/",
         "could not be downloaded"),
        ("  cause: dns error\n  cause: failed to lookup address information: x",
         "`gym env start … +dry_run=true`"),
        (OFFLINE, "++skip_venv_if_present=true"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("/bin/bash: line 1: uv: command not found", "pip install uv"),
        ("error: No interpreter found for Python 3.14.9 in managed installations",
         "Python 3.14.9 is not installed"),
        ("Timeout (300s) when waiting for lock on `/c` at `/c/.lock`",
         "++uv_cache_dir=FOLDER"),
        (UNSATISFIABLE, f"into {VENV}: cause: Because there is no version"),
        (TOO_OLD, f"needs Python >=3.13.14 and {VENV} has 3.13"),
        ("ModuleNotFoundError: No module named 'sums.fast'",
         f"{VENV} lacks the module sums.fast"),
        ("ImportError: cannot import name 'add' from 'sums' (/x/sums.py)",
         "an incompatible version of sums"),
        ("Exception: The current node timed out during startup. This could",
         "this machine is too busy"),
        ("/bin/bash: line 1:  4242 Killed                  python app.py",
         "lack of memory"),
    ],
)  # fmt: skip
def test_a_telling_log_comes_with_help(log: str, words: str) -> None:
    said = hint(f"INFO: started\n{log}\nINFO: gone", VENV)

    assert said is not None
    assert words in said


@pytest.mark.parametrize(
    "log",
    [
        "",
        "ValueError: 3 is no port",
        # Gym prints this at every start.
        "This can cause errors like `OSError: [Errno 24] Too many open files`.",
    ],
)
def test_a_log_without_a_hint_is_left_alone(log: str) -> None:
    assert hint(log, VENV) is None


def test_advice_reads_well_without_a_folder() -> None:
    said = hint("ModuleNotFoundError: No module named 'x'")

    assert str(said).startswith("its virtual environment lacks the module x")


def test_a_servers_folder_is_the_last_named() -> None:
    log = "\n".join(
        f"Starting `{name}` from venv /venvs/{folder}/.venv"
        for name, folder in (("a", "old"), ("b", "b"), ("a", "new"))
    )

    assert venv_of("a", log) == "/venvs/new/.venv"
    assert venv_of("c", log) is None


def test_either_port_error_is_recognized() -> None:
    said = "ERROR: [Errno 98] error while attempting to bind on address"

    assert ports_in_use(
        f"{said} ('127.0.0.1', 123): address already in use\n"
        f"{said} ('::1', 456, 0, 0): [errno 98] address already in use\n"
        f"{said} ('127.0.0.1', 80): permission denied"
    ) == {123, 456}
