"""The rules of a join of two streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ....reference.core.errors import BadInput
from ....reference.spark import stream_join as joins
from ....reference.spark.durations import Duration, microseconds_of
from ...system.arguments import checked
from ...witnesses.run_options import Mode
from ..model import Row, Source
from .declared import (
    On,
    both_sides,
    check_semantics,
    column_names,
    delay_us_of,
    delays_of,
    look_for,
    named,
    only_input,
    version_of,
)
from .rule import Rule, Stage, Step

Sides: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Columns of the left and of the right input, in the same order."""
StreamJoinKind: TypeAlias = Literal["inner", "left", "right", "full", "left_semi"]


@dataclass(frozen=True)
class StreamJoin(Rule):
    """A join of two streams.

    Attributes:
        join: The kind.
        on: The columns of the key on each side.
        before_us: How long before the left row's time the right one's may be, in microseconds; None for any time.
        after_us: How long after it; None for any time.
        columns: What each column of the output is made of: columns as `input.column`, of which the first that isn't
            null counts; None for all columns of both sides.
        left: The name of the left input; None for the first.
        right: The name of the right input; None for the second.
        dialect: What the version of Spark does whose rules they are.
    """

    join: StreamJoinKind
    on: Sides
    before_us: int | None
    after_us: int | None
    columns: Mapping[str, tuple[str, ...]] | None
    left: str | None
    right: str | None
    dialect: joins.Dialect

    @property
    def distances_us(self) -> Sequence[int]:
        """Both ends of the time range, and the delays, in microseconds."""
        reaches = {abs(reach) for reach in (self.before_us, self.after_us) if reach is not None}
        return sorted({*reaches, *self.delays_us.values()} - {0})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        if len(sources) < 2:
            raise BadInput(f"{self.name} joins two inputs, and the job has {len(sources)}: give it a second one")
        left = only_input(self.name, sources, sources[0].name if self.left is None else self.left)
        right = only_input(self.name, sources, sources[1].name if self.right is None else self.right)
        for source, keys in zip((left, right), self.on, strict=True):
            look_for(self.name, source, keys)
        if mode != "append":
            raise BadInput(f'{self.name}: Spark joins two streams in append mode alone: use mode="append"')
        sides: tuple[tuple[joins.Side, Source], ...] = (("left", left), ("right", right))
        have = frozenset(side for side, source in sides if self.delay_us_of(source.name) is not None)
        times_of = (left.time, right.time)
        what = joins.StreamJoin(self.join, self.on, times_of, self.before_us, self.after_us, have, self.dialect)
        bounded = {side for side, _ in sides if what.reach_us(side) is not None}
        on = self.on if self.on[0] else _keys(left, right)
        needed = [] if self.on[0] else [f"on={_as_argument(on)}, the columns that are equal"]
        if (self.join in ("left", "right") and self.join not in bounded) or (self.join == "full" and not bounded):
            bound = "before" if self.join == "right" else "after"
            needed.append(
                f'{bound}="1 hour" and delay="10 minutes", for Spark takes an outer join only where both sides have a '
                "watermark and time is bounded"
            )
        twice = self._twice(left, right)
        if twice:
            suggested = json.dumps(self._suggested(left, right, on))
            named = f"column {twice[0]}" if len(twice) == 1 else f"columns {', '.join(twice)}"
            needed.append(f"columns={suggested}, with the job's names, for both inputs have the {named}")
        if needed:
            raise BadInput(f"{self.name}: give it {'; and '.join(needed)}")
        parts = self.parts(left, right)
        times = frozenset(name for name, of in parts.items() if any(column == sides[n][1].time for n, column in of))

        def shown(pair: joins.Pair) -> Row:
            values = {
                name: [row[column] for n, column in of if (row := pair[n]) is not None and row[column] is not None]
                for name, of in parts.items()
            }
            return {name: found[0] if found else None for name, found in values.items()}

        def start() -> Step:
            state = joins.State(what)

            def step(rows: Mapping[str, Sequence[Row]], late_ms: int, eviction_ms: int) -> list[Row]:
                sided = rows.get(left.name, ()), rows.get(right.name, ())
                return [shown(pair) for pair in state.batch(*sided, late_ms, eviction_ms)]

            return step

        why = "both sides have an event time"
        return [Stage(start, what.asks_for_batch_without_data, times, None, why)]

    def _twice(self, left: Source, right: Source) -> list[str]:
        """Return the columns that both sides have, where no columns of the output are named."""
        if self.columns is not None or self.join == "left_semi":
            return []
        return [name for name in left.schema.names if name in right.schema.names]

    def _suggested(self, left: Source, right: Source, on: Sides) -> dict[str, str | list[str]]:
        """Return columns of an output that has all of both sides, those that are equal once."""
        equal = [one for one, two in zip(*on, strict=False) if one == two]
        columns: dict[str, str | list[str]] = {}
        for source, other in ((left, right), (right, left)):
            for name in source.schema.names:
                if name in equal:
                    sides = {"right": [right], "full": [left, right]}.get(self.join, [left])
                    texts = [f"{side.name}.{name}" for side in sides]
                    columns[name] = texts if len(texts) > 1 else texts[0]
                else:
                    shown = f"{source.name}_{name}" if name in other.schema.names else name
                    columns[shown] = f"{source.name}.{name}"
        return columns

    def parts(self, left: Source, right: Source) -> dict[str, list[tuple[int, str]]]:
        """Return what each column of the output is made of: 0 or 1 for the side, and the column there."""
        sides = [left] if self.join == "left_semi" else [left, right]
        if self.columns is None:
            return {name: [(n, name)] for n, source in enumerate(sides) for name in source.schema.names}
        parts: dict[str, list[tuple[int, str]]] = {}
        for name, columns in self.columns.items():
            parts[name] = []
            for text in columns:
                found = [
                    (n, text.removeprefix(f"{source.name}."))
                    for n, source in enumerate(sides)
                    if text.startswith(f"{source.name}.")
                    and text.removeprefix(f"{source.name}.") in source.schema.names
                ]
                if not found:
                    known = ", ".join(f"{source.name}.{column}" for source in sides for column in source.schema.names)
                    raise BadInput(
                        f"{self.name}: the column {name!r} is {text!r}, and there is none: use some of {known}"
                    )
                parts[name] += found
        return parts


def _keys(left: Source, right: Source) -> Sides:
    """Return the columns that could be equal: those of the left key, where both sides have them, else of both keys."""
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
) -> StreamJoin:
    """Expect the join of two streams, where `right.time BETWEEN left.time - before AND left.time + after`.

    Args:
        join: `inner`, `left`, `right`, `full` or `left_semi`.
        on: The columns that are equal: their names, or those of the left and of the right input.
        before: How long before the left row the right one may be, such as "5 minutes"; any time by default.
        after: How long after it; any time by default.
        delay: The delay of both watermarks, or of each input's by its name.
        columns: The columns of the output: `{"user": "clicks.user", "shown_at": "views.at"}`; several for one, of which
            the first that isn't null counts, as `coalesce` has it. All columns of both inputs by default.
        left: The name of the left input; the first by default.
        right: The name of the right input; the second by default.
        semantics: Whose rules: `spark`.
        spark: Which version's, such as "4.1": versions differ in what a batch loses that evicts rows of its own. By
            default the installed PySpark's.

    Raises:
        BadInput: The version isn't one that is known, a duration can't be read, or Spark refuses the kind of join.
    """
    check_semantics("stream_join", semantics)
    if isinstance(delay, Mapping):
        delays = {name: delay_us_of("stream_join", f"the delay of {name}", one) for name, one in delay.items()}
    else:
        delays = delays_of("stream_join", delay)
    sides = both_sides("stream_join", on) if on else ((), ())  # which the check refuses with all else that is missing
    return StreamJoin(
        named("stream_join", join=join, on="+".join(sides[0]) or None, before=before, after=after, delay=delay),
        delays,
        join,
        sides,
        None if before is None else microseconds_of("stream_join: before", before),
        None if after is None else microseconds_of("stream_join: after", after),
        None if columns is None else {name: column_names("stream_join", name, of) for name, of in columns.items()},
        left,
        right,
        joins.dialect_of(version_of("stream_join", spark)),
    )
