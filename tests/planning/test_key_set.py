from hypothesis import given
from hypothesis import strategies as st

from reward_profiling.planning.key_set import KeySet
from reward_profiling.planning.row_members import RolloutKey

indices = st.one_of(
    st.integers(-3, 40), st.integers(0, 2**70), st.text(max_size=3), st.booleans()
)
keys = st.tuples(indices, indices)


@given(st.lists(keys), st.lists(keys))
def test_a_key_set_is_a_set(added: list[RolloutKey], asked: list[RolloutKey]) -> None:
    found, expected = KeySet(), set[RolloutKey]()
    for key in added:
        assert found.add(key) == (key not in expected)
        expected.add(key)

    assert len(found) == len(expected)
    assert [key in found for key in asked] == [key in expected for key in asked]
