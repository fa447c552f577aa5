"""Bugs planted in the reference models of Spark's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamproof.reference.spark import drop_duplicates, groups, processor, session_windows, stream_join, windows
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.plans import Aggregation, Explode, Filter, Limit, Union
from streamproof.reference.spark.static_join import StaticJoin
from streamproof.reference.spark.subtraction import Subtraction

from .making import Method, Mutant, declared, filtered, function, returning, shifted


def _touches(self: session_windows.SessionsState, row: Mapping[str, Any], late_ms: int) -> bool:
    """Whether a row isn't late by the end of the session that it is merged into."""
    time_us, gap_us = row[self.windows.time], self.windows.gap_us
    if time_us is None:
        return False
    of_key = self.sessions.get(tuple(row[key] for key in self.windows.keys), [])
    live = any(one[0][self.windows.time] - gap_us <= time_us <= self.end(one) for one in of_key)
    return live or time_us + gap_us > late_ms * 1_000


def _prolonged(right: Method) -> Method:
    def batch(self: drop_duplicates.DuplicatesState, rows: Any, late_ms: int, eviction_ms: int) -> Any:
        for row in rows:
            key = tuple(row[column] for column in self.duplicates.columns)
            if self.seen.get(key) is not None:
                self.seen[key] = max(self.seen[key] or 0, self.duplicates.expires_us(row) or 0)
        return right(self, rows, late_ms, eviction_ms)

    return batch


def _unjoined(*kinds: stream_join.StreamJoinKind) -> Callable[[Method], Method]:
    """Return a method before which joins of some kinds forget which of their rows have been joined."""

    def wrong(right: Method) -> Method:
        def called(self: stream_join.JoinState, *given: Any) -> Any:
            rows = (one for of_side in self.kept.values() for of_key in of_side.values() for one in of_key)
            for kept in rows if self.join.join in kinds else ():
                kept.joined = False
            return right(self, *given)

        return called

    return wrong


def _moving(right: Method) -> Method:
    def batch(self: processor.ProcessorState, rows: Any, late_ms: int, eviction_ms: int) -> Any:
        for row in rows:
            if not self.is_late(row, late_ms):
                self.timers_ms.pop(tuple(row[one] for one in self.processor.keys), None)
        return right(self, rows, late_ms, eviction_ms)

    return batch


def _kept(right: Method) -> Method:
    def batch(self: processor.ProcessorState, *given: Any) -> Any:
        emitted = right(self, *given)
        for row in emitted:
            if row[self.processor.count] < 0:
                self.counts[tuple(row[one] for one in self.processor.keys)] = -row[self.processor.count]
        return emitted

    return batch


ALWAYS = 10**15  # milliseconds
W, S, G = windows.WindowsState, session_windows.SessionsState, groups.GroupsState
D, J = drop_duplicates.DuplicatesState, stream_join.JoinState
P = processor.ProcessorState
OF_ROWS = (
    function("a null equals a null", "=", lambda one, other: one == other),
    function("a null differs from any value", "<>", lambda one, other: one != other),
    function("not null is true", "not", lambda value: not value),
    function("null or true is null", "or", lambda *values: None if None in values else any(values)),
    function("null and false is null", "and", lambda *values: None if None in values else all(values)),
    function("a case gives the last of its values", "case", lambda *values: values[-1]),
    function("coalesce gives its first value", "coalesce", lambda *values: values[0]),
    function("null plus a number is the number", "+", lambda *values: sum(value or 0 for value in values)),
    Mutant(
        "a filter keeps the rows whose condition is null",
        Filter,
        "start",
        lambda right: lambda self: lambda rows, *ms: [row for row in rows[0] if self.condition.of(row) is not False],
    ),
    Mutant(
        "explode gives the first element alone",
        Explode,
        "start",
        lambda right: lambda self: right(replace(self, values=self.values[:1])),
    ),
    Mutant(
        "explode leaves out the elements that are null",
        Explode,
        "start",
        lambda right: lambda self: lambda *given: [one for one in right(self)(*given) if one[self.column] is not None],
    ),
    Mutant(
        "a union has equal rows once",
        Union,
        "start",
        lambda right: lambda self: lambda *given: [*{str(row): row for row in right(self)(*given)}.values()],
    ),
    Mutant(
        "a limit counts anew in each batch",
        Limit,
        "start",
        lambda right: lambda self: lambda *given: right(self)(*given),
    ),
    Mutant(
        "a subtraction emits a row once in each batch",
        Subtraction,
        "start",
        lambda right: lambda self: lambda *given: right(self)(*given),
    ),
    Mutant(
        "a subtraction emits a row as often as it comes",
        Subtraction,
        "start",
        lambda right: (
            lambda self: (
                lambda rows, *ms: [
                    row for row in rows[0] if [*row.values()] not in [[one[name] for name in row] for one in self.table]
                ]
            )
        ),
    ),
    Mutant(
        "a subtraction takes no null away",
        Subtraction,
        "start",
        lambda right: (
            lambda self: right(replace(self, table=tuple(row for row in self.table if None not in row.values())))
        ),
    ),
    Mutant(
        "a null key is found in the table",
        StaticJoin,
        "matches",
        lambda right: lambda self, row, of_table: row[self.keys[0]] == of_table[self.table_keys[0]],
    ),
    Mutant(
        "a row finds one row of the table at most",
        StaticJoin,
        "batch",
        lambda right: (
            lambda self, rows, *ms: [
                one for row in rows for one in right(self, [row], *ms)[: 1 if self.join == "inner" else None]
            ]
        ),
    ),
    Mutant(
        "an anti join with a table leaves out null keys",
        StaticJoin,
        "batch",
        lambda right: (
            lambda self, rows, *ms: [
                row for row in right(self, rows, *ms) if self.join != "left_anti" or row[self.keys[0]] is not None
            ]
        ),
    ),
)
OF_AGGREGATIONS = (
    shifted("a window is late a millisecond too late", W, late_ms=-1),
    shifted("no window is ever late", W, late_ms=-ALWAYS),
    shifted("a window is closed a millisecond too late", W, eviction_ms=-1),
    filtered(
        "a complete table of windows leaves out late rows",
        W,
        lambda self, row, late_ms: (
            row["ts"] is None or self.windows.starts(row["ts"])[0] + self.windows.size_us > late_ms * 1_000
        ),
    ),
    returning("a row falls into the last of its windows alone", windows.Windows, "starts", lambda found: found[:1]),
    returning("a window's time is its end", W, "result", lambda row: {**row, "end": row["end"] + 1}),
    declared(
        "an update has all windows",
        W,
        "batch",
        "windows",
        mode=lambda mode: "complete" if mode == "update" else mode,
    ),
    shifted("a row's session is late a millisecond too late", S, late_ms=-1),
    shifted("a session is closed a millisecond too late", S, eviction_ms=-1),
    filtered(
        "a row is late to a session by its own time",
        S,
        lambda self, row, late_ms: row[self.windows.time] is None or row[self.windows.time] > late_ms * 1_000,
    ),
    filtered("a row that a live session takes in isn't late", S, _touches, late=False),
    declared("sessions that touch aren't merged", S, "merged", "windows", gap_us=lambda gap_us: gap_us - 1),
    shifted("a group is late a millisecond too late", G, late_ms=-1),
    shifted("a group is closed a millisecond too late", G, eviction_ms=-1),
    Mutant(
        "an aggregate without columns is emitted with new rows alone",
        G,
        "batch",
        lambda right: lambda self, rows, *ms: right(self, rows, *ms) if rows or self.groups.columns else [],
        lambda node: isinstance(node, Aggregation) and isinstance(node.by, groups.Groups) and not node.by.columns,
    ),
    filtered(
        "rows with a null among the columns are in no group",
        G,
        lambda self, row, late_ms: None not in [row[column] for column in self.groups.columns],
    ),
    Mutant(
        "a sum of nulls alone is zero",
        AggregateFunction,
        "of",
        lambda right: lambda self, rows: (right(self, rows) or 0) if self.function == "sum" else right(self, rows),
    ),
    Mutant(
        "a count of a column counts nulls",
        AggregateFunction,
        "of",
        lambda right: lambda self, rows: len(rows) if self.function == "count" else right(self, rows),
    ),
    Mutant(
        "an average takes a null for zero",
        AggregateFunction,
        "of",
        lambda right: (
            lambda self, rows: (
                sum(row["v"] or 0 for row in rows) / len(rows) if self.function == "avg" and rows else right(self, rows)
            )
        ),
    ),
    Mutant(
        "the least of several values is null if one is",
        AggregateFunction,
        "of",
        lambda right: (
            lambda self, rows: (
                None if self.function == "min" and None in [row["v"] for row in rows] else right(self, rows)
            )
        ),
    ),
)
OF_DUPLICATES = (
    shifted("a row is late to a deduplication a millisecond too late", D, late_ms=-1),
    shifted("no row is late to a deduplication", D, late_ms=-ALWAYS),
    shifted("duplicates are forgotten a millisecond too late", D, eviction_ms=-1),
    shifted("duplicates are never forgotten", D, eviction_ms=-ALWAYS),
    filtered(
        "a row without an event time is late to a deduplication",
        D,
        lambda self, row, late_ms: self.duplicates.delay_us is None or row[self.duplicates.time] is not None,
    ),
    filtered(
        "a row is late to a deduplication by the milliseconds of its time",
        D,
        lambda self, row, late_ms: (row[self.duplicates.time] or 10**18) // 1_000 > late_ms,
    ),
    Mutant("a duplicate prolongs the time in which it is known", D, "batch", _prolonged),
    declared(
        "within the watermark a row is forgotten at its time",
        drop_duplicates.DropDuplicates,
        "expires_us",
        "",
        delay_us=lambda delay_us: delay_us and 0,
    ),
    Mutant(
        "a row is forgotten at its time though that isn't among the columns",
        drop_duplicates.DropDuplicates,
        "expires_us",
        lambda right: lambda self, row: right(self, row) or (row[self.time] if self.delay_us is not None else None),
    ),
    Mutant(
        "null keys differ in a deduplication",
        D,
        "batch",
        lambda right: (
            lambda self, rows, *ms: [
                *right(self, [row for row in rows if None not in [row[one] for one in self.duplicates.columns]], *ms),
                *(row for row in rows if None in [row[one] for one in self.duplicates.columns]),
            ]
        ),
    ),
)
OF_JOINS = (
    shifted("a row is late to a join a millisecond too late", J, late_ms=-1),
    shifted("no row is late to a join", J, late_ms=-ALWAYS),
    Mutant(
        "a row without an event time is late to a join",
        J,
        "in_time",
        lambda right: (
            lambda self, side, *given: [
                row for row in right(self, side, *given) if row[self.join.times[side == "right"]] is not None
            ]
        ),
    ),
    Mutant(
        "a row is late to a join by the state's watermark",
        J,
        "batch",
        lambda right: (
            lambda self, left, right_rows, late_ms, eviction_ms: right(
                self, left, right_rows, (self.join.state_watermark_ms("left", late_ms) or late_ms), eviction_ms
            )
        ),
    ),
    declared(
        "the least bound of a join is exclusive",
        stream_join.StreamJoin,
        "matches",
        "",
        before_us=lambda reach_us: None if reach_us is None else reach_us - 1,
    ),
    declared(
        "the largest bound of a join is exclusive",
        stream_join.StreamJoin,
        "matches",
        "",
        after_us=lambda reach_us: None if reach_us is None else reach_us - 1,
    ),
    declared("null keys are equal in a join", stream_join.StreamJoin, "matches", "", null_keys=lambda equal: True),
    Mutant(
        "each side of a join is kept for the reach of the other",
        stream_join.StreamJoin,
        "reach_us",
        lambda right: lambda self, side: right(self, "left" if side == "right" else "right"),
    ),
    returning(
        "a join's state is forgotten a millisecond too early",
        stream_join.StreamJoin,
        "state_watermark_ms",
        lambda until_ms: until_ms if until_ms is None else until_ms + 1,
    ),
    Mutant("an outer join emits joined rows alone, too", J, "evict", _unjoined("left", "right", "full")),
    returning("an outer join emits no row alone", J, "evict", lambda emitted: []),
    Mutant("a semi join emits a row for each partner", J, "arrive", _unjoined("left_semi")),
    Mutant(
        "a semi join forgets a right row in the batch that evicts it, as since 4.2",
        J,
        "keeps_evicted",
        lambda right: lambda self, side: right(self, side) and (side == "left" or self.join.join != "left_semi"),
    ),
    returning("a join keeps no row that its batch evicts, as before 3.5.4", J, "keeps_evicted", lambda keeps: False),
)
OF_PROCESSOR = (
    shifted("a row is late to a processor a millisecond too late", P, late_ms=-1),
    shifted("no row is late to a processor", P, late_ms=-ALWAYS),
    declared("a timer waits a millisecond longer", P, "batch", "processor", wait_ms=lambda wait_ms: wait_ms + 1),
    Mutant("rows of a later batch move the timer", P, "batch", _moving),
    Mutant("a timer that fires keeps the count", P, "batch", _kept),
)
OF_OPERATORS = (*OF_ROWS, *OF_AGGREGATIONS, *OF_DUPLICATES, *OF_JOINS, *OF_PROCESSOR)
"""The mutants of the operators: of rows alone, of aggregations, deduplication, joins of streams and functions."""
