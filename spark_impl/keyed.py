"""What the stateful operators share: how the rows of a key are brought to an operator's logic, and its changes away.

An operator is a `Logic`: pure Python, which takes one row of one key at a time. What Spark needs stands here: the order
of arrival, which the shuffle loses; the clock; one packed state and one useful timer for a group of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from ..reference.errors import BadInput
from .columns import NUMBERS, ColumnLike, key_columns, resolve, timestamp_column

END_OF_TIME = 2**62
UPDATE, TOMBSTONE, DROPPED = "update", "tombstone", "dropped"
STATE = "kept"
"""The name of the state variable; Spark's state data source reads it."""

Kept = TypeVar("Kept")
Key = tuple[Any, ...]


class Arrived(NamedTuple):
    """A row of one key, on one of the operator's inputs (ms)."""

    timestamp: int | None
    order: Any
    value: Any
    side: str = ""


class Told(NamedTuple):
    """A change of one key, or a row that was dropped (all ms); the bounds are those of its window, if it has one."""

    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


def changed(row: Arrived, value: Any, timestamp: int | None, window: tuple[int, int] | None = None) -> Told:
    """Give a change that a row sets off: an update, or a tombstone where the value is None."""
    start, end = window or (None, None)
    return Told(start, end, value, timestamp, TOMBSTONE if value is None else UPDATE, None, row.order)


def dropped(row: Arrived, reason: str) -> Told:
    """Give a row that isn't taken."""
    return Told(None, None, None, row.timestamp, DROPPED, reason, row.order)


class Logic(Generic[Kept]):
    """What happens to one key. Pure Python: no Spark, and no state but what it is handed."""

    keeps_null_keys = False

    def for_key(self, key: Key) -> Logic[Kept]:
        """Give what decides for this key: the same for all, unless seeded bugs travel together."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Put the rows of a batch into the order of arrival, which the shuffle has lost."""
        return sorted(rows, key=lambda row: (row.order, -1 if row.timestamp is None else row.timestamp))

    def empty(self) -> Kept:
        """Give the state of a key that has none."""
        raise NotImplementedError

    def pack(self, kept: Kept) -> tuple[Any, ...] | None:
        """Put a key's state into the fields of its state type; None where nothing is worth keeping."""
        raise NotImplementedError

    def unpack(self, fields: tuple[Any, ...]) -> Kept:
        """Undo `pack`."""
        raise NotImplementedError

    def take(self, key: Key, kept: Kept, row: Arrived, clock: int) -> list[Told]:
        """Take one row: change the state in place, and give what is to be told."""
        raise NotImplementedError

    def close(self, kept: Kept, told: int, clock: int) -> list[Told]:
        """Give what the clock's move from `told` to `clock` (ms) closes, and take it out of the state."""
        return []

    def keep(self, kept: Kept, told: int, clock: int) -> Kept:
        """Give the state without what is out of retention at `clock`, what isn't told yet excepted (ms)."""
        return kept

    def due(self, kept: Kept, clock: int) -> int | None:
        """Give when (ms) something is to be done next, after `clock`, or None."""
        return None


class Group(NamedTuple, Generic[Kept]):
    """The state of a group of keys, up to which clock its closings were told, and its pending timer (ms)."""

    keys: dict[Key, Kept]
    told: int
    timer: int | None


class KeyedProcessor(StatefulProcessor):
    """Carries a `Logic` through Spark: one packed value state and at most one useful timer for a group of keys."""

    def __init__(
        self,
        logic: Logic[Any],
        sides: list[str],
        key_width: int,
        state_type: T.StructType,
        change_names: list[str],
        report_dropped: bool,
        ended: bool,
    ) -> None:
        self.logic = logic
        self.sides = sides
        self.key_width = key_width
        self.state_type = state_type
        self.change_names = change_names
        self.report_dropped = report_dropped
        self.ended = ended

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.state = handle.getValueState(STATE, self.state_type)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Take the rows of a group, key by key, each key's in order of arrival."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        group, width = self.load(), self.key_width
        arrived: dict[Key, list[Arrived]] = {}
        for row in rows:
            timestamp, order, side = row[width : width + 3]
            arrival = Arrived(timestamp, order, row[width + 3 + side], self.sides[side])
            arrived.setdefault(tuple(row[:width]), []).append(arrival)
        changes: list[dict[str, Any]] = []
        if group.timer is not None and group.timer <= clock:
            # Served here, a timer that is due costs three round trips fewer than one that fires.
            self.handle.deleteTimer(group.timer)
            changes += self.closed(group, clock)
            group = Group(group.keys, max(group.told, clock), None)
        for key_of_row, of_key in arrived.items():
            logic = self.logic.for_key(key_of_row)
            kept = group.keys.get(key_of_row)
            if kept is None:
                kept = group.keys[key_of_row] = logic.empty()
            for arrival in logic.in_order(of_key):
                changes += self.named(key_of_row, self.taken(logic, key_of_row, kept, arrival, clock))
        if self.ended:
            changes += self.closed(group, END_OF_TIME)
        self.save(group, clock)
        return self.told(changes)

    def taken(self, logic: Logic[Any], key: Key, kept: Any, row: Arrived, clock: int) -> list[Told]:
        """Take a row, or drop what no operator can take."""
        if not logic.keeps_null_keys and any(part is None for part in key):
            return [dropped(row, "null key")]
        if row.timestamp is None:
            return [dropped(row, "null timestamp")]
        return logic.take(key, kept, row, clock)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Tell what the clock has closed, forget what the retention no longer keeps, and set the next timer."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        group = self.load()
        changes = self.closed(group, clock)
        self.save(Group(group.keys, max(group.told, clock), None), clock)
        return self.told(changes)

    def closed(self, group: Group[Any], clock: int) -> list[dict[str, Any]]:
        """Tell what closed in the group, by end (or timestamp, where there is no window), then key."""
        closed: list[tuple[int, Key, Told]] = []
        for key, kept in group.keys.items():
            end = 0
            for told in self.logic.for_key(key).close(kept, group.told, clock):
                # A key's own order is its logic's: of a joined window another end may count than the result's.
                end = max(end, (told.timestamp if told.end is None else told.end) or 0)
                closed.append((end, key, told))
        closed.sort(key=lambda one: one[:2])
        return [change for _, key, told in closed for change in self.named(key, [told])]

    def named(self, key: Key, told: Iterable[Told]) -> list[dict[str, Any]]:
        """Put changes into the form of the output's struct."""
        return [
            dict(zip(self.change_names, (*key, *change), strict=True))
            for change in told
            if self.report_dropped or change.change != DROPPED
        ]

    def told(self, changes: list[dict[str, Any]]) -> Iterator[Row]:
        """One row for the whole group: a row each would cost an Arrow batch each."""
        return iter([Row(changes=changes)] if changes else [])

    def load(self) -> Group[Any]:
        """Read the group's state."""
        found = self.state.get()
        if found is None:
            return Group({}, 0, None)
        groups, told, timer = found
        width = self.key_width
        keys = {
            tuple(fields[:width]): self.logic.for_key(tuple(fields[:width])).unpack(tuple(fields[width:]))
            for fields in groups
        }
        return Group(keys, told, timer)

    def save(self, group: Group[Any], clock: int) -> None:
        """Write the group's state, with a timer for what is due next; nothing kept, no state."""
        packed: list[tuple[Any, ...]] = []
        times: list[int] = []
        for key, kept in group.keys.items():
            logic = self.logic.for_key(key)
            kept = logic.keep(kept, group.told, clock)
            fields = logic.pack(kept)
            if fields is not None:
                packed.append((*key, *fields))
                due = logic.due(kept, clock)
                times += [] if due is None else [due]
        if not packed:
            self.state.clear()
            return
        timer, due = group.timer, min(times, default=None)
        if due is not None and (timer is None or due < timer):
            self.handle.registerTimer(due)
            timer = due
        self.state.update((packed, group.told, timer))

    def close(self) -> None:
        """Nothing to close."""


class Input(NamedTuple):
    """One input of an operator, resolved: its side, frame, key columns, event time, order and value.

    Rows whose `spread` (an int) differs needn't share a state: it keeps rows without a key from all going one way.
    """

    side: str
    frame: DataFrame
    keys: list[tuple[Column, T.StructField]]
    time: Column
    order: Column
    order_type: T.DataType
    value: Column
    value_type: T.DataType
    spread: Column | None = None


def resolved(
    frame: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike | None,
    order: ColumnLike | None = None,
    side: str = "",
) -> Input:
    """Find the columns of an input.

    Raises:
        BadInput: A column is missing or of the wrong type; the message names the parameter, the column and the remedy.
    """
    order_column, order_type = (F.lit(None).cast("bigint"), T.LongType()) if order is None else _order(frame, order)
    value_column, value_type = F.lit(None).cast("int"), T.DataType.fromDDL("int")
    if value is not None:
        value_column, field = resolve(frame, "value", value)
        value_type = field.dataType
    time = timestamp_column(frame, timestamp)
    return Input(side, frame, key_columns(frame, key), time, order_column, order_type, value_column, value_type)


def keyed(
    inputs: Sequence[Input],
    logic: Logic[Any],
    *,
    kept_type: T.StructType,
    value_type: T.DataType,
    state_groups: int | None = None,
    report_dropped: bool = False,
    timed: bool = True,
) -> DataFrame:
    """Run a logic over the rows of each key, and give its changelog.

    Args:
        inputs: The inputs; where there are several, their keys are of the same types.
        logic: What happens to a key.
        kept_type: The fields that a key's state is packed into.
        value_type: The type of the changes' values.
        state_groups: None keeps one state for each key; a number hashes the keys into so many groups, each of which is
            read and written whole.
        report_dropped: Whether rows that were dropped are told too.
        timed: Whether the logic needs the clock and timers.

    Returns:
        The key's columns (named as in the first input), `window struct<start: timestamp, end: timestamp>` (null where
        there is none), `value`, `timestamp timestamp`, `change string`, `reason string`, `cause` (the order column's
        value of the row that set the change off) and `ordinal int`, the order of a key's changes within a batch.

    Raises:
        BadInput: `state_groups` isn't positive, or two inputs clash.
    """
    if state_groups is not None and state_groups < 1:
        raise BadInput(f"state_groups is {state_groups}: give a positive number, or None for one state a key")
    first = inputs[0]
    for other in inputs[1:]:
        _require_same(first, other)
    names = [f"key_{number}" for number in range(len(first.keys))]
    streaming = any(one.frame.isStreaming for one in inputs)
    rows = _rows(inputs, 0, names, logic.keeps_null_keys)
    for place in range(1, len(inputs)):
        rows = rows.unionByName(_rows(inputs, place, names, logic.keeps_null_keys))
    if streaming and timed:
        rows = rows.withWatermark("clock", "0 seconds")
    grouping = names if all(one.spread is None for one in inputs) else [*names, "spread"]
    if state_groups is not None:
        hashed = F.pmod(F.xxhash64(*grouping), F.lit(state_groups)).cast("int").alias("state_group")
        rows, grouping = rows.select("*", hashed), ["state_group"]
    key_fields = [T.StructField(name, field.dataType) for name, (_, field) in zip(names, first.keys, strict=True)]
    change = T.StructType(
        [
            *key_fields,
            *T.StructType().add("start", "long").add("end", "long").add("value", value_type).fields,
            *T.StructType().add("timestamp", "long").add("change", "string").add("reason", "string").fields,
            T.StructField("cause", first.order_type),
        ]
    )
    of_key = T.StructType([*key_fields, *kept_type.fields])
    processor = KeyedProcessor(
        logic,
        sides=[one.side for one in inputs],
        key_width=len(first.keys),
        state_type=T.StructType().add("keys", T.ArrayType(of_key)).add("told", "long").add("timer", "long"),
        change_names=change.names,
        report_dropped=report_dropped,
        ended=not streaming,
    )
    # Without the watermarked column in the operator's input Spark drops nothing itself: lateness is the operator's.
    changes = (
        rows.drop("clock")
        .groupBy(*grouping)
        .transformWithState(
            statefulProcessor=processor,
            outputStructType=T.StructType().add("changes", T.ArrayType(change)),
            outputMode="Append",
            timeMode="EventTime" if timed else "None",
        )
    )
    told = changes.select(F.posexplode("changes").alias("ordinal", "told"))
    bounds = [F.timestamp_millis(f"told.{name}").alias(name) for name in ("start", "end")]
    return told.select(
        *(F.col(f"told.{name}").alias(field.name) for name, (_, field) in zip(names, first.keys, strict=True)),
        F.when(F.col("told.start").isNotNull(), F.struct(*bounds)).alias("window"),
        F.col("told.value").alias("value"),
        F.timestamp_millis("told.timestamp").alias("timestamp"),
        "told.change",
        "told.reason",
        "told.cause",
        "ordinal",
    )


def _rows(inputs: Sequence[Input], place: int, names: Sequence[str], null_keys_move_the_clock: bool) -> DataFrame:
    """The rows of one input, in the form that all share: each input's values have a column of their own."""
    one = inputs[place]
    values = [
        (one.value if number == place else F.lit(None).cast(other.value_type)).alias(f"value_{number}")
        for number, other in enumerate(inputs)
    ]
    keyed_rows = F.lit(True) if null_keys_move_the_clock else ~any_null([column for column, _ in one.keys])
    spread = F.lit(0) if one.spread is None else one.spread
    return one.frame.select(
        F.when(keyed_rows, one.time).alias("clock"),
        *(column.alias(name) for name, (column, _) in zip(names, one.keys, strict=True)),
        F.unix_millis(one.time).alias("timestamp"),
        one.order.alias("order"),
        F.lit(place).alias("side"),
        *values,
        *([] if all(other.spread is None for other in inputs) else [spread.alias("spread")]),
    )


def _require_same(first: Input, other: Input) -> None:
    kinds = [[field.dataType.simpleString() for _, field in one.keys] for one in (first, other)]
    if kinds[0] != kinds[1]:
        raise BadInput(
            f"key: {', '.join(kinds[0])} on the {first.side} and {', '.join(kinds[1])} on the {other.side} clash: cast "
            "one of them"
        )
    require_same_order(first, other)


def require_same_order(first: Input, other: Input) -> None:
    """Refuse two inputs whose orders of arrival can't be compared.

    Raises:
        BadInput: The message names both types.
    """
    if first.order_type != other.order_type:
        raise BadInput(
            f"order: {first.order_type.simpleString()} on the {first.side} and {other.order_type.simpleString()} on "
            f"the {other.side} clash: cast one of them, for the order of arrival goes across both"
        )


def two_sides(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    order: ColumnLike | None,
    right_key: ColumnLike | Sequence[ColumnLike] | None,
    right_timestamp: ColumnLike | None,
    right_value: ColumnLike | None,
    right_order: ColumnLike | None,
) -> list[Input]:
    """Find the columns of both inputs of a join; what isn't said of the right one is as on the left.

    Raises:
        BadInput: As `resolved`, with the side in the message.
    """

    def side_of(name: str, frame: DataFrame, **columns: Any) -> Input:
        try:
            return resolved(frame, side=name, **columns)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from None

    return [
        side_of("left", left, key=key, timestamp=timestamp, value=value, order=order),
        side_of(
            "right",
            right,
            key=key if right_key is None else right_key,
            timestamp=timestamp if right_timestamp is None else right_timestamp,
            value=value if right_value is None else right_value,
            order=order if right_order is None else right_order,
        ),
    ]


def joined_type(left: T.DataType, right: T.DataType) -> T.StructType:
    """Give the type of a joined value: `struct<left, right>`, null where a side is missing."""
    return T.StructType().add("left", left).add("right", right)


def joined(left: Any, right: Any) -> dict[str, Any]:
    """Give a joined value."""
    return {"left": left, "right": right}


def any_null(columns: list[Column]) -> Column:
    """Whether one of the columns is null."""
    null = F.lit(False)
    for column in columns:
        null = null | column.isNull()
    return null


def _order(frame: DataFrame, order: ColumnLike) -> tuple[Column, T.DataType]:
    column, field = resolve(frame, "order", order)
    if not isinstance(field.dataType, (*NUMBERS, T.StringType, T.TimestampType, T.DateType)):
        raise BadInput(
            f"order: the column {field.name!r} is {field.dataType.simpleString()}, which has no order: cast it"
        )
    return column, field.dataType
