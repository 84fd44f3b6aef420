"""What a record's line says beside its numbers."""

import pytest

from reward_profiling.profiling.records.reply_text import read_reply


@pytest.mark.parametrize(
    ("given", "components"),
    [(b'{"form": 1, "fact": 0.5}', {"form": 1, "fact": 0.5}),
     (b"[0, 1, 0.5]", {"0": 0, "1": 1, "2": 0.5}), (b'"none"', {}), (b"null", {})],
)  # fmt: skip
def test_reward_parts_have_names_or_places(
    given: bytes, components: dict[str, float]
) -> None:
    line = b'{"reward": 1, "reward_components": ' + given + b"}"

    assert read_reply(line).components == components
