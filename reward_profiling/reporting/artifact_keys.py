"""Keys of what a run shows in Prefect: one history for each output.

Keys are global in Prefect. With the output in it, the page of artifacts lists outputs
beside each other, and the nights of a schedule are the versions of one artifact.
"""

import re
from hashlib import blake2b
from pathlib import Path

_DATES = re.compile(r"\d{4}-\d{2}-\d{2}(?:[-_/T ]?\d{6}(?!\d))?")
"""What {date}, and {time} after it, became in the path of an output."""
_DEFAULT_STEM = "rollouts"
_PLACES = 2
_MOST_CHARACTERS = 40


def artifact_key(kind: str, output: Path) -> str:
    """Return the key of one kind of artifact of an output.

    It is `<kind>-of-<folders and stem>-<6 digits>`; the digits tell paths apart that
    read the same. Prefect takes small letters, digits and dashes.
    """
    place = _DATES.sub("", str(output.absolute()))
    digits = blake2b(place.encode("utf-8", "surrogatepass"), digest_size=3)
    folders = [part for part in Path(place).parent.parts if part.strip("/-_ ")]
    stem = Path(place).stem
    shown = folders[-_PLACES:] + ([stem] if stem != _DEFAULT_STEM else [])
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(shown).lower()).strip("-")
    named = words[:_MOST_CHARACTERS].strip("-")
    return "-".join(filter(None, [kind, "of", named, digits.hexdigest()]))
