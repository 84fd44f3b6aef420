from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.collecting.ledger import Ledger
from reward_profiling.planning.row_members import RolloutKey

KEY = (0, 1)
keys = st.tuples(st.integers(0, 3) | st.sampled_from("ab"), st.integers(0, 2))
lines = st.tuples(keys, st.sampled_from(["record", "failure", "terminal"]))


def read(lines: list[tuple[RolloutKey, str]], max_attempts: int = 3) -> Ledger:
    ledger = Ledger(max_attempts=max_attempts)
    for key, kind in lines:
        if kind == "record":
            ledger.add_record(key)
        else:
            ledger.add_failure(key, terminal=kind == "terminal")
    return ledger


def test_an_unknown_rollout_is_owed() -> None:
    assert Ledger().is_owed(KEY)


def test_a_collected_rollout_is_never_owed() -> None:
    ledger = read([(KEY, "failure"), (KEY, "record")])

    assert not ledger.is_owed(KEY)
    assert ledger.is_owed((0, 2))


def test_a_failure_is_owed_until_given_up() -> None:
    ledger = read([(KEY, "failure")] * 2)
    assert ledger.is_owed(KEY)

    ledger.add_failure(KEY, terminal=False)

    assert not ledger.is_owed(KEY)
    assert ledger.is_given_up(KEY)


def test_a_terminal_failure_is_final() -> None:
    ledger = read([(KEY, "terminal")])

    assert ledger.is_given_up(KEY)
    assert not ledger.is_owed(KEY)


def test_given_up_rollouts_can_be_owed_again() -> None:
    ledger = Ledger(max_attempts=1, retry_given_up=True)
    ledger.add_failure(KEY, terminal=True)

    assert ledger.is_owed(KEY)


def test_asking_changes_nothing() -> None:
    ledger = Ledger()

    ledger.is_owed(KEY)

    assert not ledger.failures


@given(st.lists(lines, max_size=12), st.randoms(use_true_random=False), keys)
def test_line_order_does_not_matter(
    written: list[tuple[RolloutKey, str]], random: object, key: RolloutKey
) -> None:
    shuffled = sorted(written, key=lambda _: random.random())  # type: ignore[attr-defined]

    assert read(written).is_owed(key) == read(shuffled).is_owed(key)


@given(st.lists(lines, max_size=12), st.integers(1, 4), keys)
def test_only_a_rollouts_own_lines_decide(
    written: list[tuple[RolloutKey, str]], max_attempts: int, key: RolloutKey
) -> None:
    kinds = [kind for one, kind in written if one == key]
    failures = len(kinds) - kinds.count("record")

    expected = not {"record", "terminal"} & set(kinds) and failures < max_attempts

    assert read(written, max_attempts).is_owed(key) == expected
