"""Run a `Logic` over the rows of each key on Spark, and return its changelog.

A processor receives packed rows by groups of keys, and stores the keys' state. Stages exchange packed messages; the
last stage's changes become columns. This module adds the clock (Spark's watermark), the order of arrival (which a
shuffle loses), and the declaration (which identifies a checkpoint) to Spark's plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from ...reference.definitions.aggregates import Aggregate
from ...reference.definitions.declarations import Definition
from .codec import Anything, require_supported, spark_type
from .columns import same_bits
from .ends import CLOCK, GROUP, SIDE, Pack, Regrouping, Unpack, packed_schema
from .inputs import OperatorInput, any_null, in_one_order, require_same
from .logic import BEFORE_ALL_TIMES, Logic
from .processor import PACKED, Hop, KeyedProcessor, Stage, StageInput
from .required import require_pyspark

STATE_GROUPS = 256
"""The default number of groups of keys of an operator."""
InitialState = DataFrame | Sequence[DataFrame] | None
"""The result of `read_state`; for an operator in stages one result per stage, first to last."""
STATEFUL = ("TransformWithState", "FlatMapGroups", "Aggregate", "Deduplicate", "Distinct", "Join")
"""The names of the operators in a logical plan that emit when the watermark moves."""


class StageOf(NamedTuple):
    """A stage of an operator.

    Attributes:
        logic: The logic of a key.
        inputs: The operator's inputs whose rows this stage processes.
        keys: The fields of the stage's keys.
        state: The fields of a key's packed state.
        hop: Returns the message that a change sends to the next stage; None for the last stage, whose changes are the
            result.
        messages: The type of the messages' content, a struct that begins with the fields of `SEEN`.
    """

    logic: Logic[Any]
    inputs: Sequence[OperatorInput]
    keys: Sequence[T.StructField]
    state: T.StructType
    hop: Hop | None = None
    messages: T.DataType | None = None


def keyed(
    inputs: Sequence[OperatorInput],
    logic: Logic[Any],
    *,
    state_type: T.StructType,
    value_type: T.DataType,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    report_dropped: bool = False,
    timed: bool = True,
    declaration: str | None = None,
) -> DataFrame:
    """Run a logic over the rows of each key, and return its changelog.

    **Chaining**: a changelog is a valid input of the next operator, with `order="place"`. The next operator then
    processes the changes as if each row had passed all operators before the next row arrived. Changes that the clock
    causes come before the rows of their batch. Another input beside a changelog needs only a plain order: a row comes
    before changes caused by a row with the same order. A null value deletes a table's row, and is ignored in a stream.
    A window stays in the result only as a part of the key, or of a value that isn't null. Filter out rows whose change
    is `dropped` first, because their value is null too.

    A streaming result is written in append or update mode, which are equivalent here; Spark refuses complete.

    All operators of a query have one clock, because Spark has one watermark. The clock follows the rows of the timed
    operator nearest the source (of the slowest source, if each source has a timed operator). Other rows don't move the
    clock. A change emitted on close lags behind the clock by its waiting time (for sessions more than gap + grace). The
    next timed operator needs additional grace for this lag.

    **Restarting**: a checkpoint belongs to a declaration. Under another declaration the query fails before the batch
    emits anything; the message contains both declarations.

    Args:
        inputs: The inputs; several inputs have keys of the same types.
        logic: The logic of a key.
        state_type: The fields of a key's packed state.
        value_type: The type of the changes' values.
        state_groups: The number of groups of keys; by default `STATE_GROUPS`. One task processes a group, and the
            group's keys share a binary in the state. The number stays the same for a checkpoint.
        initial_state: The initial state of a new checkpoint, from `read_state` of another checkpoint: with another
            `state_groups`, or another declaration that stores the same fields. The query of that checkpoint must have
            ended.
        report_dropped: Whether the changelog also contains dropped rows.
        timed: Whether the logic needs the clock and timers.
        declaration: The operator's `declaration_of`; with None no checkpoint is refused.

    Returns:
        The key's columns (named as in the first input), `window struct<start: timestamp, end: timestamp>` (null without
        windows), `value`, `timestamp timestamp`, `change string`, `reason string`, `cause` (the order column's value of
        the row that caused the change), `ordinal int`, the order of a key's changes within a batch, and `place`, a
        struct that can be the next operator's `order`.

    Raises:
        BadInput: `state_groups` isn't positive, the keys or orders of two inputs can't be compared, an input from a
            timed operator has its own watermark, or a batch DataFrame has an initial state. When the query runs:
            another declaration has written its checkpoint.
        MissingTool: PySpark is too old for the operators.
    """
    inputs = in_one_order(inputs)
    for other in inputs[1:]:
        require_same(inputs[0], other)
    return staged(
        [StageOf(logic, inputs, [field for _, field in inputs[0].keys], state_type)],
        value_type=value_type,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        timed=timed,
        declaration=declaration,
    )


def staged(
    stages: Sequence[StageOf],
    *,
    value_type: T.DataType,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    report_dropped: bool = False,
    timed: bool = False,
    declaration: str | None = None,
    processor: type[KeyedProcessor] = KeyedProcessor,
) -> DataFrame:
    """Run an operator of several stages; each stage reads its own inputs and the messages of the stage before.

    A batch delivers all its messages. A stage processes rows and messages in the order of `place`, as if each arrival
    had passed all stages before the next arrival. A message's `place` is the order of the row that caused the message,
    then the message's ordinal in each stage.

    Args:
        stages: The stages, first to last.
        value_type: As in `keyed`.
        state_groups: The number of groups of keys in each stage; see `keyed`.
        initial_state: An initial state for each stage; see `keyed`.
        report_dropped: As in `keyed`.
        timed: As in `keyed`; an operator of several stages has no clock.
        declaration: As in `keyed`.
        processor: The class of the processor that processes a group.

    Returns: The changelog, with `keyed`'s columns, by the key of the last stage. Between stages `place` contains the
    ordinals of all stages.

    Raises:
        BadInput: As `keyed`.
        MissingTool: As `keyed`.
    """
    require_pyspark()
    groups = STATE_GROUPS if state_groups is None else state_groups
    if groups < 1:
        raise BadInput(f"state_groups is {groups}: give a positive number, or None for {STATE_GROUPS}")
    inputs = [one for stage in stages for one in stage.inputs]
    for one in inputs:
        require_supported(f"{one.side} value".lstrip(), one.value_type)
    require_supported("value", value_type)
    streaming = any(one.frame.isStreaming for one in inputs)
    has_clock = [_has_clock(one) for one in inputs]  # a list, because _has_clock must check every input
    moves = streaming and timed and not any(has_clock)
    states = _initial_states(initial_state, len(stages), streaming)
    sent: DataFrame | None = None
    messages: T.DataType | None = None
    for number, stage in enumerate(stages):
        # -1 is before every ordinal, so that a row comes before the messages caused by rows with the same order.
        steps = [-1] * number if len(stages) > 1 else None
        order_type = _order_type(inputs[0], steps)
        sides = [] if messages is None else [StageInput("messages", order_type, messages)]
        rows = [] if sent is None else [sent.mapInArrow(Regrouping(groups), packed_schema(False))]
        for one in stage.inputs:
            rows.append(_packed(one, len(sides), stage.logic.keeps_null_keys, groups, moves, steps))
            sides.append(StageInput(one.side, _order_type(one, steps), one.value_type))
        packed = reduce(DataFrame.unionByName, rows)
        if moves:
            packed = packed.withColumn(CLOCK, F.timestamp_millis(CLOCK)).withWatermark(CLOCK, "0 seconds")
        served = Stage(
            stage.logic,
            sides,
            key=stage.keys,
            state=stage.state,
            hop=stage.hop if number + 1 < len(stages) else None,
            report_dropped=report_dropped,
            ended=not streaming,
            declaration=f"{declaration} with state_groups={groups}" if declaration and streaming else None,
        )
        sent = _served(packed, processor(served), timed, _regrouped(states[number], stage, groups) if states else None)
        messages = stage.messages
    assert sent is not None
    return _unpacked(sent, stages[-1].keys, value_type, order_type, len(stages) > 1)


def _served(packed: DataFrame, processor: KeyedProcessor, timed: bool, initial_state: GroupedData | None) -> DataFrame:
    """Run a stage's processor over its packed rows, group by group."""
    # Without a watermarked column in the operator's input Spark drops nothing itself, so the operator tests lateness.
    grouped = packed.select(SIDE, PACKED, GROUP).groupBy(GROUP)
    return grouped.transformWithState(
        statefulProcessor=processor,
        outputStructType=T.StructType().add(PACKED, "binary"),
        outputMode="Append",
        timeMode="EventTime" if timed else "None",
        initialState=initial_state,
    )


def _initial_states(given: InitialState, stages: int, streaming: bool) -> list[DataFrame]:
    """Return the initial state of each stage; empty without an initial state."""
    states = [given] if isinstance(given, DataFrame) else list(given or ())
    if states and len(states) != stages:
        raise BadInput(
            f"initial_state: {len(states)} given for {stages} stages: give a result of read_state for each, in order"
        )
    if states and not streaming:
        raise BadInput("initial_state: a batch DataFrame has no checkpoint to start from a state: leave it out")
    return states


def _order_type(source: OperatorInput, steps: Sequence[int] | None) -> T.DataType:
    """Return the type of the order in which a stage processes rows; each of `steps` adds the ordinal of a stage."""
    if steps is None:
        return source.order_type
    place = T.StructType().add("order", source.order_type).add("at", "long")
    return reduce(lambda kind, step: kind.add(f"step_{step}", "integer"), range(1, len(steps) + 1), place)


def _packed(
    source: OperatorInput,
    side: int,
    null_keys_move_the_clock: bool,
    groups: int,
    moves: bool,
    steps: Sequence[int] | None,
) -> DataFrame:
    """Pack the rows of an input."""
    timestamp, order = F.unix_millis(source.time), source.order
    if steps is not None:
        at = F.coalesce(timestamp, F.lit(BEFORE_ALL_TIMES))
        order = F.struct(order, at, *map(F.lit, steps))
    keys = [same_bits(column, field).alias(f"key_{number}") for number, (column, field) in enumerate(source.keys)]
    columns = [*keys, timestamp.alias("timestamp"), order.alias("order"), source.value.alias("value")]
    if moves:
        clock = timestamp if source.clock is None else F.unix_millis(source.clock)
        has_key = F.lit(True) if null_keys_move_the_clock else ~any_null([column for column, _ in source.keys])
        columns.append(F.when(has_key, clock).alias(CLOCK))
    kinds = [field.dataType for _, field in source.keys]
    pack = Pack(side, kinds, _order_type(source, steps), source.value_type, groups, moves, source.as_tuples)
    return source.frame.select(*columns).mapInArrow(pack, packed_schema(moves))


def _regrouped(state: DataFrame, stage: StageOf, groups: int) -> GroupedData:
    """Pack a state from another checkpoint into groups.

    Raises:
        BadInput: The state isn't a result of `read_state`, or its fields are of other types.
    """
    kinds = T.StructType().add("key", T.StructType([*stage.keys])).add("state", stage.state)
    found, wanted = T.StructType(state.schema.fields[:2]).simpleString(), kinds.simpleString()
    if found != wanted or "packed" not in state.columns:
        raise BadInput(
            f"initial_state: it contains {found}, but the operator stores {wanted}: give a result of read_state"
        )
    keys = [F.col(f"key.`{field.name}`").alias(f"key_{number}") for number, field in enumerate(stage.keys)]
    rows = state.select(
        *keys,
        F.unix_millis("closed").alias("timestamp"),
        F.lit(None).cast("long").alias("order"),
        F.col("packed").alias("value"),
    )
    pack = Pack(0, [field.dataType for field in stage.keys], T.LongType(), Anything(), groups, False, 0)
    return rows.mapInArrow(pack, packed_schema(False)).select(SIDE, PACKED, GROUP).groupBy(GROUP)


def _unpacked(
    sent: DataFrame, keys: Sequence[T.StructField], value_type: T.DataType, order_type: T.DataType, in_stages: bool
) -> DataFrame:
    """Unpack changes into the columns of a changelog."""
    names = [f"key_{number}" for number in range(len(keys))]
    columns: list[tuple[str, T.DataType]] = [
        *((name, field.dataType) for name, field in zip(names, keys, strict=True)),
        ("start", T.LongType()),
        ("end", T.LongType()),
        ("value", value_type),
        ("timestamp", T.LongType()),
        ("change", T.StringType()),
        ("reason", T.StringType()),
        ("cause", order_type),
        ("phase", T.IntegerType()),
        ("at", T.LongType()),
        ("ordinal", T.IntegerType()),
    ]
    schema = T.StructType([T.StructField(name, spark_type(kind)) for name, kind in columns])
    bounds = [F.timestamp_millis(name).alias(name) for name in ("start", "end")]
    # Order by key after `at`, because the changes that the clock emits at one time have no other order.
    place = [F.col("cause").alias("order"), "at", *names] if not in_stages else ["cause.*"]
    return sent.mapInArrow(Unpack(columns, len(keys)), schema).select(
        *(F.col(name).alias(field.name) for name, field in zip(names, keys, strict=True)),
        F.when(F.col("start").isNotNull(), F.struct(*bounds)).alias("window"),
        "value",
        F.timestamp_millis("timestamp").alias("timestamp"),
        "change",
        "reason",
        F.col("cause.order").alias("cause") if in_stages else "cause",
        "ordinal",
        F.struct("phase", *place, F.col("ordinal").alias("step")).alias("place"),
    )


def declaration_of(operator: str, definition: Definition, **further: Any) -> str:
    """Return an operator's declaration as text, which identifies the operator's checkpoints.

    Args:
        operator: The operator's name.
        definition: Its options.
        further: Further options on which the state depends; they may replace the definition's options.
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


def _has_clock(source: OperatorInput) -> bool:
    """Return whether an input comes from a timed operator, whose clock is then the query's clock.

    Raises:
        BadInput: The input has its own watermark after the timed operator.
    """
    return _clocks(source.frame._jdf.queryExecution().analyzed(), source.side)[1]


def _clocks(node: Any, side: str) -> tuple[bool, bool]:
    """Return whether a logical plan contains a watermark, and a stateful operator after a watermark."""
    children = node.children()
    below = [_clocks(children.apply(number), side) for number in range(children.size())]
    watermark, clock = any(one[0] for one in below), any(one[1] for one in below)
    name = node.nodeName()
    if name == "EventTimeWatermark":
        if clock:
            raise BadInput(
                f"{f'{side}: ' if side else ''}withWatermark comes after a timed operator: Spark would use the "
                "smaller watermark for the whole query, and closed windows would never be emitted; leave it out"
            )
        return True, False
    return watermark, clock or (watermark and node.isStreaming() and name.startswith(STATEFUL))
