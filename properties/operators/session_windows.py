"""The registration of session windows; the column of values has the type of the aggregate.

As in KIP-94, each record first forms its own session. A record that joins a session merges two sessions; a record
between two sessions merges three. A record can't merge more sessions, because open sessions of a key lie more than a
gap apart: three sessions would span more than the two gaps around a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference import session_windows as reference
from ...reference.core.clocks import Clock
from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played, play
from ...reference.core.records import Dropped, Output, Record
from ...reference.definitions.aggregates import AGGREGATES
from ...reference.definitions.windows import SessionWindows
from ..generators.values import kinds_of_aggregate
from ..registration.bindings import (
    KEYED,
    OF_COHORT,
    AskedOptions,
    Binding,
    Columns,
    Native,
    NativeProfile,
    aggregated,
    called,
    decode_aggregate,
    fields_of_aggregate,
    on_spark,
)
from ..registration.coverage import Coverage, changes_of
from ..registration.domain import Domain, Number, number_of
from ..registration.kafka import Kafka, read_aggregate
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, MutantsOf, Registration
from ..registration.repeats import doubled
from ..registration.shared import Shared
from ..registration.sql import Sql, aggregate_values, aggregated_events, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..witnesses.kafka.builder import Builder

MERGED = {"spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true"}
"""Spark's setting that makes Spark merge sessions also before the shuffle."""
CLOSED = "session closed and emitted"
RESCUED, EMPTY, THREE, BEYOND = "late rescued", "empty batch", "merge of three or more", "gap + 1"
GOALS = (
    "merge of two",
    THREE,
    "record inside a session",
    "exact gap",
    BEYOND,
    "dropped: late",
    RESCUED,
    "two keys",
    EMPTY,
    "same timestamp twice",
)
"""All coverage goals; some definitions can't meet all of them."""
_MERGES = ("merge of two", THREE, "exact gap", BEYOND)


def _common(windows: SessionWindows) -> dict[str, Any]:
    return {
        "gap": f"{windows.gap_ms} ms",
        "grace": f"{windows.grace_ms} ms",
        **aggregated(windows.aggregate),
    }


def _build(
    windows: SessionWindows, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
) -> DataFrame:
    from ...spark_impl.session_windows import session_windows

    return session_windows(
        frame,
        **_common(windows),
        retention=f"{windows.retention_ms} ms",
        emit=windows.emit,
        late=windows.late,
        **called(logic, state_groups, columns),
    )


def _check_native(windows: SessionWindows) -> None:
    if (windows.emit, windows.late) != ("close", "own"):
        raise BadInput(
            f"spark-native doesn't support emit={windows.emit!r}, late={windows.late!r}: Spark's session_window "
            'emits a session once, when it closes, and tests a record alone; use "emit": "close", "late": "own"'
        )


def _build_native(windows: SessionWindows, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    from ...spark_impl.session_windows import native_session_windows

    return native_session_windows(frame, **KEYED, **_common(windows))


def _topology(builder: Builder, windows: SessionWindows) -> Any:
    # Use a retention of gap + grace + 1 ms: with gap + grace, Kafka hides a stored session one step before its closing.
    # With a much longer retention, Kafka can revise a closed session.
    retention = builder.retention(windows.emit, windows.retention_ms, windows.gap_ms + windows.grace_ms + 1)
    gap, grace = builder.milliseconds(windows.gap_ms), builder.milliseconds(windows.grace_ms)
    windowed = builder.grouped("events").windowedBy(builder.dsl.SessionWindows.ofInactivityGapAndGrace(gap, grace))
    windowed = builder.emitted_as(windowed, windows.emit)
    return builder.suppressed(builder.aggregated(windowed, windows.aggregate, True, retention), windows.emit)


def _refused_by_kafka(windows: SessionWindows, records: Sequence[Record]) -> Iterator[str]:
    if windows.late == "own":
        yield "kafka has no late 'own': it tests lateness on the merged session"


def _numbers(windows: SessionWindows) -> Iterator[Number]:
    for option in ("gap_ms", "grace_ms"):
        # Raise the retention too, which must be at least gap + grace; it doesn't change the output.
        yield number_of(windows, option, {"retention_ms": windows.retention_ms + 1})


class _Watched(reference.Behaviour):
    """The reference's state machine, extended to record the coverage goals that a history meets."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.met: set[str] = set()
        self.seen: set[tuple[str, int]] = set()

    def arrive(self, record: Record) -> list[Output]:
        key, timestamp, gap = record.key, record.timestamp, self.windows.gap_ms
        if key is None:
            return super().arrive(record)
        self.clock.observe(timestamp)
        edge = self.windows.close_edge(self.clock.now)
        around = self.store.fetch(key, max(timestamp - gap - 1, edge), timestamp + gap + 1)
        outputs = super().arrive(record)
        if any(isinstance(output, Dropped) for output in outputs):
            return outputs
        apart = [max(session.start - timestamp, timestamp - session.end) for session in around]
        near = [session for session, distance in zip(around, apart, strict=True) if distance <= gap]
        noticed = {
            "merge of two": len(near) == 1 and near[0].window != (timestamp, timestamp),
            THREE: len(near) > 1,
            "record inside a session": any(session.start < timestamp < session.end for session in near),
            "exact gap": gap in apart,
            BEYOND: gap + 1 in apart,
            RESCUED: timestamp < edge,
            "same timestamp twice": (key, timestamp) in self.seen,
        }
        self.met.update(name for name, is_met in noticed.items() if is_met)
        self.seen.add((key, timestamp))
        return outputs


def _met(history: History, played: Played) -> Iterator[str]:
    watched: list[_Watched] = []

    def watch(windows: SessionWindows, clock: Clock) -> _Watched:
        watched.append(_Watched(windows, clock))
        return watched[0]

    play(history, watch)
    yield from watched[0].met
    if any(not any(isinstance(line, Record) for line in batch) for batch in history.batches):
        yield EMPTY
    if watched[0].windows.emit == "close" and changes_of(played):
        yield CLOSED


def _goals(windows: SessionWindows) -> Iterator[str]:
    impossible = {EMPTY}  # not required: a few histories may have no batch without records
    if windows.late == "own" or not windows.grace_ms:
        impossible.add(RESCUED)
    yield from (name for name in GOALS if name not in impossible)
    if windows.emit == "close":
        yield CLOSED


def _impossible_under_stream_time(windows: SessionWindows) -> tuple[str, ...]:
    # Without a grace, stream time closes a session before a later session of the key starts.
    return () if windows.grace_ms else (THREE, BEYOND)


_ASKED = (
    # A retention keeps closed sessions in the state; the clock of the last closings prevents repeated output.
    AskedOptions({"gap_ms": 10, "grace_ms": 5, "aggregate": "sum", "emit": "close", "retention_ms": 60}),
    AskedOptions({"gap_ms": 7, "grace_ms": 5, "aggregate": "max"}),
    AskedOptions({"gap_ms": 10, "aggregate": "list", "emit": "close", "late": "own"}),
)

REGISTRATION = Registration(
    operator_named("session_windows"),
    profiles={
        "update": {"gap_ms": 10, "grace_ms": 5, "aggregate": "list"},
        "close": {"gap_ms": 10, "grace_ms": 5, "aggregate": "sum", "emit": "close", "retention_ms": 60},
        "own": {"gap_ms": 7, "grace_ms": 0, "aggregate": "count", "late": "own"},
        "no grace": {"gap_ms": 10, "aggregate": "max"},
    },
    space=OptionSpace(
        {
            "gap_ms": (1, 5, 7, 10),
            "grace_ms": (0, 1, 5, 10, 30),
            "retention_ms": (ABSENT, 15, 60),
            "aggregate": tuple(AGGREGATES),
            "emit": ("update", "close"),
            "late": ("merged", "own"),
        },
        independent=("aggregate", "emit", "late"),
    ),
    domain=Domain(
        lambda windows: (windows.gap_ms,),
        lambda windows: (windows.gap_ms + windows.grace_ms,),
        kinds=kinds_of_aggregate,
        numbers=_numbers,
        by_clock=lambda windows: True,
        silent={"retention_ms": "a session is closed for good before it is forgotten"},
        is_plain=True,
    ),
    coverage=Coverage(
        _met,
        _goals,
        _impossible_under_stream_time,
        {"order": _MERGES, "cuts": _MERGES, "keys": ("dropped: late", RESCUED)},
    ),
    free_order=lambda windows: FreeOrder.ANY,
    by_clock=lambda windows: True,
    without_late_data={"update": {"grace_ms": 1000}},
    repeats=doubled,
    keeps_lists_in_order=lambda windows: windows.aggregate.ordered,
    spark=Binding(
        _build,
        fields_of_aggregate,
        decode_aggregate,
        shared=Shared(on_spark("session_windows", "SessionLogic")),
        typed=_build,
        asked=_ASKED,
    ),
    native=Native(
        _check_native,
        _build_native,
        "session_window emits the sessions that the reference closes",
        {
            "native": NativeProfile(
                {"gap_ms": 10, "grace_ms": 5, "aggregate": "count", "emit": "close", "late": "own"}
            ),
            "merged before the shuffle": NativeProfile(
                {"gap_ms": 10, "grace_ms": 1000, "aggregate": "max", "emit": "close", "late": "own"},
                MERGED,
                without_late_data=True,
            ),
        },
    ),
    sql=Sql(beside(__file__), aggregated_events, values=aggregate_values),
    kafka=Kafka(
        _topology,
        _refused_by_kafka,
        clocks=lambda windows: windows.inputs,
        is_windowed=True,
        is_text=False,
        read=read_aggregate,
        observed="KafkaSessionWindows",
    ),
    bounded_state=lambda windows: True,
    mutants=MutantsOf("session_windows"),
)
