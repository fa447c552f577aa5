"""Shrinks a finding: fewer histories, operators, batches and rows, as long as it differs for the same reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ....reference.spark.execution import Batch
from ....reference.spark.expressions import column, constant
from ....reference.spark.plans import Aggregation, Filter, Node, Project, Source, rebuilt
from ...generators.plans.drawing import COLUMNS
from ...generators.plans.rows import CLOCK
from ...generators.shrinking import Deadline, Shrinker
from .cases import Case, first_difference
from .judging import Finding, Judge

SECONDS = 120.0
"""How long a finding is shrunk at most."""
ROUNDS = 100
MOST_ALONE = 3
"""How many of the histories that differ are tried alone, before halves of all."""


def shrunk(judge: Judge, finding: Finding, seconds: float = SECONDS) -> Finding:
    """Return the smallest finding that was found within the time."""
    smallest = finding

    def fails(cases: Sequence[Case]) -> list[bool]:
        """Try cases, the smallest first, until one differs."""
        nonlocal smallest
        for number, case in enumerate(cases):
            if deadline.is_over():
                break
            again = judge.again(finding, case)
            if again is not None:
                smallest = again
                return [at == number for at in range(len(cases))]
        return [False] * len(cases)

    deadline = Deadline(seconds)
    columns = finding.case.columns or []
    difference = first_difference(finding.wanted, finding.found) if "h" in columns else None
    rows = [*difference[1], *difference[2]] if difference else []
    alone = dict.fromkeys(row[columns.index("h")] for row in rows if len(row) == len(columns))
    fails([_with_rows(finding.case, lambda row, one=one: row["h"] == one) for one in [*alone][:MOST_ALONE]])  # type: ignore[misc]
    Shrinker(_size, _candidates).shrink(smallest.case, fails, rounds=ROUNDS, deadline=deadline)
    return smallest


def _size(case: Case) -> tuple[int, ...]:
    rows = sum(len(rows) for batch in case.batches for rows in batch.values())
    nodes = [*case.query.plan.walk()]
    made = sum(len(repr(node)) for node in nodes)
    return len(case.histories), len(nodes), rows, len(case.batches), len(case.how.settings), made


def _candidates(case: Case, thorough: bool) -> Iterator[Case]:
    """Yield cases that are one step simpler."""
    histories = sorted(case.histories)
    if len(histories) > 1:
        half = len(histories) // 2
        yield from (_with_rows(case, lambda row, kept=kept: row["h"] in kept) for kept in _parts(histories, half))  # type: ignore[misc]
        if len(histories) > 8:
            return
    for plan in _smaller(case.query.plan):
        columns_stay = set(plan.columns) >= set(case.query.plan.columns) & {"h"}
        if columns_stay:
            yield replace(case, query=replace(case.query, plan=plan))
    for number in range(len(case.batches)):
        yield replace(case, batches=(*case.batches[:number], *case.batches[number + 1 :]))
    places = [(at, name, i) for at, batch in enumerate(case.batches) for name in batch for i in range(len(batch[name]))]
    for size in (len(places) // 2, len(places) // 4, 1):
        for first in range(0, len(places), max(size, 1)):
            dropped = {*places[first : first + max(size, 1)]}
            yield replace(case, batches=tuple(_without(batch, at, dropped) for at, batch in enumerate(case.batches)))
    for number, batch in enumerate(case.batches):  # an input that is silent is simpler than one with no rows
        for name in (name for name in batch if not batch[name]):
            fewer = {one: rows for one, rows in batch.items() if one != name}
            yield replace(case, batches=(*case.batches[:number], fewer, *case.batches[number + 1 :]))
    if case.how.restarts:
        yield replace(case, how=replace(case.how, restarts=frozenset()))


def _parts(histories: Sequence[int], half: int) -> Iterator[set[int]]:
    if len(histories) <= 8:
        yield from ({*histories} - {one} for one in histories)
    yield {CLOCK, *histories[:half]}
    yield {CLOCK, *histories[half:]}


def _with_rows(case: Case, keeps: Callable[[object], bool]) -> Case:
    def kept(batch: Batch) -> Batch:
        return {name: [row for row in rows if row["h"] == CLOCK or keeps(row)] for name, rows in batch.items()}

    return replace(case, batches=tuple(map(kept, case.batches)))


def _without(batch: Batch, at: int, dropped: set[tuple[int, str, int]]) -> Batch:
    return {
        name: [row for number, row in enumerate(rows) if (at, name, number) not in dropped]
        for name, rows in batch.items()
    }


def _smaller(plan: Node) -> Iterator[Node]:
    """Yield plans with one node less, or with a simpler node."""
    nodes = [node for node in plan.walk() if not isinstance(node, Source)]
    for node in nodes:
        for below in node.inputs:
            if {*COLUMNS} <= {*below.columns} or below.columns == node.columns:
                yield _replaced(plan, node, below)
        if isinstance(node, Project):
            plain = tuple((name, made if name not in node.input.columns else column(name)) for name, made in node.made)
            if plain != node.made:
                yield _replaced(plan, node, replace(node, made=plain))
        if isinstance(node, Filter) and node.condition.function in ("or", "and"):
            yield from (_replaced(plan, node, replace(node, condition=one)) for one in node.condition.inputs)
        if isinstance(node, Filter) and node.condition != constant(False):
            yield _replaced(plan, node, replace(node, condition=constant(False)))
        if isinstance(node, Aggregation) and len(node.by.aggregates) > 1:
            fewer = {"v": node.by.aggregates["v"]}
            yield _replaced(plan, node, replace(node, by=replace(node.by, aggregates=fewer)))


def _replaced(plan: Node, old: Node, new: Node) -> Node:
    return new if plan is old else rebuilt(plan, lambda node: new if node is old else node)
