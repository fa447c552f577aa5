"""The registration of dimensions of type 1: an event's row is JSON text, and its sequence, order and kind have
columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Record, Value
from ...reference.definitions.changes import Event, Scd1
from ..generators.values import any_kind
from ..registration.bindings import (
    OF_COHORT,
    VALUE,
    AskedOptions,
    Binding,
    Columns,
    Field,
    called,
    on_spark,
)
from ..registration.coverage import Coverage, accepted_records
from ..registration.domain import CHOICES, Domain, Number, number_of
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, MutantsOf, Registration
from ..registration.repeats import unchanged
from ..registration.shared import Shared, StageValue
from ..registration.sql import Options, Sql, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEQUENCE, TIE, DELETED = "sequence", "tie", "deleted"
"""The columns with an event's sequence, with its order among equal sequences, and whether the event deletes its row."""
KINDS = ("I", "U", "D")


def event_of(changes: Scd1, record: Record) -> Event | None:
    """Return a record as a change event; None if the record's value has no sequence."""
    return None if changes.is_nothing(record) else changes.event(record)


def fields_of(changes: Scd1, records: Sequence[Record]) -> list[Field]:
    """Return the columns of change events; a delete's columns contain its row, if the event contains the row."""

    def of_event(part: Callable[[Event], Any]) -> Callable[[Record, Any], Any]:
        def of(record: Record, prefixed: Any) -> Any:
            event = event_of(changes, record)
            return None if event is None else part(event)

        return of

    def row_of(record: Record, prefixed: Any) -> str | None:
        event = event_of(changes, record)
        row = record.value if event is None or event.row is None else event.value
        return None if row is None else json.dumps(row, sort_keys=True)

    return [
        Field(VALUE, pa.string(), row_of, holds="value"),
        Field(SEQUENCE, pa.int64(), of_event(lambda event: event.sequence)),
        Field(TIE, pa.int64(), of_event(lambda event: event.order)),
        Field(DELETED, pa.bool_(), of_event(lambda event: event.row is None)),
    ]


def called_with(changes: Scd1) -> dict[str, Any]:
    """Return the arguments that both kinds of dimensions have in addition to the arguments of every operator."""
    return {
        "value": VALUE,
        "sequence_by": changes.sequence_by and SEQUENCE,
        "deletes": changes.deletes and DELETED,
        "ties": changes.ties and TIE,
        "tombstones": None if changes.tombstone_ms is None else f"{changes.tombstone_ms} ms",
    }


def _build(
    changes: Scd1, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
) -> DataFrame:
    from ...spark_impl.scd1 import scd1

    return scd1(frame, **called_with(changes), **called(logic, state_groups, columns))


def content_of(changes: Scd1, record: Record, tracked: Callable[[Event], Any] = lambda event: None) -> StageValue:
    """Return a record in the form that the operator's logic on Spark receives: sequence, order, row, and tracked
    columns.
    """
    event = event_of(changes, record)
    if event is None:
        return StageValue((None, None, None, None))
    return StageValue((event.sequence, event.order, event.value, None if event.row is None else tracked(event)))


def needs_object(changes: Scd1) -> bool:
    """Return whether values must be objects, because the operator reads their fields."""
    named = (changes.sequence_by, changes.deletes, changes.columns, changes.ties, getattr(changes, "track", None))
    return any(one is not None for one in named)


def _value(changes: Scd1, side: str, value: Value, choice: int, near: int) -> Value:
    if choice == CHOICES - 1 or (choice >= CHOICES - 3 and changes.deletes is None):
        return None
    if not needs_object(changes):
        return value
    kind = "D" if choice >= CHOICES - 4 else KINDS[choice % 2]
    return {"v": value, "w": choice % 2, "seq": near + choice % 4, "n": choice % 3, "op": kind}


def _agreed(changes: Scd1, records: Sequence[Record]) -> list[Record]:
    """Return the events, but replace events of a key with equal sequence and order by copies of the first of them."""
    first: dict[Any, Value] = {}
    agreed = []
    for record in records:
        event = None if record.key is None else event_of(changes, record)
        agreed.append(record if event is None else record._replace(value=first.setdefault(event[:3], record.value)))
    return agreed


def _times(changes: Scd1) -> tuple[int, ...]:
    return () if changes.tombstone_ms is None else (changes.tombstone_ms,)


def _numbers(changes: Scd1) -> Iterator[Number]:
    if changes.tombstone_ms is not None:
        yield number_of(changes, "tombstone_ms")


def is_timed(changes: Scd1) -> bool:
    """Return whether the operator forgets deleted keys by the clock."""
    return changes.tombstone_ms is not None


def events_met(played: Played) -> Iterator[str]:
    """Return the kinds of change events in a history, as names of coverage goals."""
    changes: Any = played.definition
    before: dict[Any, list[Event]] = {}
    for record in accepted_records(played):
        event = changes.event(record)
        earlier = before.setdefault(event.key, [])
        newest = max(earlier, key=lambda one: one[1:3], default=None)
        if event in earlier:
            yield "event again"
        elif newest is None:
            if event.row is None:
                yield "missing row deleted"
        elif event[1:3] < newest[1:3]:
            yield "older event" if newest.row is not None else "event older than a delete"
        elif newest.row is None and event.row is not None:
            yield "row comes back"
        elif newest.row is not None:
            yield "row deleted" if event.row is None else "row changed"
        if any(one.sequence == event.sequence and one.order != event.order for one in earlier):
            yield "tie decided"
        earlier.append(event)


def event_goals(changes: Scd1) -> Iterator[str]:
    """Return the kinds of events that histories of a definition must contain."""
    yield from ("event again", "older event", "event older than a delete")
    yield from ("missing row deleted", "row comes back", "row deleted", "row changed")
    if changes.ties is not None:
        yield "tie decided"
    if changes.sequence_by is not None or changes.ties is not None:
        yield "dropped: null value"
    if is_timed(changes):
        yield "dropped: late"


def _met(history: History, played: Played) -> Iterator[str]:
    return events_met(played)


def _kept(options: Options) -> Callable[[Value], Value] | None:
    columns = options.get("columns")
    if columns is None:
        return None
    return lambda value: {name: value.get(name) for name in columns} if isinstance(value, Mapping) else value


FIELDS: Mapping[str, Any] = {"sequence_by": "seq", "deletes": {"op": "D"}}
PROFILES: Mapping[str, Options] = {
    "timestamps": {},
    "fields": {**FIELDS, "columns": ["v"]},
    "ties": {**FIELDS, "ties": "n"},
    "tombstones": {"tombstone_ms": 10},
}
VALUES: Mapping[str, Sequence[Any]] = {
    "sequence_by": (ABSENT, "seq"),
    "deletes": (ABSENT, {"op": "D"}),
    "columns": (ABSENT, ["v"], ["w", "v"]),
    "ties": (ABSENT, "n"),
    "tombstone_ms": (ABSENT, 0, 1, 10, 30),
}
ASKED = (
    AskedOptions({"tombstone_ms": 5}),
    AskedOptions({"deletes": {"op": "D"}, "ties": "n"}),
    AskedOptions({"tombstone_ms": 20}),
)

REGISTRATION = Registration(
    operator_named("scd1"),
    profiles=PROFILES,
    space=OptionSpace(VALUES),
    domain=Domain(
        lambda changes: _times(changes) or (10,),
        _times,
        value=_value,
        kinds=any_kind,
        variety={"events": 3},
        numbers=_numbers,
        by_clock=is_timed,
        agreed=_agreed,
    ),
    coverage=Coverage(_met, event_goals),
    free_order=lambda changes: FreeOrder.ANY,
    by_clock=is_timed,
    without_late_data={"tombstones": {"tombstone_ms": 1000}},
    repeats=unchanged,
    spark=Binding(
        _build,
        fields_of,
        shared=Shared(on_spark("scd1", "Scd1Logic"), content_of),
        typed=_build,
        asked=ASKED,
    ),
    sql=Sql(beside(__file__, "change_events.sql"), member=_kept, reads_values=True),
    unbounded="its rows stay, as a table's rows do, and its deleted keys for as long as they are remembered",
    mutants=MutantsOf("scd1"),
)
