"""Which rollout starts next: the owed ones in order, except those of closed gates.

Rollouts of a server that must not be asked now are set aside, and come first when it
may be asked again; the others continue.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reward_profiling.collecting.ledger import Ledger
from reward_profiling.collecting.on_disk.timings import seconds_by_task
from reward_profiling.collecting.options import Dispatch
from reward_profiling.planning.on_disk.planned_rollouts import (
    PlannedRollout,
    reread_planned,
    with_attempt,
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A rollout set aside: its place in the plan, and the retries that it used."""

    place: int
    retries: int


@dataclass(slots=True)
class Dispatcher:
    """Hands out rollouts one by one."""

    plan: Path
    ledger: Ledger
    rollouts: Iterator[PlannedRollout]
    """The owed rollouts, in the order in which they are to start."""
    server_of: Callable[[str], str]
    """From what runs a rollout to the URL that is asked for it."""
    urls: frozenset[str]
    """URLs of all servers."""
    is_read: bool = False
    """Whether every owed rollout was taken or set aside."""
    waiting: dict[str, deque[Waiting]] = field(default_factory=dict)
    """Rollouts set aside, by the URL of their server."""

    def take(self, is_open: Callable[[str], bool]) -> tuple[PlannedRollout, int] | None:
        """Return the next rollout whose server may be asked, and its used retries.

        None means that there is none now; `num_waiting` says whether some may come.
        """
        for url, aside in self.waiting.items():
            # A rollout that brought its server down before must not go first.
            if aside and is_open(url) and (self.is_read or not aside[0].retries):
                first = aside.popleft()
                return self._again(first.place), first.retries
        if not any(is_open(url) for url in self.urls):
            return None  # keep the plan where it is, rather than set all of it aside
        for planned in self.rollouts:
            if is_open(self.server_of(planned.runner)):
                return planned, 0
            self.set_aside(planned, 0)
        self.is_read = True
        return None

    def set_aside(self, planned: PlannedRollout, retries: int) -> None:
        """Keep a rollout until its server may be asked again."""
        url = self.server_of(planned.runner)
        self.waiting.setdefault(url, deque()).append(Waiting(planned.place, retries))

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to take, now or later."""
        return self.is_read and not self.num_waiting

    def is_wanted(self, url: str) -> bool:
        """Say whether rollouts wait for a server, or may yet."""
        return not self.is_read or bool(self.waiting.get(url))

    @property
    def num_waiting(self) -> int:
        """Rollouts set aside at present."""
        return sum(len(aside) for aside in self.waiting.values())

    def _again(self, place: int) -> PlannedRollout:
        planned = next(reread_planned(self.plan, iter([place])))
        return with_attempt(planned, self.ledger.failures[planned.key])


def owed_in_order(
    plan: Path,
    rollouts: Iterable[PlannedRollout],
    ledger: Ledger,
    dispatch: Dispatch,
    timings: Path,
) -> Iterator[PlannedRollout]:
    """Yield what is owed of `rollouts` in dispatch order, stamped with attempts."""
    owed: Iterator[PlannedRollout] = filter(lambda p: ledger.is_owed(p.key), rollouts)
    if dispatch == "interleaved":
        owed = _sorted(plan, owed, _repeat)
    elif dispatch == "longest-first":
        seconds = seconds_by_task(timings)
        ordered = sorted(seconds.values())
        # A task without timings may be long or short, so it goes in the middle.
        middle = ordered[len(ordered) // 2] if ordered else 0.0
        owed = _sorted(plan, owed, lambda p: -seconds.get(p.key[0], middle))
    for planned in owed:
        yield with_attempt(planned, ledger.failures[planned.key])


def _repeat(planned: PlannedRollout) -> float:
    index = planned.key[1]
    return index if isinstance(index, int) else 0


def _sorted(
    plan: Path,
    rollouts: Iterable[PlannedRollout],
    order: Callable[[PlannedRollout], float],
) -> Iterator[PlannedRollout]:
    """Order rollouts while holding only a number and a place of each."""
    places = [(order(planned), planned.place) for planned in rollouts]
    places.sort()
    return reread_planned(plan, (place for _, place in places))
