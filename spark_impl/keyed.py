"""What the stateful operators share: how the rows of a key are brought to an operator's logic, and its changes away.

An operator is a `Logic`: pure Python, which takes one row of one key at a time. What Spark needs stands here: the order
of arrival, which the shuffle loses; the clock; one packed state and one useful timer for a group of keys; and a guard
against checkpoints of another declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState

from ..reference.aggregates import Aggregate
from ..reference.declarations import Definition
from ..reference.errors import BadInput
from .columns import KEY_TYPES, NUMBERS, WHOLE_NUMBERS, ColumnLike, key_columns, resolve, timestamp_column

END_OF_TIME = 2**62
# What an operator that stands on a watermark is called in a logical plan, if its results come at the clock's bidding.
STATEFUL = ("TransformWithState", "FlatMapGroups", "Aggregate", "Deduplicate", "Distinct", "Join")
UPDATE, TOMBSTONE, DROPPED = "update", "tombstone", "dropped"
STATE = "kept"
"""The name of the state variable; Spark's state data source reads it."""
DECLARATION = "declaration"
"""The name of the state variable that holds the declaration."""
_ANY: dict[type[T.DataType], Any] = {
    **dict.fromkeys(WHOLE_NUMBERS, 0),
    T.FloatType: 0.0,
    T.DoubleType: 0.0,
    T.StringType: "",
    T.BooleanType: False,
    T.DateType: date(1970, 1, 1),
    T.TimestampType: datetime(1970, 1, 1),
    T.TimestampNTZType: datetime(1970, 1, 1),
    T.DecimalType: Decimal(0),
}
"""A value of every type that a key may have."""
BEFORE, WITHIN, AFTER = -1, 0, 1
"""The phases of a batch: what the clock closes at its beginning, its rows, what the end of a history closes."""

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


def in_order_of(rows: list[Arrived], place: Callable[[Arrived], Any]) -> list[Arrived]:
    """Sort rows by what `place` gives for them, field by field where it is a struct, null before all else."""
    try:
        return sorted(rows, key=place)
    except TypeError:
        # Neither None nor a dict can be compared with its like: places need the slower way.
        return sorted(rows, key=lambda row: _comparable(place(row)))


def _comparable(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_comparable, value.values()))
    return (1, *map(_comparable, value)) if isinstance(value, tuple) else (1, value)


def _has_struct(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType) or (isinstance(kind, T.ArrayType) and _has_struct(kind.elementType))


def _as_tuples(value: Any, kind: T.DataType) -> Any:
    """Give a value with tuples for structs: from a row they come as dicts, from the state not, and Arrow takes one."""
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        fields = [value.get(name) for name in kind.names] if isinstance(value, dict) else value
        return tuple(map(_as_tuples, fields, (field.dataType for field in kind.fields)))
    if isinstance(kind, T.ArrayType) and _has_struct(kind.elementType):
        return [_as_tuples(member, kind.elementType) for member in value]
    return value


class Logic(Generic[Kept]):
    """What happens to one key. Pure Python: no Spark, and no state but what it is handed."""

    keeps_null_keys = False

    def for_key(self, key: Key) -> Logic[Kept]:
        """Give what decides for this key: the same for all, unless seeded bugs travel together."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Put the rows of a batch into the order of arrival, which the shuffle has lost."""
        return in_order_of(rows, lambda row: (row.order, -1 if row.timestamp is None else row.timestamp))

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
    """Carries a `Logic` through Spark: one packed value state and at most one useful timer for a group of keys.

    Every partition of the state has the text of the declaration, too. A batch reads it in each of them before it tells
    anything, also where no row and no timer is.
    """

    def __init__(
        self,
        logic: Logic[Any],
        sides: list[str],
        key_width: int,
        state_type: T.StructType,
        change_names: list[str],
        report_dropped: bool,
        ended: bool,
        value_type: T.DataType | None = None,
        declaration: str | None = None,
    ) -> None:
        self.logic = logic
        self.sides = sides
        self.key_width = key_width
        self.state_type = state_type
        self.change_names = change_names
        self.report_dropped = report_dropped
        self.ended = ended
        self.value_type = value_type if value_type is not None and _has_struct(value_type) else None
        self.declaration = declaration

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.state = handle.getValueState(STATE, self.state_type)
        if self.declaration is not None:
            self.guard(handle, self.declaration)

    def guard(self, handle: StatefulProcessorHandle, declaration: str) -> None:
        """Refuse a partition of state that another declaration has written.

        Raises:
            BadInput: The message has both declarations.
        """
        declared = handle.getValueState(DECLARATION, T.StructType().add("text", "string"))
        client = handle._statefulProcessorApiClient
        if client.handle_state is StatefulProcessorHandleState.PRE_INIT:
            return  # on the driver, which has no state
        # Spark has no state of a partition; one of a key that is the same everywhere does as well.
        client.set_implicit_key(tuple(_ANY[type(field.dataType)] for field in client.key_schema))
        found = declared.get()
        if found is None:
            declared.update((declaration,))
        elif found[0] != declaration:
            raise BadInput(
                f"the checkpoint was written by {found[0]}, and can't go on as {declaration}: declare the operator as "
                "before, or give the query a new checkpointLocation"
            )
        client.remove_implicit_key()

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
                told = self.taken(logic, key_of_row, kept, arrival, clock)
                changes += self.named(key_of_row, told, WITHIN, arrival.timestamp)
        if self.ended:
            changes += self.closed(group, END_OF_TIME, AFTER)
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

    def closed(self, group: Group[Any], clock: int, phase: int = BEFORE) -> list[dict[str, Any]]:
        """Tell what closed in the group, by end (or timestamp, where there is no window), then key."""
        closed: list[tuple[int, Key, Told]] = []
        for key, kept in group.keys.items():
            end = 0
            for told in self.logic.for_key(key).close(kept, group.told, clock):
                # A key's own order is its logic's: of a joined window another end may count than the result's.
                end = max(end, (told.timestamp if told.end is None else told.end) or 0)
                closed.append((end, key, told))
        closed.sort(key=lambda one: one[:2])
        return [change for end, key, told in closed for change in self.named(key, [told], phase, end)]

    def named(self, key: Key, told: Iterable[Told], phase: int, at: int | None) -> list[dict[str, Any]]:
        """Put changes into the form of the output's struct, with when they were set off: the phase, and at what ms."""
        if self.value_type is not None:
            told = [change._replace(value=_as_tuples(change.value, self.value_type)) for change in told]
        return [
            dict(zip(self.change_names, (*key, *change, phase, at), strict=True))
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
    declaration: str | None = None,
) -> DataFrame:
    """Run a logic over the rows of each key, and give its changelog.

    **Chaining**: a changelog is a valid input of the next operator, with `order="place"`: then the next one takes the
    changes as if each row had gone through all operators before the next row came; what the clock closes comes before
    the rows of its batch. Beside a changelog, another input's plain order is enough: a row comes before the changes
    that a row of the same order has set off. Where the value is null a table's row is deleted, and a stream's left out;
    a window stays in the result only as a part of the key, or of the value where that isn't null. Rows whose change is
    `dropped` are to be filtered out before, for their value is null too.

    A streaming result is written in append or update mode, which are the same here; Spark refuses complete.

    All operators of a query have one clock, for Spark has one watermark: it follows the rows of the timed operator
    nearest the source (of the slowest one, where several sources have one each), and other rows don't move it. What an
    operator tells at its close is behind the clock by as much as it waited (for sessions more than gap + grace): the
    next timed operator needs so much more grace.

    **Restarting**: a checkpoint belongs to a declaration. Under another one the query fails before the batch tells
    anything, with both in its message.

    Args:
        inputs: The inputs; where there are several, their keys are of the same types.
        logic: What happens to a key.
        kept_type: The fields that a key's state is packed into.
        value_type: The type of the changes' values.
        state_groups: None keeps one state for each key; a number hashes the keys into so many groups, each of which is
            read and written whole.
        report_dropped: Whether rows that were dropped are told too.
        timed: Whether the logic needs the clock and timers.
        declaration: What `declaration_of` gives for the operator; None leaves a checkpoint of others unrefused.

    Returns:
        The key's columns (named as in the first input), `window struct<start: timestamp, end: timestamp>` (null where
        there is none), `value`, `timestamp timestamp`, `change string`, `reason string`, `cause` (the order column's
        value of the row that set the change off), `ordinal int`, the order of a key's changes within a batch, and
        `place`, a struct that is the next operator's `order`.

    Raises:
        BadInput: `state_groups` isn't positive, two inputs clash, or an input that comes from a timed operator has been
            given a watermark of its own. When the query runs: its checkpoint was written by another declaration.
    """
    if state_groups is not None and state_groups < 1:
        raise BadInput(f"state_groups is {state_groups}: give a positive number, or None for one state a key")
    inputs = in_one_order(inputs)
    first = inputs[0]
    for other in inputs[1:]:
        require_same(first, other)
    names = [f"key_{number}" for number in range(len(first.keys))]
    streaming = any(one.frame.isStreaming for one in inputs)
    clocks = [_has_clock(one) for one in inputs]
    rows = _rows(inputs, 0, names, logic.keeps_null_keys)
    for place in range(1, len(inputs)):
        rows = rows.unionByName(_rows(inputs, place, names, logic.keeps_null_keys))
    if streaming and timed and not any(clocks):
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
            *T.StructType().add("phase", "integer").add("at", "long").fields,
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
        value_type=value_type,
        declaration=f"{declaration} with state_groups={state_groups}" if declaration and streaming else None,
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
        # The keys part what the clock closes at one instant; of one row they are the same.
        F.struct(
            F.col("told.phase").alias("phase"),
            F.col("told.cause").alias("order"),
            F.col("told.at").alias("at"),
            *(F.col(f"told.{name}").alias(name) for name in names),
            F.col("ordinal").alias("step"),
        ).alias("place"),
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


def declaration_of(operator: str, definition: Definition, **further: Any) -> str:
    """Give a declaration as a text, by which its checkpoints are known.

    Args:
        operator: The operator's name.
        definition: Its options.
        further: What else the state depends on, or is to be shown instead of the definition's own.
    """
    options = {
        field.name.removesuffix("_"): getattr(definition, field.name)
        for field in fields(definition)
        if not field.metadata.get("python_only")
    }
    shown = (
        f"{name}={value.name if isinstance(value, Aggregate) else value}" for name, value in (options | further).items()
    )
    return f"{operator}({', '.join(shown)})"


def _has_clock(one: Input) -> bool:
    """Whether an input comes from a timed operator, whose clock is then the query's.

    Raises:
        BadInput: It has been given a watermark of its own after that.
    """
    return _clocks(one.frame._jdf.queryExecution().analyzed(), one.side)[1]


def _clocks(node: Any, side: str) -> tuple[bool, bool]:
    """Whether there is a watermark in a logical plan, and whether a stateful operator stands on one."""
    children = node.children()
    below = [_clocks(children.apply(number), side) for number in range(children.size())]
    watermark, clock = any(one[0] for one in below), any(one[1] for one in below)
    name = node.nodeName()
    if name == "EventTimeWatermark":
        if clock:
            raise BadInput(
                f"{f'{side}: ' if side else ''}withWatermark stands on the result of a timed operator: Spark would "
                "take the least of both watermarks for the whole query, and what is told at its close would never be; "
                "leave it out"
            )
        return True, False
    return watermark, clock or (watermark and node.isStreaming() and name.startswith(STATEFUL))


def in_one_order(inputs: Sequence[Input]) -> list[Input]:
    """Make two inputs' orders of arrival comparable: a plain one goes before the changes set off at the same place.

    Raises:
        BadInput: Their orders are of different types all the same; the message names both.
    """
    if len(inputs) != 2 or inputs[0].order_type == inputs[1].order_type:
        return list(inputs)
    first, other = inputs
    orders = _in_one_order(*(Order(one.order, one.order_type) for one in inputs))
    if orders is None:
        require_same_order(first, other)
        return [first, other]
    return [one._replace(order=order, order_type=orders[2]) for one, order in zip(inputs, orders[:2], strict=True)]


class Order(NamedTuple):
    """A column that says in which order rows came."""

    column: Column
    type: T.DataType


def _in_one_order(first: Order, other: Order) -> tuple[Column, Column, T.DataType] | None:
    """Give two orders as columns of one type, or None where they can't be compared."""
    if first.type == other.type:
        return first.column, other.column, first.type
    if not _is_place(first.type) and not _is_place(other.type):
        return None
    orders = _in_one_order(*(_field(one, "order") if _is_place(one.type) else one for one in (first, other)))
    if orders is None:
        return None
    kind = T.StructType().add("phase", "integer").add("order", orders[2]).add("at", "long")
    sides = {"left": first, "right": other}
    for name, one in sides.items():
        kind = kind.add(name, one.type) if _is_place(one.type) else kind
    places = []
    for (name, one), order in zip(sides.items(), orders[:2], strict=True):
        known = {"phase": F.lit(WITHIN), "order": order}
        if _is_place(one.type):
            known |= {"phase": one.column["phase"], "at": one.column["at"], name: one.column}
        filled = (known.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name) for field in kind.fields)
        places.append(F.struct(*filled))
    return places[0], places[1], kind


def _field(one: Order, name: str) -> Order:
    assert isinstance(one.type, T.StructType)
    return Order(one.column[name], one.type[name].dataType)


def _is_place(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType) and {"phase", "order", "at"} <= set(kind.names)


def require_same(first: Input, other: Input) -> None:
    """Refuse two inputs whose keys, or orders of arrival, can't be compared.

    Raises:
        BadInput: The message names both types.
    """
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

    sides = [
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
    return in_one_order(sides)


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
    if not _has_order(field.dataType):
        raise BadInput(
            f"order: the column {field.name!r} is {field.dataType.simpleString()}, which has no order: cast it"
        )
    return column, field.dataType


def _has_order(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_has_order(field.dataType) or isinstance(field.dataType, KEY_TYPES) for field in kind.fields)
    return isinstance(kind, (*NUMBERS, T.StringType, T.TimestampType, T.DateType))
