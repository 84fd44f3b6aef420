"""The folder of skills that `--skills` names: what is in it, as rows are stamped.

Each folder in it is a skill whose `SKILL.md` begins with YAML between two lines of
`---`. Source: `gym-contract.md` §2.1.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from reward_profiling.errors import ConfigError, DatasetError
from reward_profiling.files.yaml_text import parse_mapping

_FILE = "SKILL.md"
_FENCE = "---"
_DIGITS = 12


def read_skills(given: str) -> dict[str, Any]:
    """Return `skills_ref`, which rows are stamped with.

    Its members are `path` as given, `hash`, 12 hexadecimal digits of the content, and
    `skills`, each with its name, description and version, in order of their folders.

    Raises:
        ConfigError: there is no such folder.
        DatasetError: skills that cannot be used, all of them named.
    """
    root = Path(given)
    try:
        skills = _skills(root)  # first: a wrong folder may be large
        return {"path": given, "hash": _digest(root), "skills": skills}
    except OSError as error:
        raise ConfigError(
            f"skills {error.filename or root} cannot be read: {error.strerror}"
        ) from error


def _digest(root: Path) -> str:
    """Return Gym's digest: names and bytes of all files, in order of their paths."""
    digest = sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:_DIGITS]


def _skills(root: Path) -> list[dict[str, str | None]]:
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    if not folders:
        raise ConfigError(f"skills {root} holds no folder with a {_FILE}")
    skills, faults = [], []
    for folder in folders:
        try:
            skills.append(_skill(folder / _FILE))
        except ConfigError as error:
            faults.append(str(error))
    if faults:
        count = len(faults)
        raise DatasetError(f"{count} skills of {root} cannot be used:", faults)
    return skills


def _skill(path: Path) -> dict[str, str | None]:
    if not path.is_file():
        raise ConfigError(f"{path} does not exist")
    fields = parse_mapping(_front_matter(path), path)
    metadata = fields.get("metadata")
    version = metadata.get("version") if isinstance(metadata, dict) else None
    name, description = fields.get("name"), fields.get("description")
    if not name or isinstance(name, list | dict):
        raise ConfigError(f"{path} gives no name between its lines of {_FENCE}")
    if description is not None and not isinstance(description, str):
        raise ConfigError(f"{path}: description is not text")
    return {
        "name": str(name),
        "description": description,
        "version": None if version is None else str(version),
    }


def _front_matter(path: Path) -> str:
    lines = path.read_bytes().decode("utf-8-sig", "replace").splitlines()
    fences = [i for i, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(fences) < 2 or fences[0]:  # noqa: PLR2004 - one opens, one closes
        raise ConfigError(
            f"{path} does not begin with YAML between two lines of {_FENCE}"
        )
    return "\n".join(lines[1 : fences[1]])
