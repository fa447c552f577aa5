"""The rule of a stream-stream join."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from .....reference.core.durations import Duration, microseconds_of
from .....reference.core.errors import BadInput
from .....reference.spark import stream_join as joins
from .....reference.spark.expressions import Expression, column
from .....reference.spark.plans import Join, Project
from .....reference.spark.stream_join import StreamJoinKind
from ....system.arguments import checked
from ....witnesses.run_options import Mode
from .declared import (
    On,
    both_sides,
    check_semantics,
    column_names,
    each_delay,
    look_for,
    named,
    only_input,
    refuse_several_times,
    version_of,
)
from .rule import Rule, Stream

Sides: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Columns of the left input, and the corresponding columns of the right input."""
SIDES: tuple[joins.Side, joins.Side] = ("left", "right")


ColumnOrigins: TypeAlias = Mapping[str, tuple[str, ...]] | None
"""The source columns of each output column, as `input.column`; the first non-null value counts. None: all columns of
both sides.
"""


def _inputs(rule: str, streams: Sequence[Stream], left: str | None, right: str | None) -> tuple[Stream, Stream]:
    """Return the joined inputs: the named inputs, by default the first and the second."""
    if len(streams) < 2:
        raise BadInput(f"{rule} joins two inputs, and the job has {len(streams)}: give the job a second input")
    return (
        only_input(rule, streams, streams[0].name if left is None else left),
        only_input(rule, streams, streams[1].name if right is None else right),
    )


def _missing(rule: joins.StreamJoin, columns: ColumnOrigins, left: Stream, right: Stream) -> list[str]:
    """Return the arguments that the user omitted although Spark requires them for the join, each with the reason."""
    bounded = {side for side in SIDES if rule.reach_us(side) is not None}
    on = rule.keys if rule.keys[0] else _keys(left, right)
    missing = [] if rule.keys[0] else [f"on={_as_argument(on)}, the columns that are equal"]
    if (rule.join in ("left", "right") and rule.join not in bounded) or (rule.join == "full" and not bounded):
        bound = "before" if rule.join == "right" else "after"
        missing.append(
            f'{bound}="1 hour" and delay="10 minutes", because Spark allows an outer join only if both sides '
            "have a watermark and time is bounded"
        )
    all_columns = columns is None and rule.join != "left_semi"
    twice = [name for name in left.schema.names if name in right.schema.names] if all_columns else []
    if twice:
        suggested = json.dumps(_suggested(rule.join, left, right, on))
        named = f"column {twice[0]}" if len(twice) == 1 else f"columns {', '.join(twice)}"
        missing.append(f"columns={suggested}, with the job's names, because both inputs have the {named}")
    return missing


def _suggested(join: StreamJoinKind, left: Stream, right: Stream, on: Sides) -> dict[str, str | list[str]]:
    """Return output columns with all columns of both sides, and with the join columns only once."""
    equal = [one for one, two in zip(*on, strict=False) if one == two]
    columns: dict[str, str | list[str]] = {}
    for source, other in ((left, right), (right, left)):
        for name in source.schema.names:
            if name in equal:
                sides = {"right": [right], "full": [left, right]}.get(join, [left])
                texts = [f"{side.name}.{name}" for side in sides]
                columns[name] = texts if len(texts) > 1 else texts[0]
            else:
                shown = f"{source.name}_{name}" if name in other.schema.names else name
                columns[shown] = f"{source.name}.{name}"
    return columns


def _parts(rule: str, columns: ColumnOrigins, sides: Sequence[Stream]) -> dict[str, list[tuple[int, str]]]:
    """Return the source columns of each output column, each as a side (0: left, 1: right) and a name."""
    if columns is None:
        return {name: [(n, name)] for n, source in enumerate(sides) for name in source.schema.names}
    parts: dict[str, list[tuple[int, str]]] = {}
    for name, texts in columns.items():
        parts[name] = []
        for text in texts:
            found = [
                (n, text.removeprefix(f"{source.name}."))
                for n, source in enumerate(sides)
                if text.startswith(f"{source.name}.") and text.removeprefix(f"{source.name}.") in source.schema.names
            ]
            if not found:
                known = ", ".join(f"{source.name}.{column}" for source in sides for column in source.schema.names)
                raise BadInput(f"{rule}: the column {name!r} is {text!r}, which doesn't exist: use some of {known}")
            parts[name] += found
    return parts


def _joined(name: str, rule: joins.StreamJoin, columns: ColumnOrigins, left: Stream, right: Stream) -> Stream:
    """Return the output of a join; the output's event time is the left side's time if the output contains this time,
    otherwise the right side's.
    """
    if missing := _missing(rule, columns, left, right):
        raise BadInput(f"{name}: add {'; and '.join(missing)}")
    sides = [left] if rule.join == "left_semi" else [left, right]
    parts = _parts(name, columns, sides)
    timed = {n: [to for to, of in parts.items() if of == [(n, side.time)]] for n, side in enumerate(sides)}
    made = dict(parts)
    for n, side in enumerate(sides):
        if side.time not in side.schema.names and any(of in ([(n, "start")], [(n, "end")]) for of in parts.values()):
            made[_named(n, side.time)] = [(n, side.time)]  # a window's start or end is in the output
            timed[n] = [_named(n, side.time)]
    keys = tuple(tuple(_named(n, key) for key in rule.keys[n]) for n in (0, 1))
    times = _named(0, left.time), _named(1, right.time)
    renamed = (
        Project((side.plan,), tuple((_named(n, one), column(one)) for one in side.plan.columns))
        for n, side in enumerate((left, right))
    )
    plan = Join(tuple(renamed), replace(rule, keys=(keys[0], keys[1]), times=times))
    return Stream(
        left.name,
        Project((plan,), tuple((to, _first([column(_named(*one)) for one in of])) for to, of in made.items())),
        pa.schema([pa.field(to, sides[of[0][0]].schema.field(of[0][1]).type) for to, of in parts.items()]),
        tuple(next((to for to, of in parts.items() if (0, key) in of), key) for key in left.key),
        next(chain(*timed.values()), ""),
        frozenset(to for to, of in parts.items() if any(one in sides[n].times for n, one in of)),
        left.inputs | right.inputs,
    )


def _named(side: int, name: str) -> str:
    """Return the name of a side's column in the join, before the output columns are chosen."""
    return f"{SIDES[side]}.{name}"


def _first(values: Sequence[Expression]) -> Expression:
    return values[0] if len(values) == 1 else Expression("coalesce", tuple(values))


def _keys(left: Stream, right: Stream) -> Sides:
    """Return possible join columns: the left key's columns, if both sides have them, otherwise both keys' columns."""
    return left.key, left.key if all(name in right.schema.names for name in left.key) else right.key


def _as_argument(on: Sides) -> str:
    return json.dumps([*on[0]]) if on[0] == on[1] else f"({', '.join(json.dumps([*side]) for side in on)})"


@checked
def stream_join(
    join: StreamJoinKind = "inner",
    on: On = (),
    before: Duration | None = None,
    after: Duration | None = None,
    delay: Duration | Mapping[str, Duration] | None = None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    left: str | None = None,
    right: str | None = None,
    semantics: str = "spark",
    spark: str | None = None,
) -> Rule:
    """Expect the rows of a stream-stream join, where `right.time BETWEEN left.time - before AND left.time + after`.

    Args:
        join: `inner`, `left`, `right`, `full` or `left_semi`.
        on: The join columns: their names, or the names in the left input and the names in the right input.
        before: How much earlier the right row's time may be than the left row's, such as "5 minutes"; by default
            unlimited.
        after: How much later the right row's time may be than the left row's; by default unlimited.
        delay: The delay of both watermarks, or the delay of each input by its name.
        columns: The columns of the output: `{"user": "clicks.user", "shown_at": "views.at"}`. If a column has several
            sources, the first non-null value counts, as in `coalesce`. All columns of both inputs by default.
        left: The name of the left input; by default the first input.
        right: The name of the right input; by default the second input.
        semantics: The system whose rules apply: `spark`.
        spark: The version of Spark, such as "4.1"; by default the installed PySpark's. Spark versions lose different
            rows if a batch removes its own rows from the state.

    Raises:
        BadInput: The version is unknown, a duration is invalid, or Spark refuses the type of join.
    """
    check_semantics("stream_join", semantics)
    delays = each_delay("stream_join", delay)
    sides = both_sides("stream_join", on) if on else ((), ())  # a missing `on` is reported later
    name = named("stream_join", join=join, on="+".join(sides[0]) or None, before=before, after=after, delay=delay)
    before_us = None if before is None else microseconds_of("stream_join: before", before)
    after_us = None if after is None else microseconds_of("stream_join: after", after)
    dialect = joins.dialect_of(version_of("stream_join", spark))
    made_of = None if columns is None else {to: column_names("stream_join", to, of) for to, of in columns.items()}

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        inputs = _inputs(name, streams, left, right)
        for stream, keys in zip(inputs, sides, strict=True):
            look_for(name, stream, keys)
            refuse_several_times(name, stream)
        if mode != "append":
            raise BadInput(f'{name}: Spark joins two streams only in append mode: use mode="append"')
        timed = [stream.time in dict(stream.plan.event_times) for stream in inputs]
        have = frozenset(side for side, has_watermark in zip(SIDES, timed, strict=True) if has_watermark)
        times = inputs[0].time, inputs[1].time
        if (before, after) != (None, None) and "" in times:
            raise BadInput(
                f"{name}: the rule before it keeps no event time: name an event time in columns= of the join"
            )
        rule = joins.StreamJoin(join, sides, times, before_us, after_us, watermarks=have, dialect=dialect)
        return _joined(name, rule, made_of, *inputs)

    reaches = {abs(reach_us) for reach_us in (before_us, after_us) if reach_us is not None}
    return Rule(name, delays, bind, sorted({*reaches, *delays.values()} - {0}))
