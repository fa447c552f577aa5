"""The verdict on a history: rows lost, doubled or torn, from its readers' results."""

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
"""The verdicts that break a promise; torn batches don't, because no document promises readers complete batches."""
FoundRows: TypeAlias = Mapping[int, Counter[str]]


def found_in(rows: Sequence[Row], totals: bool) -> FoundRows:
    """Return a reader's result for each history: the number of each row, or the total of each key."""
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
    """The observations of a sink under a fault.

    Attributes:
        readings: A reader's intermediate results, each with the number of the delivered batches.
        end: A reader's final result.
        batches: The batches whose rows are expected at the end.
        second: Whether a second query's rows are expected too.
        refusals: The refused actions, with the reasons.
        stuck: The reason why the query, or a reader, can't continue; empty if it can.
        unmet: The reason why the fault didn't happen; empty if it did.
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
    """The verdicts on the histories of a cohort.

    Attributes:
        counts: The number of histories with each bad verdict.
        smallest: The index of the smallest history with each bad verdict.
    """

    counts: Mapping[SinkVerdict, int]
    smallest: Mapping[SinkVerdict, int]


def judged(cohort: SinkCohort, seen: Seen) -> Verdicts:
    """Judge each history of a cohort by the observations."""
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
    """Return whether a reader has found some rows of a batch, or new totals of some of its keys, but not all."""
    for batch in range(len(cohort.histories[number].batches)):
        after = cohort.expected(number, range(batch + 1))
        there = {found[key] >= after[key] for key in cohort.expected(number, [batch])}
        if len(there) > 1:
            return True
    return False
