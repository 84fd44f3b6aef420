import pickle

import pytest

from reward_profiling import errors

BASES = [
    (errors.ConfigError, errors.RewardProfilingError, ValueError),
    (errors.OptionsError, errors.ConfigError, ValueError),
    (errors.DatasetError, errors.ConfigError, ValueError),
    (errors.PlanChangedError, errors.ConfigError, ValueError),
    (errors.RecordError, errors.RewardProfilingError, ValueError),
    (errors.DuplicateRolloutError, errors.RecordError, ValueError),
    (errors.UnknownRolloutError, errors.RecordError, ValueError),
    (errors.MissingRolloutsError, errors.RecordError, ValueError),
    (errors.OutputLockedError, errors.RewardProfilingError, RuntimeError),
    (errors.LockLostError, errors.RewardProfilingError, RuntimeError),
    (errors.OutputWriteError, errors.RewardProfilingError, OSError),
    (errors.ServersNotReadyError, errors.RewardProfilingError, RuntimeError),
    (errors.GymError, errors.RewardProfilingError, RuntimeError),
    (errors.GymUnavailableError, errors.GymError, RuntimeError),
    (errors.ReplyLostError, errors.GymUnavailableError, RuntimeError),
    (errors.GymRejectedError, errors.GymError, RuntimeError),
    (errors.ContextLengthError, errors.GymRejectedError, RuntimeError),
]
LEAVES = [leaf for leaf, _, _ in BASES]


def all_below(kind: type[Exception]) -> set[type[Exception]]:
    below = set(kind.__subclasses__())
    return below.union(*(all_below(child) for child in below))


def test_every_error_is_in_the_table() -> None:
    of_the_core = {
        error
        for error in all_below(errors.RewardProfilingError)
        if error.__module__ == errors.__name__
    }
    assert of_the_core == set(LEAVES)


@pytest.mark.parametrize(("leaf", "base", "co_base"), BASES)
def test_an_error_has_base_and_co_base(
    leaf: type[Exception], base: type[Exception], co_base: type[Exception]
) -> None:
    assert issubclass(leaf, base)
    assert issubclass(leaf, co_base)


@pytest.mark.parametrize("leaf", LEAVES)
def test_error_survives_pickling(leaf: type[Exception]) -> None:
    found = pickle.loads(pickle.dumps(leaf("task 3 repeat 1")))  # noqa: S301

    assert type(found) is leaf
    assert str(found) == "task 3 repeat 1"


@pytest.mark.parametrize("leaf", LEAVES)
def test_error_is_drawn_in_the_tree(leaf: type[Exception]) -> None:
    assert leaf.__name__ in str(errors.__doc__)


def test_a_pickled_gym_error_keeps_its_fields() -> None:
    error = errors.GymUnavailableError(
        "away", kind="PoolTimeout", status=503, body="busy", retry_after_seconds=2.5
    )

    found = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert vars(found) == vars(error)
    assert (found.kind, found.status, found.body) == ("PoolTimeout", 503, "busy")
    assert found.retry_after_seconds == 2.5
    assert str(found) == "away"


def test_a_gym_error_is_named_by_its_class() -> None:
    assert errors.GymRejectedError("no").kind == "GymRejectedError"


def test_a_pickled_dataset_error_keeps_faults() -> None:
    error = errors.DatasetError("2 rows:", ["a:1: x", "a:2: y"])

    found = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert found.faults == ("a:1: x", "a:2: y")
    assert str(found) == "2 rows:\n  a:1: x\n  a:2: y"


@pytest.mark.parametrize(("count", "lines"), [(20, 21), (21, 22), (500, 22)])
def test_a_dataset_error_shows_twenty_faults(count: int, lines: int) -> None:
    error = errors.DatasetError("rows:", [f"a:{n}: x" for n in range(count)])

    shown = str(error).splitlines()

    assert len(shown) == lines
    assert count <= 20 or shown[-1] == f"  … and {count - 20} more"


def test_only_unavailable_servers_are_retried() -> None:
    retried = {leaf for leaf in LEAVES if issubclass(leaf, errors.GymUnavailableError)}

    assert retried == {errors.GymUnavailableError, errors.ReplyLostError}


def test_an_options_error_hides_its_values() -> None:
    faults = [
        errors.Fault("limit", " must be at least 1 (got 0)"),
        errors.Fault("retries", " must be a whole number", "sk-secret"),
    ]
    error = errors.OptionsError.of(faults)

    found = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert list(found.faults) == faults
    assert str(found).splitlines() == [
        "limit must be at least 1 (got 0)",
        "retries must be a whole number",
    ]
    assert "sk-secret" not in repr(found)
