"""The verdict on a history, from the rows that a sink's readers return: rows are lost, doubled or torn (partly
visible).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from ...generators.columns.forms.rows import Row
from ...witnesses.job.dying.faults import Seen, is_torn, lost_or_doubled
from .cohorts import SinkCohort
from .contracts import Promise

SinkVerdict: TypeAlias = Literal["stuck", "lost", "doubled", "torn", "refused", "kept", "not played"]
BAD: Sequence[SinkVerdict] = ("stuck", "lost", "doubled", "torn")
BROKEN_BY: Mapping[Promise, Sequence[SinkVerdict]] = {
    "exactly once": ("stuck", "lost", "doubled"),
    "at least once": ("stuck", "lost"),
    "nothing": (),
}
"""The verdicts that break each delivery guarantee; no guarantee covers torn batches, because no document promises them.
"""
FoundRows: TypeAlias = Mapping[int, Counter[str]]


def found_in(rows: Sequence[Row], totals: bool) -> FoundRows:
    """Return the rows that a reader finds, by history: the number of copies of each row, or each key's total."""
    found: dict[int, Counter[str]] = {}
    for row in rows:
        of_history = found.setdefault(int(row["history"]), Counter())
        if totals:
            of_history[str(row["key"])] += int(row["total"])
        else:
            of_history[str(row["id"])] += 1
    return found


@dataclass(frozen=True)
class Verdicts:
    """The bad verdicts on the histories of a cohort.

    Attributes:
        counts: The number of histories with each bad verdict.
        smallest: The index of the smallest history for each bad verdict.
    """

    counts: Mapping[SinkVerdict, int]
    smallest: Mapping[SinkVerdict, int]


def judged(cohort: SinkCohort, seen: Seen) -> Verdicts:
    """Judge each history of a cohort by the rows that the readers found."""
    of_each: dict[SinkVerdict, list[int]] = {}
    for number in range(len(cohort.histories)):
        for verdict in verdicts_on(cohort, number, seen):
            of_each.setdefault(verdict, []).append(number)
    smallest = {name: min(found, key=lambda one: (_size(cohort, one), one)) for name, found in of_each.items()}
    return Verdicts({name: len(of_each[name]) for name in BAD if name in of_each}, smallest)


def _size(cohort: SinkCohort, number: int) -> int:
    return sum(map(len, cohort.histories[number].batches))


def verdicts_on(cohort: SinkCohort, number: int, seen: Seen) -> list[SinkVerdict]:
    """Return the bad verdicts on a history."""
    if seen.stuck:
        return ["stuck"]
    expected = cohort.expected(number, seen.batches, seen.second)
    end = seen.end.get(number, Counter())
    verdicts = cast("list[SinkVerdict]", lost_or_doubled(expected, end))
    if any(_is_torn(cohort, number, reading.get(number, Counter())) for reading in seen.readings):
        verdicts.append("torn")
    return verdicts


def _is_torn(cohort: SinkCohort, number: int, found: Counter[str]) -> bool:
    """Return whether a reader saw a part of a batch: some, but not all, of its rows or of its keys' new totals."""
    batches = range(len(cohort.histories[number].batches))
    ends = [cohort.expected(number, range(batch)) for batch in (*batches, len(batches))]
    return any(is_torn(ends[batch], ends[batch + 1], found) for batch in batches)
