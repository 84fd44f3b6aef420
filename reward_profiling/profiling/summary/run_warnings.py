"""Warnings about a run that was read, one sentence each."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from reward_profiling.profiling.matched_run import MatchedRun
from reward_profiling.profiling.run_reading import SHOWN_LINES

_SHOWN_PARTS = 10


def warnings_of(run: MatchedRun, unscored_reasons: Mapping[int, str]) -> Iterator[str]:
    """Yield the warnings; a record's row leads to the reason why it has no score."""
    yield from _unscored_lines(run, unscored_reasons)
    left_out, sources = run.duplicates, run.sources
    if left_out.number:
        yield (
            f"{left_out.number} duplicate records were left out:"
            f" {_listed(run, left_out.places, left_out.number)}"
        )
    if run.found.note:
        yield run.found.note
    for path, end in zip(sources.rollouts, run.found.ends, strict=True):
        if end.is_torn:
            yield (
                f"{path}:{end.line + 1}: the incomplete last line was left out; it is"
                " still being written, or its writer died"
            )
    if strays := len(run.records.strays):
        yield f"{strays} lines of {sources.rollouts[0]} are failures, not records"


def _unscored_lines(run: MatchedRun, reasons: Mapping[int, str]) -> Iterator[str]:
    """Name the records without a score: how many, why, and where the first ones are."""
    records = run.records
    for reason, count in sorted(Counter(reasons.values()).items()):
        rows = (row for row, found in reasons.items() if found == reason)
        places = ((records.file[row], records.line[row]) for row in rows)
        first = heapq.nsmallest(SHOWN_LINES, places)
        yield (
            f"reward {reason}: {count} not scored: {_listed(run, first, count)}"
            f"{_parts(run, reasons, reason)}"
        )


def _parts(run: MatchedRun, reasons: Mapping[int, str], reason: str) -> str:
    """Name the parts of rewards that are objects, and how to choose one."""
    rows = (row for row, it in reasons.items() if it == reason)
    rewards = map(run.records.raw_rewards.get, rows)
    objects = [reward for reward in rewards if isinstance(reward, dict) and reward]
    if not objects:
        return ""
    names = list(dict.fromkeys(name for reward in objects for name in reward))
    records, plan = run.sources.rollouts[0], run.sources.files.materialized_inputs
    return (
        f". Their parts are {', '.join(names[:_SHOWN_PARTS])}; a reward is one number:"
        " have the verifier return it, or choose a part in a copy, jq -c"
        f" '.reward = .reward[\"{names[0]}\"]' {records} > chosen.jsonl, and profile"
        f" that: --rollouts chosen.jsonl --inputs {plan}"
    )


def _listed(run: MatchedRun, places: Iterable[tuple[int, int]], count: int) -> str:
    named = [run.sources.place(file, line) for file, line in places]
    more = count - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
