"""Many definitions in one query: rows, state and changes travel as one binary each, and each key has its own logic.

A query costs seconds, whatever it carries. Here thousands of small histories of different operators, options and logics
share one: a row of the query is a message of many rows, and the state of a group is one value that holds many keys. The
codec is MessagePack, which executes nothing of what it reads. Nothing else differs from `keyed`: the logic, the clock,
the order of arrival, and a timer for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec.msgpack as codec
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from .keyed import STATE, Arrived, Emitted, Key, Logic, dropped
from .required import StatefulProcessor, StatefulProcessorHandle, require_pyspark

GROUP, CLOCK, STAGE, PACKED = "state_group", "clock", "stage", "packed"
"""The columns of a shared query: the group of keys, the clock (ms), the stage that a row is for, and packed rows."""

FAILED = "failed"
"""The change that says that a logic has raised; its reason is the error."""
OfKey = tuple[int, Key]
"""The number of a history, and a key of it."""
OfChange = tuple[OfKey, Emitted]
Hop = Callable[[Key, Emitted], tuple[Key, Any]]
"""Of a key of a stage and what it emitted: the key of the next stage that it is for, and what that takes as a value."""


@dataclass(frozen=True)
class SharedLogic:
    """What decides for a history in a shared query.

    Attributes:
        stages: The logic of each stage.
        hops: Between two stages: where a message goes, and its content.
    """

    stages: Sequence[Logic[Any]]
    hops: Sequence[Hop] = ()


class PackedRow(NamedTuple):
    """A row of a history, or a message to one of its keys.

    Attributes:
        history: The number of its history.
        key: The key, a tuple of its parts.
        timestamp: Event time (ms).
        order: The order of arrival; of an operator in stages the place, as a dict.
        side: The input.
        value: The value.
    """

    history: int
    key: Key
    timestamp: int
    order: Any
    side: str
    value: Any


class PackedChange(NamedTuple):
    """What was emitted for a key of a history; the other fields are those of `Emitted` (all times in ms)."""

    history: int
    key: Key
    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


class PackedState(NamedTuple):
    """What is stored of a key of a history.

    Attributes:
        history: The number of its history.
        key: The key, a tuple of its parts.
        fields: What its logic packed.
        emitted: The clock up to which closings have been emitted (ms).
        timer: When it is served next (ms), if that is known.
    """

    history: int
    key: Key
    fields: Sequence[Any]
    emitted: int
    timer: int | None


class _Rows(NamedTuple):
    """What a row of the query holds: rows for a stage, and changes that are finished."""

    rows: list[PackedRow]
    changes: list[PackedChange]


def pack_rows(rows: Iterable[PackedRow]) -> bytes:
    """Pack rows into one binary."""
    return codec.encode(_Rows(list(rows), []))


def unpack_changes(packed: bytes) -> list[PackedChange]:
    """Return the changes that a row of a shared query holds."""
    return _ROWS.decode(packed).changes


def unpack_state(packed: bytes) -> list[PackedState]:
    """Return what a group's binary in the state of a shared query holds, key by key.

    The binary is the field `packed` of the state variable `kept`, as Spark's state data source reads it.

    Raises:
        msgspec.DecodeError: It is none.
    """
    return _STATE.decode(packed)


# Keys come back as tuples, by these types.
_ROWS = codec.Decoder(_Rows)
_STATE = codec.Decoder(list[PackedState])


@dataclass
class _Held:
    """The state of a key while a group is served."""

    state: Any
    emitted: int
    timer: int | None


def failure(error: Exception) -> Emitted:
    """Return what stands for an error of a logic: it mustn't end the query, which serves others too."""
    return Emitted(None, None, None, None, FAILED, f"{type(error).__name__}: {error}", None)


class SharedProcessor(StatefulProcessor):
    """Runs one stage of each history's logic: one packed value state, and at most one pending timer, for a group.

    A key is served as if it had a state and a timer of its own: what has closed is emitted when its own timer is due.

    Args:
        logics: The logics.
        logic_of: For each history the index of its logic.
        stage: The number of the stage, from 0.
    """

    def __init__(self, logics: Sequence[SharedLogic], logic_of: Sequence[int], stage: int) -> None:
        self.logics = logics
        self.logic_of = logic_of
        self.stage = stage
        self.own: dict[int, Logic[Any]] = {}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.state = handle.getValueState(STATE, T.StructType().add(PACKED, "binary").add("timer", "long"))

    def logic(self, history: int) -> Logic[Any]:
        """Return what decides for a history in this stage: an object of its own, for mutants may remember something."""
        if history not in self.own:
            self.own[history] = copy(self.logics[self.logic_of[history]].stages[self.stage])
        return self.own[history]

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Process the rows of a group, key by key, each key's in order of arrival."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        held, timer = self.load()
        arrived: dict[OfKey, list[Arrived]] = {}
        finished: list[PackedChange] = []
        for row in rows:
            packed = _ROWS.decode(row[0])
            finished += packed.changes
            for history, own, timestamp, order, side, value in packed.rows:
                arrived.setdefault((history, own), []).append(Arrived(timestamp, order, value, side))
        served = {of_key for of_key, one in held.items() if one.timer is not None and one.timer <= clock}
        emitted = self.closed(held, served, clock)
        for of_key, arrivals in arrived.items():
            if of_key not in held:
                held[of_key] = _Held(self.logic(of_key[0]).empty(), 0, None)
            for arrival in self.logic(of_key[0]).in_order(arrivals):
                emitted += self.taken(of_key, held[of_key].state, arrival, clock)
        failed = self.save(held, served | arrived.keys(), timer, clock)
        return self.handed_on(key[0], emitted + failed, finished)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit what the clock has closed, forget what is out of retention, and set the next timer."""
        clock = max(timerValues.getCurrentWatermarkInMs(), 0)
        held, _ = self.load()
        served = {of_key for of_key, one in held.items() if one.timer is not None and one.timer <= clock}
        emitted = self.closed(held, served, clock)
        failed = self.save(held, served, None, clock)
        return self.handed_on(key[0], emitted + failed, [])

    def taken(self, of_key: OfKey, state: Any, row: Arrived, clock: int) -> list[OfChange]:
        """Process a row, or drop one that no operator can process."""
        logic, key = self.logic(of_key[0]), of_key[1]
        if not logic.keeps_null_keys and any(part is None for part in key):
            return [(of_key, dropped(row, "null key"))]
        try:
            return [(of_key, one) for one in logic.take(key, state, row, clock)]
        except Exception as error:
            return [(of_key, failure(error))]

    def closed(self, held: Mapping[OfKey, _Held], served: Iterable[OfKey], clock: int) -> list[OfChange]:
        """Return what has closed of the keys whose own timer is due, each key's in its logic's order."""
        emitted: list[OfChange] = []
        for of_key in served:
            one = held[of_key]
            try:
                emitted += [(of_key, change) for change in self.logic(of_key[0]).close(one.state, one.emitted, clock)]
            except Exception as error:
                emitted.append((of_key, failure(error)))
            one.emitted, one.timer = max(one.emitted, clock), None
        return emitted

    def handed_on(self, group: int, emitted: list[OfChange], finished: list[PackedChange]) -> Iterator[Row]:
        """Return one row for the whole group: messages to the next stage, and changes of those that have no further."""
        messages: list[PackedRow] = []
        for ordinal, ((history, key), change) in enumerate(emitted):
            logic = self.logics[self.logic_of[history]]
            if self.stage + 1 < len(logic.stages) and change.change != FAILED:
                to, content = logic.hops[self.stage](key, change)
                order = {**change.cause, f"step_{self.stage + 1}": ordinal}
                seen = {"timestamp": change.timestamp, "reason": change.reason, **content}
                messages.append(PackedRow(history, to, change.timestamp or 0, order, "messages", seen))
            else:
                if self.stage and change.change != FAILED:
                    change = change._replace(cause=change.cause["order"])
                finished.append(PackedChange(history, key, *change))
        if not messages and not finished:
            return iter(())
        return iter([Row(state_group=group, packed=codec.encode(_Rows(messages, finished)))])

    def load(self) -> tuple[dict[OfKey, _Held], int | None]:
        """Read the group's state."""
        found = self.state.get()
        if found is None:
            return {}, None
        packed, timer = found
        held = {}
        for history, key, fields, emitted, own in unpack_state(packed):
            held[history, key] = _Held(self.logic(history).unpack(tuple(fields)), emitted, own)
        return held, timer

    def save(
        self, held: Mapping[OfKey, _Held], served: Collection[OfKey], timer: int | None, clock: int
    ) -> list[OfChange]:
        """Write the group's state, if there is any, with a timer for the key that is due first; return failures."""
        packed: list[PackedState] = []
        failed: list[OfChange] = []
        for of_key, one in held.items():
            try:
                kept = self.packed(of_key, one, of_key in served, clock)
                packed += [] if kept is None else [kept]
            except Exception as error:
                failed.append((of_key, failure(error)))
        first = min((one.timer for one in packed if one.timer is not None), default=None)
        if first != timer and timer is not None:
            self.handle.deleteTimer(timer)
        if first != timer and first is not None:
            self.handle.registerTimer(first)
        if packed:
            self.state.update((codec.encode(packed), first))
        else:
            self.state.clear()
        return failed

    def packed(self, of_key: OfKey, one: _Held, is_served: bool, clock: int) -> PackedState | None:
        """Return what is to be stored of a key; one that isn't served stays as it is."""
        logic = self.logic(of_key[0])
        if is_served:
            one.state = logic.keep(one.state, one.emitted, clock)
            due = logic.due(one.state, clock)
            if due is not None and due <= clock:
                raise ValueError(f"the timer {due} isn't after the watermark {clock}, as Spark wants it")
            one.timer = due if one.timer is None or (due is not None and due < one.timer) else one.timer
        fields = logic.pack(one.state)
        return None if fields is None else PackedState(*of_key, fields, one.emitted, one.timer)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def shared(rows: DataFrame, logics: Sequence[SharedLogic], logic_of: Sequence[int]) -> DataFrame:
    """Run many histories, each by its own logic, in one query.

    Args:
        rows: Streaming, with the columns `state_group int`, `clock bigint` (ms), `stage int` (from 0) and
            `packed binary` (`pack_rows`; without rows where a row is there for the clock alone).
        logics: The logics. With stages, all messages of a stage reach the next one within the same batch.
        logic_of: For each history the index of its logic.

    Returns:
        `state_group int, packed binary`; see `unpack_changes`.
    """
    require_pyspark()
    stages = max((len(logic.stages) for logic in logics), default=1)
    if stages == 1:
        rows = rows.withColumn(CLOCK, F.timestamp_millis(CLOCK)).withWatermark(CLOCK, "0 seconds")
    emitted: DataFrame | None = None
    for stage in range(stages):
        # Without the watermarked column in the operator's input Spark drops nothing itself. A filter would go below the
        # watermark, which then wouldn't see the rows that it leaves out.
        own = (rows if stages == 1 else rows.filter(F.col(STAGE) == stage)).select(PACKED, GROUP)
        taken = own if emitted is None else own.unionByName(emitted)
        emitted = taken.groupBy(GROUP).transformWithState(
            statefulProcessor=SharedProcessor(logics, logic_of, stage),
            outputStructType=T.StructType().add(GROUP, "integer").add(PACKED, "binary"),
            outputMode="Append",
            timeMode="EventTime" if stages == 1 else "None",
        )
    assert emitted is not None
    return emitted
