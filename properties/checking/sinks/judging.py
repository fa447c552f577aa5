"""The verdict on a history, from the results of a sink's readers: rows are lost, doubled or torn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...generators.columns.forms.rows import Row
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
    """Return what a reader finds of each history: the number of copies of each row, or each key's total."""
    found: dict[int, Counter[str]] = {}
    for row in rows:
        of_history = found.setdefault(int(row["history"]), Counter())
        if totals:
            of_history[str(row["key"])] += int(row["total"])
        else:
            of_history[str(row["id"])] += 1
    return found


@dataclass
class Seen:
    """What readers found in a sink's target under a fault.

    Attributes:
        readings: The readers' results during the run, each with the number of batches written before it.
        end: The readers' results at the end.
        batches: The batches whose rows the target should contain at the end.
        second: Whether the target should also contain a second query's rows.
        refusals: The errors with which the sink or Spark refused an action.
        stuck: The error that stops the query or a reader for good; empty: no such error.
        unmet: The reason why the fault didn't happen; empty if the fault happened.
    """

    batches: Sequence[int]
    readings: list[FoundRows] = field(default_factory=list)
    end: FoundRows = field(default_factory=dict)
    second: bool = False
    refusals: list[str] = field(default_factory=list)
    stuck: str = ""
    unmet: str = ""


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
    """Judge each history of a cohort by what the readers found."""
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
    verdicts: list[SinkVerdict] = []
    if expected - end:
        verdicts.append("lost")
    if end - expected:
        verdicts.append("doubled")
    if any(_is_torn(cohort, number, reading.get(number, Counter())) for reading in seen.readings):
        verdicts.append("torn")
    return verdicts


def _is_torn(cohort: SinkCohort, number: int, found: Counter[str]) -> bool:
    """Return whether a reader saw some, but not all, of a batch's rows or of its keys' new totals."""
    for batch in range(len(cohort.histories[number].batches)):
        after = cohort.expected(number, range(batch + 1))
        there = {found[key] >= after[key] for key in cohort.expected(number, [batch])}
        if len(there) > 1:
            return True
    return False
