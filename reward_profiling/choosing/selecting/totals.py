"""What a selection came to: rows by verdict, and an earlier pass rate with the new."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from reward_profiling import wire
from reward_profiling.choosing.selecting.pass_rates import Band, mean_rate
from reward_profiling.choosing.selecting.source_rows import SourceFile
from reward_profiling.choosing.selecting.task_verdicts import Decision
from reward_profiling.choosing.selection import (
    OldRates,
    SelectionSummary,
    SelectOptions,
)
from reward_profiling.numerics.correlation import pearson
from reward_profiling.numerics.uncertainty import mean_of


def summary_of(
    source: SourceFile,
    decisions: Sequence[Decision],
    options: SelectOptions,
    *,
    num_tasks: int,
    files: Sequence[Path],
) -> SelectionSummary:
    """Return what a selection came to.

    `decisions` has one entry per row of the source; `num_tasks` is how many different
    tasks the rows are, and `files` are those that are written.
    """
    totals = Counter(one.verdict for one in decisions)
    reasons = Counter(one.reason for one in decisions if one.reason)
    scored = [
        (old, one.verdict, one.rate)
        for old, one in zip(source.old, decisions, strict=True)
        if one.rate is not None
    ]
    pairs = [(old, rate) for old, _, rate in scored if old is not None]
    kept = [rate for _, verdict, rate in scored if verdict == "kept"]
    return SelectionSummary(
        num_rows=len(source.places),
        kept=totals["kept"],
        rejected=totals["rejected"],
        undetermined=totals["undetermined"],
        num_tasks=num_tasks,
        reasons=dict(reasons.most_common()),
        band=str(options.band),
        mean_pass_rate=mean_rate(kept),
        old_rates=compare_rates(options.old_column, pairs, options.band),
        files=tuple(map(str, files)),
        warnings=tuple(_warnings(source, options)),
    )


def compare_rates(
    field: str, pairs: Sequence[tuple[float, Fraction]], band: Band
) -> OldRates | None:
    """Compare (earlier rate, new rate) of rows, each in 0..1; None for no rows."""
    if not pairs:
        return None
    old, new = [pair[0] for pair in pairs], [float(pair[1]) for pair in pairs]
    moved = sum(
        bool(band.place(Fraction(str(before)))) != bool(band.place(after))
        for before, after in pairs
    )
    return OldRates(
        field=field,
        num_rows=len(pairs),
        old_mean=mean_of(old),
        new_mean=mean_of(new),
        correlation=pearson(old, new),
        num_moved=moved,
    )


def _warnings(source: SourceFile, options: SelectOptions) -> Iterator[str]:
    if source.num_stamped:
        yield (
            f"{source.num_stamped} rows held stamps of an earlier plan"
            f" ({wire.NG_PREFIX}…), which were left out"
        )
    if source.num_odd:
        yield (
            f"{source.num_odd} rows hold no rate between 0 and 1 in"
            f" {options.old_column!r}: they are not compared with the new one"
        )
    if options.old_pass_rate and not any(old is not None for old in source.old):
        yield f"no row has a number in {options.old_pass_rate!r}"
