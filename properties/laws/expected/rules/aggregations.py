"""The rules of aggregation by time windows and by session windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import TypeAlias

import pyarrow as pa

from .....reference.core.durations import Duration, microseconds_of
from .....reference.core.errors import BadInput
from .....reference.spark.aggregates import FUNCTIONS, AggregateFunction
from .....reference.spark.plans import Aggregation
from .....reference.spark.session_windows import SessionAggregation
from .....reference.spark.windows import Windows
from ....system.arguments import checked
from ....witnesses.run_options import Mode
from .declared import (
    ResultColumns,
    check_semantics,
    column_names,
    delays_of,
    look_for,
    named,
    only_input,
    positive_us,
    result_columns,
)
from .rule import WINDOW_TIME, Rule, Stream

Aggregates: TypeAlias = Mapping[str, str | Sequence[str]]
"""Aggregates by the name of the output column: `count` for `count(*)`, or a function of Spark SQL and its column."""


@checked
def session_windows(
    gap: Duration,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    result: ResultColumns = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `groupBy(keys, session_window(time, gap))` and its aggregates.

    An output row contains the columns of the key, `start`, `end` (a gap after the last row, exclusive) and the
    aggregates.

    Args:
        gap: The gap, such as "30 minutes"; rows exactly one gap apart share a session.
        delay: The watermark's delay, which append mode requires.
        aggregates: The aggregates, by the name of the output column: `("sum", "amount")`, or `"count"` for `count(*)`,
            which is the default. The functions are count, sum, min, max, avg, and collect_list and collect_set, whose
            lists are sorted.
        keys: The columns of the key; by default the input's key.
        result: The columns of the job's result, if the result lacks some columns of the rule: `["user", "start",
            "count"]`, or with the rule's column for each, `{"user": "user", "hour": "start"}`. Other columns aren't
            compared.
        input: The input's name, if the job has several inputs.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: A duration or an aggregate is invalid.
    """
    check_semantics("session_windows", semantics)
    name, delays_us = named("session_windows", gap=gap, delay=delay), delays_of("session_windows", delay)
    given = None if keys is None else column_names("session_windows", "keys", keys)
    functions, wanted = _aggregates("session_windows", aggregates), result_columns("session_windows", result)
    gap_us = positive_us("session_windows", "gap", gap)

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        stream = only_input(name, streams, input)
        by = stream.key if given is None else given
        _require(name, stream, by, functions, mode)
        if mode == "update":
            raise BadInput(f'{name}: Spark refuses session windows in update mode: use "append" or "complete"')
        return _aggregated(stream, SessionAggregation(stream.time, by, gap_us, functions, mode))

    return Rule(name, delays_us, bind, sorted({gap_us, *delays_us.values()}), result=wanted)


@checked
def windows(
    size: Duration,
    slide: Duration | None = None,
    start: Duration | None = None,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    result: ResultColumns = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `groupBy(keys, window(time, size, slide, start))` and its aggregates.

    An output row contains the columns of the key, `start`, `end` (exclusive) and the aggregates.

    Args:
        size: The length of a window, such as "1 hour".
        slide: The time between the starts of consecutive windows; the size by default.
        start: The offset of window starts from midnight (UTC) of 1970-01-01; by default no offset.
        delay: The watermark's delay, which append mode requires.
        aggregates: The aggregates, as in `session_windows`.
        keys: The columns of the key; by default the input's key.
        result: The columns of the job's result, as in `session_windows`.
        input: The input's name, if the job has several inputs.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: A duration or an aggregate is invalid, or Spark refuses the window.
    """
    check_semantics("windows", semantics)
    size_us = positive_us("windows", "size", size)
    slide_us = size_us if slide is None else positive_us("windows", "slide", slide)
    start_us = 0 if start is None else microseconds_of("windows: start", start)
    if slide_us > size_us:
        raise BadInput(f"windows: the slide {slide!r} is longer than the size {size!r}, which Spark refuses: swap them")
    if abs(start_us) >= slide_us:
        raise BadInput(
            f"windows: the start {start!r} must be shorter than the slide: give the remainder of dividing the start "
            "by the slide"
        )
    name = named("windows", size=size, slide=slide, start=start, delay=delay)
    delays_us = delays_of("windows", delay)
    given = None if keys is None else column_names("windows", "keys", keys)
    functions, wanted = _aggregates("windows", aggregates), result_columns("windows", result)

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        stream = only_input(name, streams, input)
        by = stream.key if given is None else given
        _require(name, stream, by, functions, mode)
        return _aggregated(stream, Windows(stream.time, by, size_us, slide_us, start_us, functions, mode))

    distances_us = sorted({size_us, slide_us, abs(start_us), *delays_us.values()} - {0})
    return Rule(name, delays_us, bind, distances_us, result=wanted)


def _require(
    name: str, stream: Stream, keys: Sequence[str], aggregates: Mapping[str, AggregateFunction], mode: Mode
) -> None:
    """Refuse a stream that lacks the columns or an event time, and an aggregate that the rules don't define."""
    columns = [*keys, *(aggregate.column for aggregate in aggregates.values() if aggregate.column is not None)]
    look_for(name, stream, columns)
    for column, aggregate in aggregates.items():
        decimal = aggregate.column and pa.types.is_decimal(stream.schema.field(aggregate.column).type)
        if aggregate.function == "avg" and decimal:
            raise BadInput(
                f"{name}: the rules don't define the rounding of {column!r}, an average of decimals: expect the "
                "sum and the count instead"
            )
    if not stream.time:
        raise BadInput(f"{name}: the rule before it keeps no event time: name an event time in columns= of the join")
    if mode == "append" and not stream.plan.event_times:
        raise BadInput(
            f"{name} has no delay, and Spark aggregates in append mode only with a watermark: "
            'give it delay="10 minutes", or the job the mode "update" or "complete"'
        )


def _aggregated(stream: Stream, by: Windows | SessionAggregation) -> Stream:
    """Return the output stream of an aggregation: the output columns, and the window's event time."""
    plan = Aggregation((stream.plan,), by, WINDOW_TIME, bounds=True)
    own = {
        name: pa.int64() if aggregate.function == "count" else stream.schema.field(aggregate.column).type
        for name, aggregate in by.aggregates.items()
    }
    times = {
        name
        for name, aggregate in by.aggregates.items()
        if aggregate.column in stream.times and aggregate.function != "count"
    }
    bounds = {"start": pa.timestamp("us", "UTC"), "end": pa.timestamp("us", "UTC")}
    schema = pa.schema([*map(stream.schema.field, by.keys), *starmap(pa.field, {**bounds, **own}.items())])
    return replace(
        stream,
        plan=plan,
        schema=schema,
        key=by.keys,
        time=WINDOW_TIME,
        times=frozenset({"start", "end", *times, *stream.times.intersection(by.keys)}),
    )


def _aggregates(rule: str, given: Aggregates | None) -> dict[str, AggregateFunction]:
    aggregates = {}
    for name, said in ({"count": "count"} if given is None else given).items():
        parts = (said, None) if isinstance(said, str) else (*said,)
        if parts == ("count", "*"):
            parts = ("count", None)
        if len(parts) != 2 or parts[0] not in FUNCTIONS or (parts[1] is None and parts[0] != "count"):
            raise BadInput(
                f"{rule}: the aggregate {name!r} is {said!r}: give a function of {', '.join(FUNCTIONS)} "
                'with its column, such as ("sum", "amount"), or "count"'
            )
        aggregates[name] = AggregateFunction(*parts)
    return aggregates
