"""The runtime of the stateful operators: it hands the rows of a key to an operator's logic, and emits its changes.

An operator is a `Logic`: pure Python, which takes one row of one key at a time. This module does what Spark needs: the
order of arrival, which the shuffle loses; the clock; one packed state and one timer for a group of keys; and a check of
checkpoints against the declaration.
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

from ...reference.core.errors import BadInput
from ...reference.definitions.aggregates import Aggregate
from ...reference.definitions.declarations import Definition
from .columns import KEY_TYPES, NUMBERS, WHOLE_NUMBERS, ColumnLike, key_columns, resolve, timestamp_column
from .required import StatefulProcessor, StatefulProcessorHandle, StatefulProcessorHandleState, require_pyspark

END_OF_TIME = 2**62
BEFORE_ALL_TIMES = -END_OF_TIME
# The names in a logical plan of operators that emit when the watermark moves.
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
"""The phases of a batch: what the clock closes at its start, its rows, and what the end of a history closes."""

State = TypeVar("State")
Key = tuple[Any, ...]


class Arrived(NamedTuple):
    """A row of one key, on one of the operator's inputs; its timestamp in ms."""

    timestamp: int | None
    order: Any
    value: Any
    side: str = ""


class Emitted(NamedTuple):
    """A change of one key, or a dropped row; `start` and `end` are those of its window, if it has one (all ms)."""

    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


def changed(row: Arrived, value: Any, timestamp: int | None, window: tuple[int, int] | None = None) -> Emitted:
    """Return a change that a row sets off.

    Args:
        row: The row.
        value: The new value; None makes a tombstone.
        timestamp: The change's timestamp (ms).
        window: `(start, end)` (ms), if the change has one.
    """
    start, end = window or (None, None)
    return Emitted(start, end, value, timestamp, TOMBSTONE if value is None else UPDATE, None, row.order)


def dropped(row: Arrived, reason: str) -> Emitted:
    """Return a row that isn't accepted, with the reason, such as `late`."""
    return Emitted(None, None, None, row.timestamp, DROPPED, reason, row.order)


def in_order_of(rows: list[Arrived], order: Callable[[Arrived], Any]) -> list[Arrived]:
    """Return rows sorted by `order`, field by field where it is a struct, null before all else."""
    try:
        return sorted(rows, key=order)
    except TypeError:
        # None and dicts can't be compared: such orders need the slower way.
        return sorted(rows, key=lambda row: _comparable(order(row)))


def _comparable(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_comparable, value.values()))
    return (1, *map(_comparable, value)) if isinstance(value, tuple) else (1, value)


def _has_struct(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType) or (isinstance(kind, T.ArrayType) and _has_struct(kind.elementType))


def _as_tuples(value: Any, kind: T.DataType) -> Any:
    """Return a value with tuples for structs: rows have dicts, the state has tuples, and Arrow takes only one kind."""
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        fields = [value.get(name) for name in kind.names] if isinstance(value, dict) else value
        return tuple(map(_as_tuples, fields, (field.dataType for field in kind.fields)))
    if isinstance(kind, T.ArrayType) and _has_struct(kind.elementType):
        return [_as_tuples(member, kind.elementType) for member in value]
    return value


class Logic(Generic[State]):
    """What happens to one key, in pure Python: no Spark, and no state but the one that it is given."""

    keeps_null_keys = False

    def for_key(self, key: Key) -> Logic[State]:
        """Return the logic for this key: the same for all keys, unless several mutants share a query."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Return the rows of a batch in order of arrival, which the shuffle has lost."""
        return in_order_of(rows, lambda row: (row.order, -1 if row.timestamp is None else row.timestamp))

    def empty(self) -> State:
        """Return the state of a new key."""
        raise NotImplementedError

    def pack(self, state: State) -> tuple[Any, ...] | None:
        """Return a key's state as the fields of its state type; None where there is nothing to store."""
        raise NotImplementedError

    def unpack(self, fields: tuple[Any, ...]) -> State:
        """Undo `pack`."""
        raise NotImplementedError

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[Emitted]:
        """Process one row: change the state in place, and return what is to be emitted.

        Args:
            key: The key, a tuple of its columns.
            state: The key's state.
            row: The row; its key and timestamp aren't null, unless `keeps_null_keys`.
            clock: The largest event time of earlier batches (ms).
        """
        raise NotImplementedError

    def close(self, state: State, emitted: int, clock: int) -> list[Emitted]:
        """Return what the clock has closed.

        Args:
            state: The key's state.
            emitted: The clock up to which closings have been emitted (ms).
            clock: The clock now (ms).
        """
        return []

    def keep(self, state: State, emitted: int, clock: int) -> State:
        """Return the state without what is emitted and out of retention; the arguments are those of `close`."""
        return state

    def due(self, state: State, clock: int) -> int | None:
        """Return when (ms), after `clock`, `close` or `keep` is needed next, or None."""
        return None


class Group(NamedTuple, Generic[State]):
    """The state of a group of keys, the clock up to which closings have been emitted, and the pending timer (ms)."""

    keys: dict[Key, State]
    emitted: int
    timer: int | None


class KeyedProcessor(StatefulProcessor):
    """Runs a `Logic` in Spark: one packed value state and at most one pending timer for a group of keys.

    Every partition of the state has the text of the declaration too. A batch reads it in each of them before it emits
    anything, even where there is no row and no timer.
    """

    def __init__(
        self,
        logic: Logic[Any],
        sides: list[str],
        key_width: int,
        group_type: T.StructType,
        change_names: list[str],
        report_dropped: bool,
        ended: bool,
        value_type: T.DataType | None = None,
        declaration: str | None = None,
    ) -> None:
        self.logic = logic
        self.sides = sides
        self.key_width = key_width
        self.group_type = group_type
        self.change_names = change_names
        self.report_dropped = report_dropped
        self.ended = ended
        self.value_type = value_type if value_type is not None and _has_struct(value_type) else None
        self.declaration = declaration

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.state = handle.getValueState(STATE, self.group_type)
        if self.declaration is not None:
            self.guard(handle, self.declaration)

    def guard(self, handle: StatefulProcessorHandle, declaration: str) -> None:
        """Refuse a partition of the state that was written under another declaration.

        Raises:
            BadInput: The message has both declarations.
        """
        declared = handle.getValueState(DECLARATION, T.StructType().add("text", "string"))
        client = handle._statefulProcessorApiClient
        if client.handle_state is StatefulProcessorHandleState.PRE_INIT:
            return  # on the driver, which has no state
        # Spark has no state of a partition: this is the state of a key that is the same everywhere.
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
        """Process the rows of a group, key by key, each key's in order of arrival."""
        clock = self.clock(timerValues)
        group, width = self.load(), self.key_width
        arrived: dict[Key, list[Arrived]] = {}
        for row in rows:
            timestamp, order, side = row[width : width + 3]
            arrival = Arrived(timestamp, order, row[width + 3 + side], self.sides[side])
            arrived.setdefault(tuple(row[:width]), []).append(arrival)
        changes: list[dict[str, Any]] = []
        if group.timer is not None and group.timer <= clock:
            # A due timer that is served here saves three round trips of one that fires.
            self.handle.deleteTimer(group.timer)
            changes += self.closed(group, clock)
            group = Group(group.keys, max(group.emitted, clock), None)
        for key_of_row, of_key in arrived.items():
            logic = self.logic.for_key(key_of_row)
            state = group.keys.get(key_of_row)
            if state is None:
                state = group.keys[key_of_row] = logic.empty()
            for arrival in logic.in_order(of_key):
                emitted = self.taken(logic, key_of_row, state, arrival, clock)
                changes += self.named(key_of_row, emitted, WITHIN, arrival.timestamp)
        if self.ended:
            changes += self.closed(group, END_OF_TIME, AFTER)
        self.save(group, clock)
        return self.emitted(changes)

    def clock(self, timerValues: Any) -> int:
        """Return the largest event time of earlier batches (ms): from 1970 on, as Spark's watermark; a batch has none.

        Nothing is late in a batch DataFrame, however long before 1970.
        """
        return BEFORE_ALL_TIMES if self.ended else max(timerValues.getCurrentWatermarkInMs(), 0)

    def taken(self, logic: Logic[Any], key: Key, state: Any, row: Arrived, clock: int) -> list[Emitted]:
        """Process a row, or drop one that no operator can process."""
        if not logic.keeps_null_keys and any(part is None for part in key):
            return [dropped(row, "null key")]
        if row.timestamp is None:
            return [dropped(row, "null timestamp")]
        return logic.take(key, state, row, clock)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit what the clock has closed, forget what is out of retention, and set the next timer."""
        clock = self.clock(timerValues)
        group = self.load()
        changes = self.closed(group, clock)
        self.save(Group(group.keys, max(group.emitted, clock), None), clock)
        return self.emitted(changes)

    def closed(self, group: Group[Any], clock: int, phase: int = BEFORE) -> list[dict[str, Any]]:
        """Return what has closed in the group, by end (or timestamp, where there is no window), then key."""
        closed: list[tuple[int, Key, Emitted]] = []
        for key, state in group.keys.items():
            end = 0
            for emitted in self.logic.for_key(key).close(state, group.emitted, clock):
                # Within a key the logic's order stays: a joined window may close by another end than the result's.
                end = max(end, (emitted.timestamp if emitted.end is None else emitted.end) or 0)
                closed.append((end, key, emitted))
        closed.sort(key=lambda one: one[:2])
        return [change for end, key, emitted in closed for change in self.named(key, [emitted], phase, end)]

    def named(self, key: Key, emitted: Iterable[Emitted], phase: int, at: int | None) -> list[dict[str, Any]]:
        """Return changes as rows of the output's struct, with the phase and the time (ms) that set them off."""
        if self.value_type is not None:
            emitted = [change._replace(value=_as_tuples(change.value, self.value_type)) for change in emitted]
        return [
            dict(zip(self.change_names, (*key, *change, phase, at), strict=True))
            for change in emitted
            if self.report_dropped or change.change != DROPPED
        ]

    def emitted(self, changes: list[dict[str, Any]]) -> Iterator[Row]:
        """Return one row for the whole group: with a row each, every change would cost an Arrow batch."""
        return iter([Row(changes=changes)] if changes else [])

    def load(self) -> Group[Any]:
        """Read the group's state."""
        found = self.state.get()
        if found is None:
            return Group({}, BEFORE_ALL_TIMES if self.ended else 0, None)
        groups, emitted, timer = found
        width = self.key_width
        keys = {
            tuple(fields[:width]): self.logic.for_key(tuple(fields[:width])).unpack(tuple(fields[width:]))
            for fields in groups
        }
        return Group(keys, emitted, timer)

    def save(self, group: Group[Any], clock: int) -> None:
        """Write the group's state, if there is any, with a timer for what is due next."""
        packed: list[tuple[Any, ...]] = []
        times: list[int] = []
        for key, state in group.keys.items():
            logic = self.logic.for_key(key)
            state = logic.keep(state, group.emitted, clock)
            fields = logic.pack(state)
            if fields is not None:
                packed.append((*key, *fields))
                due = logic.due(state, clock)
                times += [] if due is None else [due]
        if not packed:
            self.state.clear()
            return
        timer, due = group.timer, min(times, default=None)
        if due is not None and not self.ended and (timer is None or due < timer):
            self.handle.registerTimer(due)
            timer = due
        self.state.update((packed, group.emitted, timer))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Input(NamedTuple):
    """One input of an operator, resolved: its side, frame, key columns, event time, order and value.

    Rows whose `spread` (an int) differs needn't share a state: it distributes the rows without a key.
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
    """Return an input with its columns resolved.

    Args:
        frame: The input, streaming or batch.
        key: One or several columns.
        timestamp: Event time: a timestamp column, or a bigint column of ms since 1970.
        value: The value's column, if it has one.
        order: The order of arrival, such as an offset.
        side: The input's name, for messages.

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
    state_type: T.StructType,
    value_type: T.DataType,
    state_groups: int | None = None,
    report_dropped: bool = False,
    timed: bool = True,
    declaration: str | None = None,
) -> DataFrame:
    """Run a logic over the rows of each key, and return its changelog.

    **Chaining**: a changelog is a valid input of the next operator, with `order="place"`: the next one then takes the
    changes as if each row had passed all operators before the next row arrived; what the clock closes comes before the
    rows of its batch. Another input beside a changelog needs only a plain order: a row comes before the changes that a
    row of the same order has set off. A null value deletes a table's row, and a stream's row is left out; a window
    stays in the result only as a part of the key, or of a value that isn't null. Filter out rows whose change is
    `dropped` first, for their value is null too.

    A streaming result is written in append or update mode, which are the same here; Spark refuses complete.

    All operators of a query have one clock, for Spark has one watermark: it follows the rows of the timed operator
    nearest the source (of the slowest one, where several sources have one each), and other rows don't move it. What an
    operator emits on close is as far behind the clock as it has waited (for sessions more than gap + grace): the next
    timed operator needs so much more grace.

    **Restarting**: a checkpoint belongs to a declaration. Under another one the query fails before the batch emits
    anything, with both in its message.

    Args:
        inputs: The inputs; where there are several, their keys are of the same types.
        logic: What happens to a key.
        state_type: The fields of a key's packed state.
        value_type: The type of the changes' values.
        state_groups: None means one state for each key; a number hashes the keys into so many groups, each of which is
            read and written whole.
        report_dropped: Whether rows that were dropped are emitted too.
        timed: Whether the logic needs the clock and timers.
        declaration: The `declaration_of` the operator; with None no checkpoint is refused.

    Returns:
        The key's columns (named as in the first input), `window struct<start: timestamp, end: timestamp>` (null where
        there is none), `value`, `timestamp timestamp`, `change string`, `reason string`, `cause` (the order column's
        value of the row that set the change off), `ordinal int`, the order of a key's changes within a batch, and
        `place`, a struct that can be the next operator's `order`.

    Raises:
        BadInput: `state_groups` isn't positive, two inputs clash, or an input that comes from a timed operator has been
            given a watermark of its own. When the query runs: its checkpoint was written by another declaration.
        MissingTool: PySpark is too old for the operators.
    """
    require_pyspark()
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
    for index in range(1, len(inputs)):
        rows = rows.unionByName(_rows(inputs, index, names, logic.keeps_null_keys))
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
    of_key = T.StructType([*key_fields, *state_type.fields])
    processor = KeyedProcessor(
        logic,
        sides=[one.side for one in inputs],
        key_width=len(first.keys),
        group_type=T.StructType().add("keys", T.ArrayType(of_key)).add("emitted", "long").add("timer", "long"),
        change_names=change.names,
        report_dropped=report_dropped,
        ended=not streaming,
        value_type=value_type,
        declaration=f"{declaration} with state_groups={state_groups}" if declaration and streaming else None,
    )
    # Without the watermarked column in the operator's input Spark drops nothing itself: the operator tests lateness.
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
    emitted = changes.select(F.posexplode("changes").alias("ordinal", "emitted"))
    bounds = [F.timestamp_millis(f"emitted.{name}").alias(name) for name in ("start", "end")]
    return emitted.select(
        *(F.col(f"emitted.{name}").alias(field.name) for name, (_, field) in zip(names, first.keys, strict=True)),
        F.when(F.col("emitted.start").isNotNull(), F.struct(*bounds)).alias("window"),
        F.col("emitted.value").alias("value"),
        F.timestamp_millis("emitted.timestamp").alias("timestamp"),
        "emitted.change",
        "emitted.reason",
        "emitted.cause",
        "ordinal",
        # The keys order what the clock closes at one instant; of one row they are the same.
        F.struct(
            F.col("emitted.phase").alias("phase"),
            F.col("emitted.cause").alias("order"),
            F.col("emitted.at").alias("at"),
            *(F.col(f"emitted.{name}").alias(name) for name in names),
            F.col("ordinal").alias("step"),
        ).alias("place"),
    )


def _rows(inputs: Sequence[Input], index: int, names: Sequence[str], null_keys_move_the_clock: bool) -> DataFrame:
    """Return the rows of one input with the columns that all inputs share, and a value column for each input."""
    one = inputs[index]
    values = [
        (one.value if number == index else F.lit(None).cast(other.value_type)).alias(f"value_{number}")
        for number, other in enumerate(inputs)
    ]
    keyed_rows = F.lit(True) if null_keys_move_the_clock else ~any_null([column for column, _ in one.keys])
    spread = F.lit(0) if one.spread is None else one.spread
    return one.frame.select(
        F.when(keyed_rows, one.time).alias("clock"),
        *(column.alias(name) for name, (column, _) in zip(names, one.keys, strict=True)),
        F.unix_millis(one.time).alias("timestamp"),
        one.order.alias("order"),
        F.lit(index).alias("side"),
        *values,
        *([] if all(other.spread is None for other in inputs) else [spread.alias("spread")]),
    )


def declaration_of(operator: str, definition: Definition, **further: Any) -> str:
    """Return a declaration as the text by which its checkpoints are recognized.

    Args:
        operator: The operator's name.
        definition: Its options.
        further: What else the state depends on, or what replaces the definition's own options.
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
    """Whether there is a watermark in a logical plan, and whether there is a stateful operator after one."""
    children = node.children()
    below = [_clocks(children.apply(number), side) for number in range(children.size())]
    watermark, clock = any(one[0] for one in below), any(one[1] for one in below)
    name = node.nodeName()
    if name == "EventTimeWatermark":
        if clock:
            raise BadInput(
                f"{f'{side}: ' if side else ''}withWatermark comes after a timed operator: Spark would "
                "take the least of both watermarks for the whole query, and nothing would ever be emitted at close; "
                "leave it out"
            )
        return True, False
    return watermark, clock or (watermark and node.isStreaming() and name.startswith(STATEFUL))


def in_one_order(inputs: Sequence[Input]) -> list[Input]:
    """Return two inputs with comparable orders of arrival: a row comes before the changes that its order has set off.

    Raises:
        BadInput: Their orders are of types that can't be compared; the message names both.
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
    """A column with the order of arrival."""

    column: Column
    type: T.DataType


def _in_one_order(first: Order, other: Order) -> tuple[Column, Column, T.DataType] | None:
    """Return two orders as columns of one type, or None where they can't be compared."""
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
    """Return both inputs of a join with their columns resolved; right columns that aren't given are as on the left.

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
    """Return the type of a joined value: `struct<left, right>`, null where a side is missing."""
    return T.StructType().add("left", left).add("right", right)


def joined(left: Any, right: Any) -> dict[str, Any]:
    """Return a joined value."""
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
