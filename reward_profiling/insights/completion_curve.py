"""How a collection progressed: rollouts finished over time, in few points."""

from collections.abc import Iterable

import msgspec

MOST_POINTS = 200


class CompletionPoint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How many rollouts had finished by a moment."""

    seconds: float
    """Since the first rollout started, over all runs of the output."""

    finished: int
    """Rollouts finished by then."""


def completion_curve(
    timings: Iterable[tuple[float, float]],
) -> tuple[CompletionPoint, ...]:
    """Return how many rollouts had finished at which time, in at most 200 points.

    `timings` holds (start time, seconds taken) of each rollout, in any order.
    """
    known = list(timings)
    if not known:
        return ()
    first = min(started for started, _ in known)
    ends = sorted(started + seconds - first for started, seconds in known)
    step = max(1, -(-len(ends) // MOST_POINTS))
    counts = [*range(step, len(ends), step), len(ends)]
    return tuple(
        CompletionPoint(seconds=round(ends[count - 1], 3), finished=count)
        for count in counts
    )
