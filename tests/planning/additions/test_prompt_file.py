from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError
from reward_profiling.planning.additions.prompt_file import read_prompt
from reward_profiling.planning.additions.prompt_template import PromptTemplate


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "pc.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("user: 'Q: {q}'\nsystem: sys\n", PromptTemplate(user="Q: {q}", system="sys")),
        ("user: |\n  a\n  b\n", PromptTemplate(user="a\nb\n")),
        ("user: ''\nsystem: null\n", PromptTemplate(user="")),
        ("\ufeffuser: é\n", PromptTemplate(user="é")),
    ],
)
def test_template_is_read(
    content: str, expected: PromptTemplate, tmp_path: Path
) -> None:
    assert read_prompt(written(tmp_path, content)) == (expected, [])


def test_other_names_are_given_back(tmp_path: Path) -> None:
    _, unknown = read_prompt(written(tmp_path, "user: x\nsytem: y\nnote: z\n"))

    assert unknown == ["sytem", "note"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not a YAML mapping"),
        ("- a", "is not a YAML mapping"),
        ("1: a", "is not a YAML mapping"),
        ("user: [", "is not YAML"),
        ("user: a\n---\nuser: b", "is not YAML"),
        ("user: !!python/name:os.system x", "is not YAML"),
        (b"user: \xff", "is not UTF-8"),
        ("system: s", "user is missing"),
        ("user: 5", "user must be text"),
        ("user: u\nsystem: [1]", "system must be text"),
        ("user: '{q.x}'", "user: {q.x} reads an attribute"),
        ("user: '{q'", "user: expected '}'"),
    ],
)
def test_what_is_no_template_names_its_file(
    content: str | bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as raised:
        read_prompt(written(tmp_path, content))

    assert f"{tmp_path}/pc.yaml" in str(raised.value)
    assert said in str(raised.value)
    assert "pydantic" not in str(raised.value)


def test_a_missing_template_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml does not exist"):
        read_prompt(tmp_path / "none.yaml")
