"""The registration of dimensions of type 2: like the registration for type 1, with a further column of the tracked
fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Record
from ...reference.definitions.changes import OPEN, Event, Scd2
from ..registration.bindings import OF_COHORT, Binding, Columns, Field, called, on_spark
from ..registration.coverage import Coverage, changes_of
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import MutantsOf
from ..registration.shared import Shared, StageValue
from ..registration.sql import beside
from .scd1 import ASKED, PROFILES, VALUES, called_with, content_of, event_goals, event_of, events_met, fields_of
from .scd1 import REGISTRATION as SCD1

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRACKED = "tracked"
"""The column of the fields whose change starts a new version."""


def _tracked(changes: Scd2, event: Event) -> list[Any] | None:
    return None if changes.track is None else [event.value[name] for name in changes.track]


def _fields(changes: Scd2, records: Sequence[Record]) -> list[Field]:
    def tracked(record: Record, prefixed: Any) -> str | None:
        event = event_of(changes, record)
        return None if event is None or event.row is None else json.dumps(_tracked(changes, event), sort_keys=True)

    return [*fields_of(changes, records), Field(TRACKED, pa.string(), tracked)]


def _build(
    changes: Scd2, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
) -> DataFrame:
    from ...spark_impl.scd2 import scd2

    track = None if changes.track is None else TRACKED
    return scd2(frame, track=track, **called_with(changes), **called(logic, state_groups, columns))


def _content(changes: Scd2, record: Record) -> StageValue:
    return content_of(changes, record, lambda event: _tracked(changes, event))


def _met(history: History, played: Played) -> Iterator[str]:
    yield from events_met(played)
    present: set[Any] = set()
    for change in changes_of(played):
        assert change.window is not None
        if change.window[1] != OPEN:
            yield "version ended" if change.value is not None else "ended version changed"
        if change.value is None:
            present.discard(change[:2])
        elif change[:2] in present:
            yield "version with a newer row"
        else:
            present.add(change[:2])


def _goals(changes: Scd2) -> Iterator[str]:
    yield from event_goals(changes)
    yield from ("version ended", "ended version changed")
    if changes.track is not None:
        yield "version with a newer row"


REGISTRATION = replace(
    SCD1,
    operator=operator_named("scd2"),
    profiles={**PROFILES, "tracked": {**PROFILES["ties"], "track": ["v"]}},
    space=OptionSpace({**VALUES, "track": (ABSENT, ["v"])}),
    coverage=Coverage(_met, _goals),
    spark=Binding(
        _build,
        _fields,
        shared=Shared(on_spark("scd2", "Scd2Logic"), _content),
        typed=_build,
        asked=ASKED,
    ),
    sql=replace(SCD1.sql, statement=beside(__file__, "change_events.sql")) if SCD1.sql else None,
    mutants=MutantsOf("scd2"),
)
