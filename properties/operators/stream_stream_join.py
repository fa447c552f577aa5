"""The registration of the stream-stream join; values are JSON text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played, play
from ...reference.core.records import Change, Record
from ...reference.definitions.joins import JOINS, StreamStreamJoin
from ..generators.cohorts import clock_schedule, record_batches, with_clock_advances
from ..generators.values import any_kind
from ..registration.bindings import (
    AskedOptions,
    Native,
    NativeProfile,
    both_sides,
    join_binding,
    on_spark,
)
from ..registration.coverage import Coverage, accepted_records, changes_of
from ..registration.domain import Domain, number_of, stream_value
from ..registration.kafka import Kafka, refuse_dropped_null_keys
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, MutantsOf, Registration
from ..registration.repeats import emitted_again
from ..registration.sql import Sql, always, beside, pair_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..witnesses.kafka.builder import Builder

LATE_ON_SPARK = "late on Spark alone"
_BOUNDS = {"before_ms": 4, "after_ms": 6}


def _common(join: StreamStreamJoin) -> dict[str, Any]:
    return {
        "before": f"{join.before_ms} ms",
        "after": f"{join.after_ms} ms",
        "grace": f"{join.grace_ms} ms",
        "join": join.join,
        "emit": join.emit,
        "null_key": join.null_key,
    }


def _build_native(join: StreamStreamJoin, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    from ...spark_impl.stream_stream_join import native_stream_stream_join

    return native_stream_stream_join(*both_sides(frame), **_common(join))


def _accepted_by_spark(history: History) -> History:
    """Return a history without the records that Spark's own join drops as late but the reference accepts.

    Spark drops a record at or before the watermark, which is the clock of earlier batches minus the grace.
    """
    grace_ms = operator_named(history.operator).declare(history.options).grace_ms
    schedule = clock_schedule(history)
    batches = record_batches(history)
    for number in range(1, len(batches)):
        edge = schedule[number - 1] - grace_ms
        batches[number] = [record for record in batches[number] if record.timestamp > edge]
    return replace(history, lines=with_clock_advances(batches, schedule))


def _met_by_native(history: History) -> Iterator[str]:
    if len(play(_accepted_by_spark(history)).accepted) < len(play(history).accepted):
        yield LATE_ON_SPARK


def _topology(builder: Builder, join: StreamStreamJoin) -> Any:
    before, after = builder.milliseconds(join.before_ms), builder.milliseconds(join.after_ms)
    grace = builder.milliseconds(join.grace_ms)
    if join.emit == "eager":
        within = builder.dsl.JoinWindows.of(before).after(after).grace(grace)
    else:
        within = builder.dsl.JoinWindows.ofTimeDifferenceAndGrace(before, grace).after(after)
    size_ms = join.before_ms + join.after_ms
    more = builder.stores_of_stream_join(size_ms, size_ms + join.grace_ms)
    return builder.joined(join.join, builder.stream("left"), builder.stream("right"), builder.joiner(), within, *more)


def _refused_by_kafka(join: StreamStreamJoin, records: Sequence[Record]) -> Iterable[str]:
    if (join.join, join.emit) == ("left", "arrival"):
        yield "kafka has no emit 'arrival': both sides drive its left join; use eager or close"
    yield from refuse_dropped_null_keys(join, records)


def _met(history: History, played: Played) -> Iterator[str]:
    definition: Any = played.definition
    changes, records = changes_of(played), accepted_records(played)
    pairs = [change for change in changes if None not in change.value]
    if pairs:
        yield "pair"
    if len(pairs) < len(changes):
        yield "unmatched row"
    arrivals = Counter(
        entry.arrival for entry in played.entries if isinstance(entry.output, Change) and None not in entry.output.value
    )
    if any(count > 1 for count in arrivals.values()):
        yield "several partners"
    lefts = [record for record in records if record.input == "left"]
    for right in (record for record in records if record.input == "right"):
        distances = {right.timestamp - left.timestamp for left in lefts if left.key == right.key}
        if distances & {definition.after_ms, -definition.before_ms}:
            yield "exact bound"
        if distances & {definition.after_ms + 1, -definition.before_ms - 1}:
            yield "bound + 1"


def _goals(join: StreamStreamJoin) -> Iterator[str]:
    yield from ("pair", "several partners", "exact bound", "bound + 1", "dropped: late", "dropped: null value")
    if join.join != "inner":
        yield "unmatched row"


_ASKED = (
    AskedOptions({**_BOUNDS, "join": "outer", "grace_ms": 5, "emit": "close"}),
    AskedOptions({**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "eager"}),
    AskedOptions({**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "close", "null_key": "keep"}),
)

REGISTRATION = Registration(
    operator_named("stream_stream_join"),
    profiles={
        "inner": {**_BOUNDS, "grace_ms": 5},
        "left, arrival": {**_BOUNDS, "join": "left", "grace_ms": 5},
        "left, eager": {**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "eager"},
        "left, close": {**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "close", "null_key": "keep"},
        "outer, eager": {**_BOUNDS, "join": "outer"},
        "outer, close": {**_BOUNDS, "join": "outer", "grace_ms": 5, "emit": "close", "null_key": "keep"},
        "symmetric": {"before_ms": 5, "after_ms": 5, "join": "outer", "emit": "close"},
    },
    space=OptionSpace(
        {
            "join": JOINS,
            "emit": (ABSENT, "arrival", "eager", "close"),
            "before_ms": (0, 1, 4, 5),
            "after_ms": (0, 1, 5, 6),
            "grace_ms": (0, 1, 5, 20),
            "null_key": ("drop", "keep"),
        },
        independent=("before_ms", "after_ms", "grace_ms", "null_key"),
    ),
    domain=Domain(
        lambda join: (join.before_ms, join.after_ms),
        lambda join: (join.after_ms + join.grace_ms, join.before_ms + join.grace_ms),
        stream_value,
        kinds=any_kind,
        numbers=lambda join: (number_of(join, option) for option in ("before_ms", "after_ms", "grace_ms")),
        by_clock=lambda join: True,
    ),
    coverage=Coverage(_met, _goals),
    free_order=lambda join: FreeOrder.ANY,
    by_clock=lambda join: True,
    # Profiles with `arrival` or `eager` are left out, because their output depends on the order of arrival.
    without_late_data={"outer, close": {"grace_ms": 1000}},
    # Two records that arrive twice make four pairs; an unmatched record that arrives twice makes two results.
    repeats=emitted_again(lambda value: 2 if None in value else 4),
    spark=join_binding("stream_stream_join", "StreamStreamLogic", _common, _ASKED),
    native=Native(
        on_spark("stream_stream_join", "require_native_stream_stream_join"),
        _build_native,
        "join emits the reference's results for its accepted records, as a bag per batch",
        {
            "inner": NativeProfile({**_BOUNDS, "grace_ms": 5}),
            "left": NativeProfile({**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "close"}),
            "outer": NativeProfile({"before_ms": 5, "after_ms": 5, "join": "outer", "emit": "close"}),
        },
        accepted=_accepted_by_spark,
        goals=(LATE_ON_SPARK,),
        met=_met_by_native,
    ),
    sql=Sql(beside(__file__), is_stream=always, values=pair_values),
    kafka=Kafka(_topology, _refused_by_kafka, clocks=lambda join: ("left",), observed="KafkaStreamStreamJoin"),
    bounded_state=lambda join: True,
    mutants=MutantsOf("stream_stream_join"),
)
