"""Process the keys of a group in Spark: unpack rows and state, keep one timer pending, and guard the checkpoint.

`streamproof check` runs this same code, so it checks the code that runs in production.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar
from zlib import crc32

from msgspec import Raw, Struct
from pyspark.sql import Row
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .codec import FORM, collect_seldom, decoder, encode, key_decoder, python_type
from .logic import (
    BEFORE_ALL_TIMES,
    DROPPED,
    END_OF_TIME,
    Arrived,
    Key,
    Logic,
    LogicOutput,
    dropped,
    key_of,
    with_one_nan,
)
from .pages import KEYS_OF_PAGE, Keys, Pages, Stored
from .required import StatefulProcessor, StatefulProcessorHandle, StatefulProcessorHandleState

PACKED, TIMER = "packed", "timer"
"""The fields of a group's state: its keys, and its timer (ms)."""
STATE = "keys"
"""The name of the state variable; Spark's state data source reads it."""
DECLARATION = "declaration"
"""The name of the state variable with the declaration, and on a second line the types of a key and its state."""
MAX_BYTES_OF_GROUP = 2**30
"""The largest size of a group's state (bytes): Spark copies it several times as one array."""
BEFORE, WITHIN, AFTER = -1, 0, 1
"""The phases of a batch: results closed by the clock at its start, its rows, results closed by the end of a history."""

Hop = Callable[[Key, LogicOutput], tuple[Key, Any]]
"""A function from a key and its change to the receiver's key in the next stage, and the message's content."""


@dataclass(frozen=True)
class StageInput:
    """An input of a stage.

    Attributes:
        name: The input's name in messages, such as `left`.
        order: The type of the input's order column.
        value: The type of the input's values.
    """

    name: str
    order: T.DataType
    value: T.DataType


@dataclass(frozen=True)
class Stage:
    """A stage of an operator, as a processor runs it.

    Attributes:
        logic: The logic of a key.
        sides: The stage's inputs.
        key: The fields of the stage's keys; if empty, keys may have any length and type.
        state: The fields of a key's packed state.
        hop: Returns the message that a change sends to the next stage; None if the changes are the operator's result.
        report_dropped: Whether the changelog also contains dropped rows.
        ended: Whether the input is a batch DataFrame: its history has ended, so all windows close.
        declaration: The declaration that identifies the stage's checkpoints; if None, no checkpoint is refused.
    """

    logic: Logic[Any]
    sides: Sequence[StageInput]
    key: Sequence[T.StructField]
    state: T.StructType
    hop: Hop | None = None
    report_dropped: bool = True
    ended: bool = False
    declaration: str | None = None


class Held(Struct, gc=False):
    """A key while its group is processed."""

    key: Key
    logic: Any
    state: Any
    emitted: int
    page: Keys


_HANDED_OVER = decoder(list[bytes], list[int], list[None], list[Raw])
KeyedOutput = tuple[bytes, LogicOutput, int, int | None]
"""A key's bytes, its change, the phase, and the time (ms) that caused the change."""


class KeyedProcessor(StatefulProcessor):
    """Runs a stage in Spark: the packed state of a group of keys, and at most one pending timer.

    Each key behaves as if it had its own state and timer. Every partition of the state also contains the declaration's
    text. A batch reads that text in each partition before the batch emits anything, even without a row or a timer.

    Attributes:
        keys_of_page: The maximum of the average number of keys per page of a group's state.
    """

    keys_of_page: ClassVar[int] = KEYS_OF_PAGE

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        stage = self.stage
        collect_seldom()
        self.handle = handle
        self.state = handle.getValueState(STATE, T.StructType().add(PACKED, "binary").add(TIMER, "long"))
        self.rows = [
            decoder(list[bytes], list[int | None], *(list[python_type(kind)] for kind in (side.order, side.value)))  # type: ignore[misc]
            for side in stage.sides
        ]
        self.fields = (
            decoder(*(python_type(field.dataType) for field in stage.state.fields))
            if stage.state.fields
            else decoder(Any, ...)
        )
        # cached, because the same keys recur within a batch
        read_key = key_decoder([field.dataType for field in stage.key]).decode
        self.key_of = lru_cache(100_000)(lambda of_key: key_of(read_key(of_key)))
        self.orders_with_floats = {
            number for number, side in enumerate(stage.sides) if re.search("float|double", side.order.simpleString())
        }
        if stage.declaration is not None:
            self.guard(handle, f"{stage.declaration}, form {FORM}".replace("\n", " "))

    def guard(self, handle: StatefulProcessorHandle, declaration: str) -> None:
        """Refuse a partition of the state that another declaration has written.

        Raises:
            BadInput: The message contains both declarations.
        """
        client = handle._statefulProcessorApiClient
        state = handle.getValueState(DECLARATION, T.StructType().add("text", "string"))
        if client.handle_state is StatefulProcessorHandleState.PRE_INIT:
            return  # Spark calls `init` on the driver too, where there is no state to compare
        types = T.StructType().add("key", T.StructType([*self.stage.key])).add("state", self.stage.state)
        # Spark has state per group, not per partition, so each partition stores the declaration under group 0.
        client.set_implicit_key((0,))
        found, _, stored = (state.get() or ("",))[0].partition("\n")
        if not found:
            state.update((f"{declaration}\n{types.json()}",))
        elif found != declaration:
            raise BadInput(
                f"the checkpoint was written by {found}, and can't continue as {declaration}: declare the operator as "
                "before, or give the query a new checkpointLocation"
            )
        # Compare only names and types, because a column's nullability and metadata may change.
        elif (before := T.StructType.fromJson(json.loads(stored)).simpleString()) != types.simpleString():
            raise BadInput(
                f"the checkpoint stores {before}, and can't continue with {types.simpleString()}: cast the columns to "
                "their earlier types, or give the query a new checkpointLocation"
            )
        client.remove_implicit_key()

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Process the rows of a group, key by key, each key's rows in order of arrival."""
        arrived: dict[bytes, list[Arrived]] = {}
        for side, packed, _ in rows:
            keys, *columns = self.rows[side].decode(packed)
            if side in self.orders_with_floats:
                columns[1] = with_one_nan(columns[1])
            for of_row, row in zip(keys, map(Arrived, *columns, repeat(self.stage.sides[side].name)), strict=False):
                of_key = arrived.get(of_row)
                if of_key is None:
                    arrived[of_row] = [row]
                else:
                    of_key.append(row)
        return self.serve(arrived, timerValues)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        """Store the keys of an initial state, which comes from another checkpoint."""
        found = self.state.get()
        packed, timer = (None, None) if found is None else found
        keys, closed, _, fields = _HANDED_OVER.decode(initialState[1])
        pages = Pages(packed, self.keys_of_page)
        held: dict[bytes, Held] = {}
        for of_key, emitted, own in zip(keys, closed, fields, strict=True):
            page = pages.page_of(of_key)
            page[of_key] = Stored(own, emitted, None)
            held[of_key] = self.held(of_key, page)
        self.save(pages, held, self.clock(timerValues), timer)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Emit the changes that the clock has closed, forget state past its retention, and set the next timer."""
        return self.serve({}, timerValues, has_fired=True)

    def serve(self, arrived: dict[bytes, list[Arrived]], timerValues: Any, has_fired: bool = False) -> Iterator[Row]:
        """Process the due keys of a group, then its rows; save the group, and emit its output as one row."""
        stage = self.stage
        clock = self.clock(timerValues)
        found = None if stage.ended else self.state.get()
        packed, timer = (None, None) if found is None else found
        pages = Pages(packed, self.keys_of_page)
        held: dict[bytes, Held] = {}
        for of_key, page in pages.due(clock) if timer is not None and timer <= clock else ():
            held[of_key] = self.held(of_key, page)
        changes = self.closed(held, clock, BEFORE)
        for of_key, rows in arrived.items():
            one = held.get(of_key)
            if one is None:
                one = held[of_key] = self.held(of_key, pages.page_of(of_key))
            logic, key, state = one.logic, one.key, one.state
            nullable = logic.keeps_null_keys or None not in key
            for row in logic.in_order(rows):
                if not nullable:
                    emitted = [dropped(row, "null key")]
                elif row.timestamp is None:
                    emitted = [dropped(row, "null timestamp")]
                else:
                    try:
                        emitted = logic.take(key, state, row, clock)
                    except Exception as error:
                        emitted = [self.failure(error)]
                for change in emitted:
                    changes.append((of_key, change, WITHIN, row.timestamp))
        if stage.ended:
            changes += self.closed(held, END_OF_TIME, AFTER)
        else:
            changes += self.save(pages, held, clock, None if has_fired else timer)
        return self.emitted(changes)

    def held(self, of_key: bytes, page: Keys) -> Held:
        """Unpack the state of a key on its page; make a new state if the page lacks the key."""
        key, stored = self.key_of(of_key), page.get(of_key)
        logic = self.stage.logic.for_key(key)
        if stored is None:
            return Held(key, logic, logic.empty(), BEFORE_ALL_TIMES if self.stage.ended else 0, page)
        return Held(key, logic, logic.unpack(self.fields.decode(stored.fields)), stored.emitted, page)

    def clock(self, timerValues: Any) -> int:
        """Return the largest event time of earlier batches (ms, at least 0); for a batch DataFrame the earliest time.

        No row is late in a batch DataFrame, even before 1970.
        """
        return BEFORE_ALL_TIMES if self.stage.ended else max(timerValues.getCurrentWatermarkInMs(), 0)

    def closed(self, held: dict[bytes, Held], clock: int, phase: int) -> list[KeyedOutput]:
        """Return the changes that the clock closes, by window end (or timestamp without a window), then key."""
        closed: list[tuple[int, Key, KeyedOutput]] = []
        for of_key, one in held.items():
            end = 0
            try:
                emitted = one.logic.close(one.state, one.emitted, clock)
            except Exception as error:
                emitted = [self.failure(error)]
            for change in emitted:
                # Keep the logic's order within a key, because a joined window's end may differ from the result's end.
                end = max(end, (change.timestamp if change.end is None else change.end) or 0)
                closed.append((end, one.key, (of_key, change, phase, end)))
            one.emitted = max(one.emitted, clock)
        closed.sort(key=lambda one: one[:2])
        return [change for _, _, change in closed]

    def save(self, pages: Pages, held: dict[bytes, Held], clock: int, timer: int | None) -> list[KeyedOutput]:
        """Store the processed keys, with a timer for the key that is due first; return the failures."""
        failed: list[KeyedOutput] = []
        for of_key, one in held.items():
            try:
                stored = self.stored(one, clock)
            except Exception as error:
                failed.append((of_key, self.failure(error), AFTER, None))
                stored = None
            if stored is not None:
                one.page[of_key] = stored
            else:
                one.page.pop(of_key, None)
        packed = pages.packed()
        first = None if packed is None else packed[1]
        if first != timer and timer is not None:
            self.handle.deleteTimer(timer)
        if first != timer and first is not None:
            self.handle.registerTimer(first)
        if packed is None:
            self.state.clear()
        elif len(packed[0]) > MAX_BYTES_OF_GROUP:
            raise BadInput(
                f"the state of a group of keys has {len(packed[0]) >> 20:,} MB, more than Spark's limit of "
                f"{MAX_BYTES_OF_GROUP >> 20:,} for a value: begin a new checkpoint with more state_groups, and "
                "initial_state=read_state(…) of this checkpoint"
            )
        else:
            self.state.update(packed)
        return failed

    def stored(self, held: Held, clock: int) -> Stored | None:
        """Pack the state of a processed key; None if there is nothing to store."""
        logic = held.logic
        state = logic.keep(held.state, held.emitted, clock)
        fields = logic.pack(state)
        if fields is None:
            return None
        due = logic.due(state, clock)
        if due is not None and due <= clock:
            raise ValueError(f"the timer {due} isn't after the watermark {clock}, as Spark requires")
        return Stored(Raw(encode(fields)), held.emitted, due)

    def failure(self, error: Exception) -> LogicOutput:
        """Handle an error of a logic: raise it, which ends the query."""
        raise error

    def emitted(self, changes: list[KeyedOutput]) -> Iterator[Row]:
        """Pack the changes of a group, by column, into one row."""
        if not self.stage.report_dropped:
            changes = [change for change in changes if change[1].change != DROPPED]
        if not changes:
            return iter(())
        return iter([Row(packed=encode(self.messages(changes) if self.stage.hop is not None else by_column(changes)))])

    def messages(self, changes: list[KeyedOutput]) -> tuple[Any, ...]:
        """Convert changes to messages: columns of their keys' hashes, keys, timestamps, places and values."""
        hop = self.stage.hop
        assert hop is not None
        rows = []
        for ordinal, (of_key, change, _, _) in enumerate(changes):
            key, value = hop(self.key_of(of_key), change)
            to = encode(key)
            # A message without a key needs no state, so any group can process it: the sender's hash spreads such
            # messages.
            hashed = crc32(of_key if None in key else to)
            message = (change.timestamp, change.reason, *value)
            rows.append((hashed, to, change.timestamp or 0, (*change.cause, ordinal), message))
        return tuple(zip(*rows, strict=True))


def by_column(changes: list[KeyedOutput]) -> tuple[Any, ...]:
    """Convert changes to columns: key, start, end, value, timestamp, change, reason, cause, phase, at."""
    emitted = [change[1] for change in changes]
    return (
        [change[0] for change in changes],
        [one.start for one in emitted],
        [one.end for one in emitted],
        [one.value for one in emitted],
        [one.timestamp for one in emitted],
        [one.change for one in emitted],
        [one.reason for one in emitted],
        [one.cause for one in emitted],
        [change[2] for change in changes],
        [change[3] for change in changes],
    )
