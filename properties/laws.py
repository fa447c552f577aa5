"""The laws: what must hold between a history and what came out of it.

Each law judges one history (and where it needs them, its variants) and tells what is wrong, or nothing. For each there
is a seeded bug, in `mutants/` or in the tests, that it has been seen to catch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from ..reference.histories import History
from ..reference.operators import collect, operator_named
from ..reference.play import Played
from ..reference.records import Record
from .cohorts import clock_schedule, with_heartbeats
from .outcomes import Difference, Outcome, canonical, differences, grouped_by_key, result_differences
from .situations import SESSION_SITUATIONS


class Verdict(StrEnum):
    """What a check may say."""

    CONFORMS = "conforms"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Law:
    """A law by its name.

    Attributes:
        name: What commands and reports call it.
        sentence: What it says.
        needs: The situations that must have come up in the histories it judged, or it has shown nothing.
    """

    name: str
    sentence: str
    needs: tuple[str, ...] = ()


@dataclass
class LawResult:
    """What a law says of the histories it judged; `skipped` says why it couldn't be asked at all, if so."""

    law: Law
    judged: int = 0
    situations: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[History, list[Difference]]] = field(default_factory=list)
    unfinished: bool = False
    skipped: str = ""

    @property
    def missing(self) -> list[str]:
        """The situations that never came up."""
        return [name for name in self.law.needs if not self.situations[name]]

    @property
    def verdict(self) -> Verdict:
        """Violated by one violation; inconclusive without a history or a needed situation, or when cut short."""
        if self.violations:
            return Verdict.VIOLATED
        nothing_shown = self.unfinished or self.missing or not self.judged
        return Verdict.INCONCLUSIVE if nothing_shown else Verdict.CONFORMS


_LATE = ("late dropped", "late rescued")
_MERGES = ("merge of two", "merge of three or more", "exact gap", "gap + 1")

LAWS = {
    law.name: law
    for law in (
        Law("fold is meaning", "the reference's behaviour folds to its meaning after every batch", SESSION_SITUATIONS),
        Law("changelog", "the changelog is the reference's, as ordered lists per key and batch", SESSION_SITUATIONS),
        Law(
            "table at every cut",
            "the folded changelog is the meaning of the accepted records at every cut",
            SESSION_SITUATIONS,
        ),
        Law("order", "the order of arrival plays no part when nothing is late", ("order changed", *_MERGES)),
        Law("cuts", "where the cuts fall plays no part when nothing is late", ("cuts moved", *_MERGES)),
        Law("repeats", "a record that comes again counts again", ("record repeated",)),
        Law("keys", "a key's changelog is the same without the other keys", ("two keys", *_LATE)),
        Law("packing", "a history run alone gives what it gave in its cohort", ("run alone",)),
        Law(
            "partitions",
            "how many shuffle partitions a query has plays no part",
            ("1 partition", "2 partitions", "7 partitions"),
        ),
        Law(
            "restart",
            "stopping at a batch and restarting from the checkpoint changes nothing",
            ("changes after the restart",),
        ),
        Law(
            "replay",
            "a batch replayed after a crash between output and commit changes nothing downstream",
            ("batch replayed",),
        ),
        Law("state", "a key's state is gone after its retention", ("state expired",)),
        Law("duckdb", "DuckDB's gaps-and-islands statement gives the reference's table", SESSION_SITUATIONS),
        Law("native", "Spark's own session_window gives what the reference closes", ("late dropped", *_MERGES)),
        Law("native partial merge", "merging before the shuffle changes nothing when nothing is late", _MERGES),
    )
}


def fold_is_meaning(history: History, played: Played) -> list[Difference]:
    """Judge the reference alone: after every batch its changelog folds to the meaning of what it accepted so far."""
    return _tables_at_steps(history, played, lambda batch, count: [entry.output for entry in played.entries[:count]])


def table_at_every_cut(history: History, played: Played, outcome: Outcome) -> list[Difference]:
    """Judge a witness at batch grain: after every batch its changelog folds to the meaning."""
    return _tables_at_steps(
        history, played, lambda batch, count: [entry.output for entry in outcome.entries if entry.batch <= batch]
    )


def _tables_at_steps(history: History, played: Played, told: Callable[[int, int], Iterable[Any]]) -> list[Difference]:
    operator = operator_named(history.operator)
    definition = played.definition
    for batch, (entries, accepted, clock) in enumerate(played.steps):
        meant = canonical(operator.meaning(definition, played.accepted[:accepted], clock), definition.unordered)
        folded = canonical(collect(definition, told(batch, entries)), definition.unordered)
        wrong = result_differences(history.name, batch, meant, folded)
        if wrong:
            return wrong
    return []


def same_table(name: str, left: Outcome, right: Outcome) -> list[Difference]:
    """Judge two outcomes by their final tables; lists are compared without their order."""
    return result_differences(name, None, canonical(left.result, True), canonical(right.result, True))


def repeated_twice(name: str, once: Outcome, twice: Outcome) -> list[Difference]:
    """Judge a history whose every record comes twice (aggregate `list`): the same sessions, each member twice."""
    assert isinstance(once.result, dict)
    doubled = {row: (value * 2, timestamp) for row, (value, timestamp) in once.result.items()}
    return result_differences(name, None, canonical(doubled, True), canonical(twice.result, True))


def same_for_key(name: str, key: str, whole: Outcome, alone: Outcome) -> list[Difference]:
    """Judge one key's entries against those of the history without the other keys."""
    return differences(Outcome(name, whole.grain, grouped_by_key(whole.entries)[key]), alone)


def same_entries(one: Outcome, other: Outcome) -> list[Difference]:
    """Judge two runs of one history: the same entries."""
    return differences(one, other)


def state_left(name: str, keys: Iterable[str]) -> list[Difference]:
    """Judge the state after retention: every key that is left is a difference."""
    return [Difference(name, key, None, "no state", "state left") for key in sorted(keys)]


@dataclass(frozen=True)
class Variant:
    """A history made from another one, and the law that relates their outcomes."""

    law: str
    history: History


def variants_of(
    history: History,
    shuffle: Callable[[list[Any]], None],
    integer: Callable[[int, int], int],
    line_of: Callable[[Record], Hashable] | None = None,
) -> list[Variant]:
    """Make the variants of a history in which nothing can be late: shuffled, cut elsewhere, repeated.

    A batch clock must leave the grace so long that nothing is late in any order. Records of one line, as `line_of`
    tells it, keep their order; by default all may change places.
    """
    schedule = clock_schedule(history)
    batches = record_batches(history)
    flat = [record for batch in batches for record in batch]

    def again(law: str, new: Sequence[Sequence[Record]]) -> Variant:
        return Variant(law, replace(history, lines=with_heartbeats(new, schedule), name=f"{history.name}/{law}"))

    shuffled = _shuffled(flat, shuffle, line_of)
    sizes = [len(batch) for batch in batches]
    places = sorted(integer(0, len(flat)) for _ in schedule[1:])
    edges = [0, *places, len(flat)]
    moved = [flat[start:end] for start, end in pairwise(edges)]
    return [
        again("order", _split(shuffled, sizes)),
        again("cuts", moved),
        again("repeats", [[twice for record in batch for twice in (record, record)] for batch in batches]),
    ]


def one_key(history: History, key: str) -> Variant:
    """Make the variant that has one key's records alone, under the same clock."""
    batches = [[record for record in batch if record.key == key] for batch in record_batches(history)]
    lines = with_heartbeats(batches, clock_schedule(history))
    return Variant("keys", replace(history, lines=lines, name=f"{history.name}/keys"))


def _shuffled(
    records: Sequence[Record], shuffle: Callable[[list[Any]], None], line_of: Callable[[Record], Hashable] | None
) -> list[Record]:
    lines: dict[Hashable, list[Record]] = defaultdict(list)
    order: list[Hashable] = []
    for number, record in enumerate(records):
        line = number if line_of is None else line_of(record)
        lines[line].append(record)
        order.append(line)
    shuffle(order)
    waiting = {line: iter(of_line) for line, of_line in lines.items()}
    return [next(waiting[line]) for line in order]


def _split(records: list[Record], sizes: Sequence[int]) -> list[list[Record]]:
    parts, start = [], 0
    for size in sizes:
        parts.append(records[start : start + size])
        start += size
    return parts


def record_batches(history: History) -> list[list[Record]]:
    """The records of each batch."""
    return [[line for line in batch if isinstance(line, Record)] for batch in history.batches]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of all: violated before inconclusive before conforms."""
    found = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.INCONCLUSIVE):
        if verdict in found:
            return verdict
    return Verdict.CONFORMS if found else Verdict.INCONCLUSIVE
