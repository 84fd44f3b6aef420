"""A folder of skills: what rows are stamped with, and what cannot be used."""

from hashlib import sha256
from pathlib import Path

import pytest

from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.planning.additions.skill_folder import read_skills

SKILL = "---\nname: one\ndescription: d\n---\nbody"


def folder(root: Path, **files: str | bytes) -> str:
    skills = root / "sk"
    skills.mkdir()
    for name, content in files.items():
        path = skills / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(skills)


def test_skills_are_stamped_onto_rows(tmp_path: Path) -> None:
    given = folder(tmp_path, **{"one/SKILL.md": SKILL})

    found = read_skills(given)

    digest = sha256(b"one/SKILL.md\0" + SKILL.encode() + b"\0").hexdigest()
    assert list(found.items()) == [
        ("path", given),
        ("hash", digest[:12]),
        ("skills", [{"name": "one", "description": "d", "version": None}]),
    ]
    assert found["hash"] == "9471e7821621"


def test_the_digest_follows_path_order(tmp_path: Path) -> None:
    files = {"one/SKILL.md": SKILL, "one/a-b/x": "1", "one/a/x": "2", "one/B": "4",
             "one/a.b": "3", "README.md": "5", "one/.hidden": "6"}  # fmt: skip

    found = read_skills(folder(tmp_path, **files))

    order = ["README.md", "one/.hidden", "one/B", "one/SKILL.md", "one/a/x",
             "one/a-b/x", "one/a.b"]  # fmt: skip
    content = "".join(f"{name}\0{files[name]}\0" for name in order)
    assert found["hash"] == sha256(content.encode()).hexdigest()[:12]


def test_the_path_is_kept_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, **{"one/SKILL.md": SKILL})
    monkeypatch.chdir(tmp_path)

    assert [read_skills(given)["path"] for given in ("sk/", "./sk")] == ["sk/", "./sk"]


@pytest.mark.parametrize("change", ["one/SKILL.md", "one/more.txt"])
def test_any_new_content_changes_the_digest(tmp_path: Path, change: str) -> None:
    given = folder(tmp_path, **{"one/SKILL.md": SKILL})
    before = read_skills(given)["hash"]
    (Path(given) / change).write_text(SKILL + "!")

    assert read_skills(given)["hash"] != before


@pytest.mark.parametrize(
    ("matter", "expected"),
    [
        ("name: x", ("x", None, None)),
        ("name: x\nmetadata: {version: 1.2}", ("x", None, "1.2")),
        ("name: x\nversion: 9", ("x", None, None)),
        ("name: x\nmetadata: [1]", ("x", None, None)),
        ("name: 5\ndescription: five", ("5", "five", None)),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n", " \n"])
def test_front_matter_is_read(
    tmp_path: Path, matter: str, expected: tuple[str | None, ...], ending: str
) -> None:
    text = f"\ufeff---\n{matter}\n---\nbody".replace("\n", ending)

    (skill,) = read_skills(folder(tmp_path, **{"one/SKILL.md": text}))["skills"]

    assert tuple(skill.values()) == expected


def test_skills_come_in_folder_order(tmp_path: Path) -> None:
    named = "---\nname: {}\n---\n"
    files = {"b/SKILL.md": named.format("z"), "a/SKILL.md": named.format("y")}

    skills = read_skills(folder(tmp_path, **files))["skills"]

    assert [skill["name"] for skill in skills] == ["y", "z"]


def test_all_unusable_skills_are_named(tmp_path: Path) -> None:
    bad = {
        "a": "---\ndescription: d\n---\n", "b": "body", "c": "---\nname: x\n",
        "d": "\n---\nname: x\n---\n", "e": "---\nname: [\n---\n",
        "f": "---\n- a\n---\n", "g": "---\nname: x\ndescription: 5\n---\n",
        "h": "---\nname: ''\n---\n",
    }  # fmt: skip
    files = {f"{name}/SKILL.md": text for name, text in bad.items()}

    with pytest.raises(
        DatasetError, match=r"^9 skills of .* cannot be used:"
    ) as raised:
        read_skills(
            folder(tmp_path, **files, **{"i/other.md": SKILL, "j/SKILL.md": SKILL})
        )

    assert len(raised.value.faults) == 9
    assert raised.value.faults[-1].endswith("i/SKILL.md does not exist")


@pytest.mark.parametrize("files", [{}, {"SKILL.md": SKILL}])
def test_a_folder_must_hold_skill_folders(
    tmp_path: Path, files: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match=r"holds no folder with a SKILL\.md"):
        read_skills(folder(tmp_path, **files))


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(ConfigError, match="none cannot be read: No such file"):
        read_skills(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="file cannot be read: Not a directory"):
        read_skills(str(tmp_path / "file"))
