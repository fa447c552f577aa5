"""Shrinks a finding to fewer histories, operators, batches and rows that still differ for the same reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ....reference.spark.aggregates import Row
from ....reference.spark.execution import Batch
from ....reference.spark.expressions import FUNCTIONS, Expression, column, constant
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    WithWatermark,
    rebuilt,
)
from ...generators.plans.drawing import COLUMNS, NAMES, SECOND_US, Query
from ...generators.plans.rows import CLOCK, START_US
from ...generators.plans.texts import sql
from ...generators.shrinking import Deadline, Shrinker, one_by_one
from .cases import PlanCase, first_difference
from .judging import Finding, PlanJudge

SECONDS = 120.0
"""The time limit of shrinking a finding (s)."""
ROUNDS = 100
FILTERS = {*FUNCTIONS} - {"+", "coalesce", "case", "as timestamp", "upper", "lower"}
"""The functions whose result is a condition."""
MOST_ALONE = 3
"""The largest number of differing histories that the shrinker tries one by one, before halves of all histories."""


def shrunk(judge: PlanJudge, finding: Finding, seconds: float = SECONDS) -> Finding:
    """Return the smallest finding that the shrinker reaches within the time limit."""
    smallest, asked = finding, set[str]()

    def differs(case: PlanCase) -> bool:
        """Judge a smaller case, unless the shrinker has judged the same case before."""
        nonlocal smallest
        again = None if repr(case) in asked else _again(judge, finding, case)
        asked.add(repr(case))
        smallest = smallest if again is None else again
        return again is not None

    deadline = Deadline(seconds)
    fails = one_by_one(differs, deadline)
    columns = finding.case.columns or []
    difference = first_difference(finding.wanted, finding.found) if "h" in columns else None
    rows = [*difference[1], *difference[2]] if difference else []
    alone = dict.fromkeys(row[columns.index("h")] for row in rows if len(row) == len(columns))
    fails([_with_rows(finding.case, lambda row, one=one: row["h"] == one) for one in [*alone][:MOST_ALONE]])  # type: ignore[misc]
    Shrinker(_size, _candidates).shrink(smallest.case, fails, rounds=ROUNDS, deadline=deadline)
    return smallest


def _again(judge: PlanJudge, finding: Finding, case: PlanCase) -> Finding | None:
    """Judge a smaller case by a finding's relation; a case with an invalid plan doesn't count as different."""
    try:
        if case.columns is None or not case.batches:
            return None
        case.expected()
        return judge.again(finding, case)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ):  # the smaller plan uses a column that its inputs lack
        return None


def _size(case: PlanCase) -> tuple[int, ...]:
    rows = [row for batch in case.batches for of_input in batch.values() for row in of_input]
    nodes = [*case.query.plan.walk()]
    inputs = sum(map(len, case.batches))
    written = sum(len(sql(made)) for node in nodes for made in _made(node)) + sum(len(repr(node)) for node in nodes)
    unlike = sum(len({row[name] for row in rows}) for name in ("h", "k", "ts", "v"))
    odd = sum(_oddness(row) for row in rows)
    how = case.how
    settings = sum(map(len, (how.settings, how.restarts, how.deaths)))
    settings += (case.query.policy == "max") + (not case.query.without_data)
    return len(case.histories), len(nodes), len(rows), len(case.batches), inputs, settings, written, unlike, odd


def _made(node: Node) -> Sequence[Expression]:
    return [made for _, made in node.made] if isinstance(node, Project) else ()


def _oddness(row: Row) -> int:
    time_us = row["ts"] or START_US
    fraction = len(str(time_us / SECOND_US).partition(".")[2]) + (time_us - START_US) // (60 * SECOND_US)
    odd: int = int(fraction) + abs(row["h"]) + ("a", None, "b", "c").index(row["k"]) + (row["v"] or 0)
    return odd


def _candidates(case: PlanCase, thorough: bool) -> Iterator[PlanCase]:
    """Yield cases that are simpler by one change."""
    histories = sorted(case.histories)
    if len(histories) > 1:
        half = len(histories) // 2
        yield from (_with_rows(case, lambda row, kept=kept: row["h"] in kept) for kept in _parts(histories, half))  # type: ignore[misc]
        if len(histories) > 8:
            return
    for plan in _smaller(case.query.plan):
        if set(plan.columns) >= set(case.query.plan.columns) & {"h"}:
            yield _with_batches(replace(case, query=replace(case.query, plan=plan)), case.batches)
    for number in range(len(case.batches)):
        before, after = case.batches[:number], case.batches[number + 1 :]
        yield replace(case, batches=(*before, *after))
        if after:
            yield replace(case, batches=(*before, _merged(case.batches[number], after[0]), *after[1:]))
    places = [(at, name, i) for at, batch in enumerate(case.batches) for name in batch for i in range(len(batch[name]))]
    for size in dict.fromkeys((len(places) // 2, len(places) // 4, 1)):
        for first in range(0, len(places), max(size, 1)):
            dropped = {*places[first : first + max(size, 1)]}
            yield replace(case, batches=tuple(_without(batch, at, dropped) for at, batch in enumerate(case.batches)))
    for number, batch in enumerate(case.batches):  # leave out inputs that have no rows in a batch
        for name in (name for name in batch if not batch[name]):
            fewer = {one: rows for one, rows in batch.items() if one != name}
            yield _with_batches(case, (*case.batches[:number], fewer, *case.batches[number + 1 :]))
    if case.how.restarts:
        yield replace(case, how=replace(case.how, restarts=frozenset()))
    for number in case.how.deaths:
        left = {one: folder for one, folder in case.how.deaths.items() if one != number}
        yield replace(case, how=replace(case.how, deaths=left))
    yield replace(case, query=Query(case.query.plan, case.query.mode))
    for name in case.how.settings:
        others = {one: value for one, value in case.how.settings.items() if one != name}
        yield replace(case, how=replace(case.how, settings=others))
    yield from _plainer(case)


def _plainer(case: PlanCase) -> Iterator[PlanCase]:
    """Yield cases with simpler values: for each column, first change the values of all rows, then only the rows with a
    certain value.
    """
    rows = [row for batch in case.batches for of_input in batch.values() for row in of_input]
    plain: dict[str, Callable[[Any], Any]] = {
        "h": lambda value: 0,
        "k": lambda value: "a",
        "v": lambda value: None,
        "ts": lambda value: None if value is None else value // SECOND_US * SECOND_US,
    }
    yield _with_values(case, lambda row: {name: make(row[name]) for name, make in plain.items()})
    times = sorted({row["ts"] for row in rows} - {None})
    ranks = {time: START_US + (times.index(time) + 1) * 10 * SECOND_US for time in times}
    for changes in (plain, {**plain, "ts": lambda value: ranks.get(value, value)}):
        for name, make in changes.items():
            yield _with_values(case, lambda row, name=name, make=make: {**row, name: make(row[name])})  # type: ignore[misc]
            for one in {row[name] for row in rows}:
                changed = {one: make(one)}
                yield _with_values(case, lambda row, name=name, by=changed: {**row, name: by.get(row[name], row[name])})  # type: ignore[misc]


def _with_values(case: PlanCase, change: Callable[[Row], Row]) -> PlanCase:
    batches = tuple({name: [change(row) for row in rows] for name, rows in batch.items()} for batch in case.batches)
    return replace(case, batches=batches)


def _with_batches(case: PlanCase, batches: Sequence[Batch]) -> PlanCase:
    """Return a case without the rows of unused inputs and without empty batches."""
    kept = ({name: rows for name, rows in batch.items() if name in case.query.inputs} for batch in batches)
    return replace(case, batches=tuple(batch for batch in kept if batch))


def _merged(batch: Batch, other: Batch) -> Batch:
    return {name: [*batch.get(name, ()), *other.get(name, ())] for name in {**batch, **other}}


def _parts(histories: Sequence[int], half: int) -> Iterator[set[int]]:
    if len(histories) <= 8:
        yield from ({*histories} - {one} for one in histories)
    yield {CLOCK, *histories[:half]}
    yield {CLOCK, *histories[half:]}


def _with_rows(case: PlanCase, keeps: Callable[[object], bool]) -> PlanCase:
    def kept(batch: Batch) -> Batch:
        return {name: [row for row in rows if row["h"] == CLOCK or keeps(row)] for name, rows in batch.items()}

    return replace(case, batches=tuple(map(kept, case.batches)))


def _without(batch: Batch, at: int, dropped: set[tuple[int, str, int]]) -> Batch:
    return {
        name: [row for number, row in enumerate(rows) if (at, name, number) not in dropped]
        for name, rows in batch.items()
    }


def _smaller(plan: Node) -> Iterator[Node]:
    """Yield plans in which a node is missing or simpler."""
    for node in plan.walk():
        if isinstance(node, Scan):
            if node.name != NAMES[0]:
                yield _replaced(plan, node, replace(node, name=NAMES[0]))
            continue
        for below in node.inputs:
            if {*COLUMNS} <= {*below.columns} or below.columns == node.columns:
                yield _replaced(plan, node, below)
        yield from (_replaced(plan, node, simpler) for simpler in _simpler(node))


def _simpler(node: Node) -> Iterator[Node]:
    match node:
        case Project():
            names = [name for name, _ in node.made]
            for name in names:
                others = {one: made for one, made in node.made if one != name}
                if others:
                    yield replace(node, made=tuple(others.items()))
                if name in node.input.columns:
                    yield replace(node, made=tuple({**dict(node.made), name: column(name)}.items()))
        case Filter():
            yield from (replace(node, condition=one) for one in node.condition.inputs if one.function in FILTERS)
            if node.condition != constant(False):
                yield replace(node, condition=constant(False))
        case Aggregation():
            for name in node.by.aggregates if len(node.by.aggregates) > 1 else ():
                fewer = {one: made for one, made in node.by.aggregates.items() if one != name}
                yield replace(node, by=replace(node.by, aggregates=fewer))
        case Deduplication():
            yield from (replace(node, by=tuple(one for one in node.by if one != name)) for name in node.by[1:])
        case WithWatermark() if node.delay_us:
            yield replace(node, delay_us=0)
        case Join() if node.by.join != "inner":
            yield replace(node, by=replace(node.by, join="inner"))


def _replaced(plan: Node, old: Node, new: Node) -> Node:
    return new if plan is old else rebuilt(plan, lambda node: new if node is old else node)
