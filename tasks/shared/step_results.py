"""When a kept result replaces running a step again: only while all files agree.

The key of a result covers the step's settings and the content of the files that it
reads, never a port or a time. A result is used only while the files that the step wrote
are unchanged; if one was deleted or edited, the step runs again. Prefect shows a step
with a kept result as Cached.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic_core
from prefect.cache_policies import CachePolicy
from prefect.context import TaskRunContext
from prefect.serializers import JSONSerializer, Serializer
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from reward_profiling.files.file_stamps import file_stamp
from reward_profiling.files.own_version import own_version

STORAGE = Path(PREFECT_LOCAL_STORAGE_PATH.value())
"""Where results are kept: beside Prefect's own of this machine, whose files they stamp.
Named, so that no step asks Prefect's server, which may be away, for a better place."""


class StaleResultError(Exception):
    """A file that a step wrote has changed, so Prefect must not use the result."""


_JSON: JSONSerializer[Any] = JSONSerializer()


class FilesAgree(Serializer):
    """Keeps a result with the stamps of its files, and reads it while they agree.

    The result names them in `written`, and says by `is_reusable` whether the step did
    all that it was to do.
    """

    type: Literal["reward-profiling-files"] = "reward-profiling-files"

    def dumps(self, obj: Any) -> bytes:  # noqa: ANN401 - Prefect's signature
        """Encode a result of a step, and what its files hold."""
        stamps = _stamps(Path(path) for path in obj.written)
        kept = {
            "is_reusable": obj.is_reusable,
            "stamps": stamps,
            "value": _JSON.dumps(obj).decode(),
        }
        return pydantic_core.to_json(kept)

    def loads(self, blob: bytes) -> Any:  # noqa: ANN401 - Prefect's signature
        """Decode a result.

        Raises:
            StaleResultError: the files have changed since.
        """
        kept = pydantic_core.from_json(blob)
        stamps = kept["stamps"]
        if not kept["is_reusable"] or _stamps(map(Path, stamps)) != stamps:
            raise StaleResultError
        return _JSON.loads(kept["value"].encode())


def _stamps(paths: Iterable[Path]) -> dict[str, str | None]:
    return {str(path.absolute()): file_stamp(path) for path in paths}


Given = Mapping[str, Any]
"""A step's arguments, by name."""


def by_content(
    step: str,
    settings: Callable[[Given], object],
    reads: Callable[[Given], Iterable[Path]],
) -> CachePolicy:
    """Return the policy of a step's key: its settings, and what its files hold.

    `settings` leaves out what does not change the result, such as a port.
    """

    def key(_: TaskRunContext, given: dict[str, Any]) -> str:
        parts = (
            step,
            own_version(),
            settings(given),
            _stamps(reads(given)),
        )
        content = pydantic_core.to_json(parts, inf_nan_mode="strings")
        return f"{step}-{hashlib.sha256(content).hexdigest()}"

    return CachePolicy.from_cache_key_fn(key)
