"""What holds for the source as a whole and no other tool checks."""

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = sorted(
    path
    for room in ("reward_profiling", "flows", "tasks", "deployments")
    for path in ROOT.glob(f"{room}/**/*.py")
)
PURE = [
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    for path in SOURCE
    if path.is_relative_to(ROOT / "reward_profiling")
    and not {"cli", "demo", "__init__.py", "__main__.py"} & set(path.parts)
]

# What has one name here: path, rollout, num_repeats, reward, run.
BANNED_WORDS = frozenset({
    "fpath", "episode", "episodes", "epochs", "trial", "trials", "score", "scores",
    "grade", "grades", "experiment",
})  # fmt: skip
BANNED_ENDINGS = ("_secs", "_sec", "_timeout_s", "_dur", "_cnt", "_idx", "_dir_path")


def identifiers(path: Path) -> Iterator[str]:
    """Yield the names that a source file itself gives to things."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def texts(path: Path) -> Iterator[str]:
    """Yield the string literals of a source file, docstrings left out."""
    tree = ast.parse(path.read_bytes())
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in documentation:
            yield node.value  # type: ignore[attr-defined]


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_the_pure_parts_import_no_prefect() -> None:
    code = "import sys, {}; print('prefect' in sys.modules)"
    cli = "reward_profiling.cli"
    commands = ("collect", "materialize", "merge", "profiling", "run")
    heard = [f"{cli}.app", *(f"{cli}.commands.{name}" for name in commands)]
    modules = ", ".join([*PURE, *heard])

    done = subprocess.run(
        [sys.executable, "-c", code.format(modules)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_flow_fits_on_one_screen() -> None:
    lines = (ROOT / "flows" / "reward_profiling.py").read_text().splitlines()

    assert len(lines) <= 80


def test_a_step_file_holds_one_step() -> None:
    steps = [path for path in ROOT.glob("tasks/*.py") if "@task" in path.read_text()]

    assert len(steps) == 11
    for path in steps:
        tree = ast.parse(path.read_bytes())
        defined = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef)]
        assert [node.name for node in defined] == [path.stem]
        assert len(path.read_text().splitlines()) <= 50, path.name


def test_no_file_shadows_a_standard_module() -> None:
    names = {path.stem for path in SOURCE} - {"__init__", "__main__"}

    assert names & sys.stdlib_module_names == set()


def test_names_keep_to_the_vocabulary() -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCE
        for name in sorted(set(identifiers(path)))
        if BANNED_WORDS & set(name.lower().split("_")) or name.endswith(BANNED_ENDINGS)
    ]

    assert faults == []


def test_wire_names_are_typed_once() -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in SOURCE
        if path.name != "wire.py"
        for text in texts(path)
        if re.fullmatch(r"_ng_\w+", text)
    ]

    assert faults == []


def test_the_lock_has_hashes_and_no_host() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=[a-zA-Z0-9])", lock.strip())

    assert len(entries) > 50
    unpinned = r"[a-zA-Z0-9._-]+(\[[^\]]*\])?==\S+"
    assert [entry for entry in entries if not re.match(unpinned, entry)] == []
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|--(?:extra-)?index-url|--find-links", lock) == []


def test_no_file_names_a_local_folder() -> None:
    # Spelled in pieces, so that this file does not find itself.
    places = re.compile("|".join(("/" + "work/", "/" + "root/", "/home" + r"/\w+/")))
    faults = [
        str(path.relative_to(ROOT))
        for path in tracked_files()
        if places.search(path.read_bytes().decode("utf-8", "replace"))
    ]

    assert faults == []


def test_a_wheel_carries_the_embedded_tasks(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*build, tmp_path], cwd=ROOT, capture_output=True, check=True)

    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "reward_profiling/demo/tasks.jsonl",
        "reward_profiling/demo/scripts.json",
    } <= names
    assert {"reward_profiling/flows/rounds.py", "reward_profiling/wire.py"} <= names
    assert [name for name in names if name.startswith("tests")] == []
