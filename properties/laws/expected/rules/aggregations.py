"""The rules of aggregation by time windows and by session windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from .....reference.core.errors import BadInput
from .....reference.spark import session_windows as sessions
from .....reference.spark import windows as time_windows
from .....reference.spark.aggregates import FUNCTIONS, Aggregate
from .....reference.spark.durations import Duration, microseconds_of
from ....generators.columns.forms.rows import Row
from ....generators.columns.model import Source
from ....system.arguments import checked
from ....witnesses.run_options import Mode
from .declared import (
    Result,
    check_semantics,
    column_names,
    delays_of,
    look_among,
    look_for,
    named,
    only_input,
    positive_us,
    result_columns,
)
from .rule import Rule, Stage, stepping

Aggregates: TypeAlias = Mapping[str, str | Sequence[str]]
"""Aggregates by the name of the output column: `count` for `count(*)`, or a function of Spark SQL and its column."""
Aggregation: TypeAlias = sessions.SessionWindows | time_windows.Windows


@checked
def session_windows(
    gap: Duration,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    result: Result = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `groupBy(keys, session_window(time, gap))` and its aggregates.

    An output row has the columns of the key, `start`, `end` (a gap after the last row, exclusive) and the aggregates.

    Args:
        gap: The gap, such as "30 minutes"; rows exactly one gap apart share a session.
        delay: The delay of the watermark; needed in append mode.
        aggregates: The aggregates, by the name of the output column: `("sum", "amount")`, or `"count"` for `count(*)`,
            which is the default. Functions are count, sum, min, max, avg, and collect_list and collect_set, sorted.
        keys: The columns of the key; by default the input's key.
        result: The columns that the job's result has, if it hasn't all of these: `["user", "start", "count"]`, or with
            the column that each stands for, `{"user": "user", "hour": "start"}`. The others aren't compared.
        input: The input's name, if there are several.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read.
    """
    check_semantics("session_windows", semantics)
    name, delays_us = named("session_windows", gap=gap, delay=delay), delays_of("session_windows", delay)
    given = None if keys is None else column_names("session_windows", "keys", keys)
    functions, wanted = _aggregates("session_windows", aggregates), result_columns("session_windows", result)
    gap_us = positive_us("session_windows", "gap", gap)

    def bind(sources: Sequence[Source], mode: Mode, watermark: bool) -> list[Stage]:
        source = only_input(name, sources, input)
        by = source.key if given is None else given
        _require_known(name, source, by, functions)
        look_among(name, [*by, "start", "end", *functions], wanted)
        _require_watermark(name, mode, watermark)
        if mode == "update":
            raise BadInput(f'{name}: Spark refuses session windows in update mode: use "append" or "complete"')
        rule = sessions.SessionWindows(source.time, by, gap_us, functions, mode)
        return [_stage(source, rule, lambda: sessions.State(rule).batch)]

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
    result: Result = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `groupBy(keys, window(time, size, slide, start))` and its aggregates.

    An output row has the columns of the key, `start`, `end` (exclusive) and the aggregates.

    Args:
        size: The length of a window, such as "1 hour".
        slide: The time from one window's start to the next; the size by default.
        start: The offset of window starts from midnight (UTC) of 1970-01-01; none by default.
        delay: The delay of the watermark; needed in append mode.
        aggregates: As in `session_windows`.
        keys: The columns of the key; by default the input's key.
        result: As in `session_windows`.
        input: The input's name, if there are several.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read, or Spark refuses the window.
    """
    check_semantics("windows", semantics)
    size_us = positive_us("windows", "size", size)
    slide_us = size_us if slide is None else positive_us("windows", "slide", slide)
    start_us = 0 if start is None else microseconds_of("windows: start", start)
    if slide_us > size_us:
        raise BadInput(
            f"windows: the slide {slide!r} is longer than the size {size!r}, and Spark refuses that: swap them"
        )
    if abs(start_us) >= slide_us:
        raise BadInput(f"windows: the start {start!r} must be shorter than the slide: give the rest of their division")
    name = named("windows", size=size, slide=slide, start=start, delay=delay)
    delays_us = delays_of("windows", delay)
    given = None if keys is None else column_names("windows", "keys", keys)
    functions, wanted = _aggregates("windows", aggregates), result_columns("windows", result)

    def bind(sources: Sequence[Source], mode: Mode, watermark: bool) -> list[Stage]:
        source = only_input(name, sources, input)
        by = source.key if given is None else given
        _require_known(name, source, by, functions)
        look_among(name, [*by, "start", "end", *functions], wanted)
        _require_watermark(name, mode, watermark)
        rule = time_windows.Windows(source.time, by, size_us, slide_us, start_us, functions, mode)
        return [_stage(source, rule, lambda: time_windows.State(rule).batch)]

    distances_us = sorted({size_us, slide_us, abs(start_us), *delays_us.values()} - {0})
    return Rule(name, delays_us, bind, distances_us, result=wanted)


def _require_known(name: str, source: Source, keys: Sequence[str], aggregates: Mapping[str, Aggregate]) -> None:
    """Refuse an input without the columns, and an aggregate that the rules don't know."""
    columns = [*keys, *(aggregate.column for aggregate in aggregates.values() if aggregate.column is not None)]
    look_for(name, source, columns)
    for column, aggregate in aggregates.items():
        decimal = aggregate.column and pa.types.is_decimal(source.schema.field(aggregate.column).type)
        if aggregate.function == "avg" and decimal:
            raise BadInput(
                f"{name}: the rules don't define the rounding of {column!r}, an average of decimals: expect their "
                "sum and count instead"
            )


def _require_watermark(name: str, mode: Mode, watermark: bool) -> None:
    if mode == "append" and not watermark:
        raise BadInput(
            f"{name} has no delay, and Spark aggregates in append mode only with a watermark: "
            'give it delay="10 minutes", or the job the mode "update" or "complete"'
        )


def _stage(source: Source, rule: Aggregation, start: Callable[[], Callable[..., Sequence[Row]]]) -> Stage:
    times = {
        name
        for name, aggregate in rule.aggregates.items()
        if aggregate.column == source.time and aggregate.function != "count"
    }
    why = "the event time is then a window: it is the last operator in what a rule can say"
    follows = rule.asks_for_batch_without_data
    return Stage(stepping(start, source.name), follows, frozenset({"start", "end", *times}), None, why)


def _aggregates(rule: str, given: Aggregates | None) -> dict[str, Aggregate]:
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
        aggregates[name] = Aggregate(*parts)
    return aggregates
