"""What may not change of an output, and how a change is told."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reward_profiling.errors import ConfigError, PlanChangedError
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.checked_input import check_input
from reward_profiling.planning.materialization import materialize
from reward_profiling.planning.on_disk.run_manifest import remember_model
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.plan_changes import (
    differences,
    refuse_other_model,
    shown,
)

ROW = b'{"responses_create_params":{"input":"a"},"agent_ref":{"name":"x"}}\n'

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text("xy", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a: 1 → 2"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 → 1.0"]),
        ({"a": 1}, {"a": True}, ["a: 1 → true"]),
        ({"a": {"b": "x"}}, {"a": {"b": "y"}}, ['a.b: "x" → "y"']),
        ({"a": 1}, {}, ["a: 1 → (none)"]),
        ({}, {"a": None}, ["a: (none) → null"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a: [1,2] → [1,3]"]),
        ({"a": {"b": 1}}, {"a": 5}, ['a: {"b":1} → 5']),
    ],
)
def test_differences_name_path_old_and_new(
    old: object, new: object, expected: list[str]
) -> None:
    assert list(differences(old, new)) == expected


@settings(deadline=None)
@given(JSON)
def test_a_value_never_differs_from_itself(value: Any) -> None:  # noqa: ANN401
    assert list(differences(value, value)) == []


def test_a_long_value_is_cut() -> None:
    assert shown("x" * 500) == '"' + "x" * 79 + "…"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Give an output whose rollouts came from the model m1."""
    files = RunFiles(tmp_path / "r.jsonl")
    (tmp_path / "in.jsonl").write_bytes(ROW)
    materialize(check_input(tmp_path / "in.jsonl", PlanOptions()), files)
    remember_model(files, "m1")
    files.rollouts.write_bytes(b"paid for")
    return files


def test_another_model_is_refused(files: RunFiles) -> None:
    with pytest.raises(PlanChangedError, match="policy_model_name: m1 → m2"):
        refuse_other_model(files, "m2")


@pytest.mark.parametrize("model", ["m1", None])
def test_the_same_or_unknown_model_goes_on(files: RunFiles, model: str | None) -> None:
    refuse_other_model(files, model)


def test_an_empty_output_takes_any_model(files: RunFiles) -> None:
    files.rollouts.unlink()

    refuse_other_model(files, "m2")


def test_a_taken_stem_is_refused(files: RunFiles, tmp_path: Path) -> None:
    checked = check_input(tmp_path / "in.jsonl", PlanOptions())

    with pytest.raises(ConfigError, match=f"output {re.escape(files.rollouts.name)}"):
        materialize(checked, RunFiles(tmp_path / "r.v2"))
