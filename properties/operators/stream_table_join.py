"""The registration of the stream-table join; values are JSON text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Value
from ...reference.definitions.joins import StreamTableJoin
from ..generators.cohorts import clock_schedule, record_batches, with_clock_advances
from ..generators.values import any_kind
from ..registration.bindings import (
    AskedOptions,
    Native,
    NativeProfile,
    join_binding,
    side,
)
from ..registration.coverage import Coverage, accepted_records
from ..registration.domain import Domain, stream_value, table_row
from ..registration.kafka import Kafka, refuse_dropped_null_keys
from ..registration.options import OptionSpace
from ..registration.registration import MutantsOf, Registration, StoredTables
from ..registration.repeats import emitted_again
from ..registration.sql import Sql, always, beside, pair_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..witnesses.kafka.builder import Builder


def _common(join: StreamTableJoin) -> dict[str, Any]:
    return {"join": join.join, "null_key": join.null_key}


def _build_native(join: StreamTableJoin, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    from ...spark_impl.stream_table_join import native_stream_table_join

    still = frame.sparkSession.createDataFrame(pa.concat_tables(batches))
    return native_stream_table_join(side(frame, "left"), side(still, "right"), **_common(join))


def _check_history(history: History) -> None:
    looked_up = set()
    for record in history.records:
        if record.input == "left":
            looked_up.add(record.key)
        elif record.key in looked_up and record.key is not None:
            raise BadInput(
                f"{history.name}: the row of {record.key!r} changes after a record has looked it up, but Spark's "
                "own join looks up a static table: move the table's records to the start, or use --on spark"
            )


def _table_first(history: History) -> History:
    """Return a history with all changes of the table in the first batch, before the stream's records."""
    batches = record_batches(history)
    rows = [record for record in history.records if record.input == "right"]
    lefts = [[record for record in batch if record.input == "left"] for batch in batches]
    return replace(history, lines=with_clock_advances([[*rows, *lefts[0]], *lefts[1:]], clock_schedule(history)))


def _topology(builder: Builder, join: StreamTableJoin) -> Any:
    return builder.joined(join.join, builder.stream("left"), builder.table("right"), builder.joiner())


def _value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    drawn = stream_value if side == "left" else table_row
    return drawn(definition, side, value, choice, near)


def _met(history: History, played: Played) -> Iterator[str]:
    rows: dict[str | None, list[Any]] = defaultdict(list)
    for record in accepted_records(played):
        values = rows[record.key]
        if record.input == "right":
            values.append(record.value)
        elif values and values[-1] is not None:
            yield "row found"
        else:
            yield "row deleted before" if any(value is not None for value in values) else "row missing"


_ASKED = (AskedOptions({}), AskedOptions({"join": "inner"}), AskedOptions({"null_key": "keep"}))

REGISTRATION = Registration(
    operator_named("stream_table_join"),
    profiles={
        "left": {},
        "left, null keys kept": {"null_key": "keep"},
        "inner": {"join": "inner"},
    },
    space=OptionSpace({"join": ("left", "inner"), "null_key": ("drop", "keep")}),
    domain=Domain(value=_value, kinds=any_kind),
    coverage=Coverage(_met, lambda join: ("row found", "row missing", "row deleted before", "dropped: null value")),
    repeats=emitted_again(),
    spark=join_binding("stream_table_join", "StreamTableLogic", _common, _ASKED),
    native=Native(
        lambda join: None,
        _build_native,
        "join with a static table emits the reference's results, as a bag per batch",
        {
            "left": NativeProfile({}, without_late_data=True),
            "inner": NativeProfile({"join": "inner"}, without_late_data=True),
        },
        _check_history,
        _table_first,
    ),
    sql=Sql(beside(__file__), is_stream=always, values=pair_values),
    kafka=Kafka(_topology, refuse_dropped_null_keys),
    tables=StoredTables(lambda join: ("right",)),
    mutants=MutantsOf("stream_table_join"),
)
