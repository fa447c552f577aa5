"""The times at which an oracle can't tell what is expected: it isn't known which rows are late, or came before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....generators.columns.forms.rows import Row
from ....generators.columns.model import Expected
from ....laws.expected.comparison import columns_of, unmatched
from .judging import Judging
from .times import Uncertain


def uncertain(judging: Judging, expected: Expected) -> Uncertain:
    """Return the times at which the oracle can't tell what is expected."""
    near = Uncertain(judging.key_columns)
    run, plan = judging.run, judging.declared.plan
    if not judging.exact and plan.delays_us:
        _add_late(near, judging, expected)
    if run.otherwise is not None:
        (otherwise,) = judging.expected([judging.given(run.otherwise)])
        otherwise, _ = judging.emitted(otherwise)
        _add_differing(near, judging, judging.at_end(expected), judging.at_end(otherwise))
    if run.lacking:
        near.until_ms = run.earlier_ms
    return near


def _add_late(near: Uncertain, judging: Judging, expected: Expected) -> None:
    """Add the times of rows that may be late."""
    run, plan = judging.run, judging.declared.plan
    late = [*_maybe_late(judging)]
    if judging.by_batches:
        by_name = {source.name: source for source in judging.sources}
        for batch, places in zip(run.history.batches, late, strict=False):
            for name, row in (batch[at] for at in places):
                columns = (*by_name[name].key, by_name[name].time)
                near.add({column: row[column] for column in columns}, sum(plan.durations_us) // 1_000)
    elif any(late):
        certain = [
            [arrival for at, arrival in enumerate(batch) if at not in places]
            for batch, places in zip(run.history.batches, late, strict=False)
        ]
        (without,) = judging.expected([judging.given(run.history.with_batches([*certain, ()]))])
        without, _ = judging.emitted(without)
        _add_differing(near, judging, expected.rows[-1], without.rows[-1])


def _add_differing(near: Uncertain, judging: Judging, rows: Sequence[Row], others: Sequence[Row]) -> None:
    """Add the times of the rows that only one side has."""
    both = [*rows], [*others]
    for some, rest in (both, both[::-1]):
        for at in unmatched(some, rest, sorted(columns_of(both)), judging.options.equality)[0]:
            near.add(some[at])


def _maybe_late(judging: Judging) -> Iterator[set[int]]:
    """Yield the places, in each batch, of the rows of which the oracle can't tell whether they count as late.

    An oracle that goes by batches is in doubt only where a batch without data may have run before: the same rows
    are late by that batch.
    """
    by_name, before_ms = {source.name: source for source in judging.sources}, -1
    for watermark_ms, batch in zip(judging.run.watermarks_ms, judging.run.history.batches, strict=False):
        least_ms = before_ms if judging.by_batches else -1
        yield {
            at
            for at, (name, row) in enumerate(batch)
            if (time_us := by_name[name].time_us_of(row)) is not None and least_ms < time_us // 1_000 <= watermark_ms
        }
        before_ms = watermark_ms
