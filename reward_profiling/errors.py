"""Every error this project raises, one leaf per decision a caller can take.

```
RewardProfilingError(Exception)
├── ConfigError(ValueError)            the operator must change something; exit 2
│   ├── OptionsError                   options do not fit: which, and why
│   ├── DatasetError                   input rows cannot be used: file, line, why
│   └── PlanChangedError               the output holds another plan; kept
├── RecordError(ValueError)            files contradict each other or themselves; exit 2
│   ├── DuplicateRolloutError          two lines, one rollout key
│   ├── UnknownRolloutError            a record that nobody planned
│   └── MissingRolloutsError           a whole profile was asked for, records are owed
├── OutputLockedError(RuntimeError)    another process writes this output; exit 2
├── LockLostError(RuntimeError)        the lock passed to another while stopped; exit 1
├── OutputWriteError(OSError)          the disk does not take records; exit 1, resumable
├── ServersNotReadyError(RuntimeError) servers did not start or answer; exit 1
└── GymError(RuntimeError)             one request to a server failed
    ├── GymUnavailableError            transport, timeout, 408, 425, 429, 5xx: retry
    │   └── ReplyLostError             the same, but the server may have done the work
    └── GymRejectedError               any other status or an unusable body: do not
        └── ContextLengthError         the prompt, or the conversation, is too long
```

A bad rollout is data: a `GymError` on `/run` becomes a failure record. Only a broken
run raises. Every leaf can be pickled, so that it crosses Prefect's task runners.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

SHOWN_FAULTS = 20


class RewardProfilingError(Exception):
    """Anything this project raises on purpose."""


class ConfigError(RewardProfilingError, ValueError):
    """The operator must change an option or a file; printed without a traceback."""


class Fault(NamedTuple):
    """An option that does not fit."""

    option: str
    """Its name, such as max_attempts."""
    reason: str
    """What follows the name, such as " must be a whole number"."""
    given: object = None
    """What was given, where the reason does not say it; a secret may be given here."""


class OptionsError(ConfigError):
    """Options do not fit; text that was given for them is kept, and not shown."""

    def __init__(self, said: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(said, tuple(faults))
        self.faults = tuple(faults)

    @classmethod
    def of(cls, faults: Sequence[Fault]) -> "OptionsError":
        """Make the error of faults, a line for each."""
        return cls("\n".join(f"{one.option}{one.reason}" for one in faults), faults)

    def __str__(self) -> str:
        """Give what is said."""
        return str(self.args[0])

    def __repr__(self) -> str:
        """Give the same: what is logged of an error may be seen by others."""
        return f"OptionsError({str(self)!r})"


class DatasetError(ConfigError):
    """Input rows cannot be used; each fault names file, line and remedy."""

    def __init__(self, heading: str, faults: Sequence[str] = ()) -> None:
        super().__init__(heading, tuple(faults))
        self.heading = heading
        self.faults = tuple(faults)

    def __str__(self) -> str:
        """Give the heading and the first faults, one a line."""
        shown = [f"  {fault}" for fault in self.faults[:SHOWN_FAULTS]]
        if len(self.faults) > SHOWN_FAULTS:
            shown.append(f"  … and {len(self.faults) - SHOWN_FAULTS} more")
        return "\n".join([self.heading, *shown])


class PlanChangedError(ConfigError):
    """The output already holds a plan made from other settings or other rows."""


class RecordError(RewardProfilingError, ValueError):
    """Our files, or Gym's, contradict themselves."""


class DuplicateRolloutError(RecordError):
    """Two lines of one file carry the same rollout key."""


class UnknownRolloutError(RecordError):
    """A record belongs to no planned rollout."""


class MissingRolloutsError(RecordError):
    """Planned rollouts have no record and a whole profile was asked for."""


class OutputLockedError(RewardProfilingError, RuntimeError):
    """Another live process is writing this output."""


class LockLostError(RewardProfilingError, RuntimeError):
    """The output's lock passed to another process while this one was stopped."""


class OutputWriteError(RewardProfilingError, OSError):
    """A file of the output cannot be written: the disk is full, or gone.

    Every earlier record is on disk; running the same command again continues.
    """


class ServersNotReadyError(RewardProfilingError, RuntimeError):
    """Servers could not be started, found or made ready."""


class GymError(RewardProfilingError, RuntimeError):
    """One request to a Gym server failed.

    `kind` is the class name that the failure record shows (`_ng_failure_type`).
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "",
        status: int | None = None,
        body: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind or type(self).__name__
        self.status = status
        self.body = body
        self.retry_after_seconds = retry_after_seconds

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword fields when the error is pickled."""
        return (type(self), self.args, self.__dict__)


@contextmanager
def said_by(url: str) -> Iterator[None]:
    """Put the address of what answered before what is wrong with its reply."""
    try:
        yield
    except GymError as error:
        error.args = (f"{url}: {error}",)
        raise


class GymUnavailableError(GymError):
    """The server may answer later: transport fault, timeout, 408, 425, 429 or 5xx."""


class ReplyLostError(GymUnavailableError):
    """The request went out and no whole reply came back: the work may be done."""


class GymRejectedError(GymError):
    """The server answered, and the answer will not change by asking again."""


class ContextLengthError(GymRejectedError):
    """The model refused the request: it is longer than the model's context."""
