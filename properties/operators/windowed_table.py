"""The registration of windowed tables: aggregated values have a column of their type; other values are JSON text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry, Played, play
from ...reference.core.records import Change, Key, Record, Value
from ...reference.definitions.aggregates import AGGREGATES
from ...reference.definitions.joins import JOINS
from ...reference.definitions.windows import WindowedTable
from ..generators.cohorts import clock_before
from ..generators.values import any_kind, kinds_taken
from ..outcomes.outcomes import Difference, FinalResult, Outcome, differences
from ..registration.bindings import (
    KEY,
    OF_COHORT,
    AskedOptions,
    Binding,
    Columns,
    Field,
    Native,
    NativeProfile,
    aggregated,
    aggregated_field,
    as_json,
    beside_inputs,
    from_aggregate,
    from_json,
    on_spark,
    side,
)
from ..registration.coverage import Coverage, accepted_records, changes_of
from ..registration.domain import CHOICES, Aligned, Domain, Number, number_of, table_row
from ..registration.kafka import Kafka, read_members
from ..registration.key_space import WATERMARK_DRIVER
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, KeyIndependence, MutantsOf, Registration, Retention, StoredTables
from ..registration.repeats import doubled, emitted_again
from ..registration.shared import Shared, StageValue
from ..registration.sql import Answer, Options, Sql, beside, pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..registration.shared import SharedOutput
    from ..witnesses.kafka.builder import Builder

RIGHT, WINDOW_START = "right_value", "window_start"
BIGINTS = range(-(2**63), 2**63)
_HOPPING = {"size_ms": 10, "step_ms": 5}


def _inputs(table: WindowedTable) -> tuple[str, ...]:
    """Return the inputs whose values the operator aggregates."""
    return ("events", "right") if table.with_ == "windowed_table" else ("events",)


def _fields(table: WindowedTable, records: Sequence[Record]) -> list[Field]:
    aggregate, inputs = table.aggregate, _inputs(table)
    of_aggregate = [record.value for record in records if record.key is not None and record.input in inputs]
    fields = [_on(inputs, aggregated_field(aggregate, of_aggregate))]
    if table.with_ in (None, "windowed_table"):
        return fields
    return [*fields, _on(("right",), as_json(RIGHT)), _on(("right",), Field(WINDOW_START, pa.int64(), _start(table)))]


def _on(inputs: Sequence[str], field: Field) -> Field:
    """Return a column that has values only in the rows of some inputs."""
    return field._replace(of=lambda record, prefixed: field.of(record, prefixed) if record.input in inputs else None)


def _start(table: WindowedTable) -> Callable[[Record, Callable[[Key], Key]], int | None]:
    def start_of(record: Record, prefixed: Callable[[Key], Key]) -> int | None:
        window = table.looked_up_window(record.value) if table.looked_up and record.value is not None else None
        return None if window is None else window[0]

    return start_of


def _common(table: WindowedTable) -> dict[str, Any]:
    return {
        "size": f"{table.size_ms} ms",
        "step": f"{table.step_ms} ms",
        "grace": f"{table.grace_ms} ms",
        "emit": table.emit,
        "to_stream": table.to_stream,
        "aggregate": table.aggregate.name,
    }


def _build(
    table: WindowedTable,
    frame: DataFrame,
    logic: Any,
    state_groups: int | None,
    retention: str | None = None,
    columns: Columns = OF_COHORT,
) -> DataFrame:
    from ...spark_impl.windowed_table import windowed_table

    alone, value = table.with_ is None, aggregated(table.aggregate)["value"]
    emitted = windowed_table(
        side(frame, "events", columns, value),
        None if alone else side(frame, "right", columns, value if table.with_ == "windowed_table" else RIGHT),
        **_common(table),
        with_=table.with_,
        join=None if alone else table.join,
        shift=f"{table.shift_ms} ms",
        window_start=WINDOW_START if table.looked_up else None,
        retention=retention,
        **beside_inputs(logic, state_groups, columns),
    )
    return _without_driver(table, emitted)


def _build_native(table: WindowedTable, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    from ...spark_impl.windowed_table import native_windowed_table

    events = side(frame, "events", value=aggregated(table.aggregate)["value"])
    return _without_driver(table, native_windowed_table(events, **_common(table)))


def _without_driver(table: WindowedTable, emitted: DataFrame) -> DataFrame:
    if table.to_stream != "window_in_key":
        return emitted
    from pyspark.sql import functions as F

    # Keep the reserved key's name, by which a cohort identifies the key.
    return emitted.filter(~F.col(KEY).startswith(f"{WATERMARK_DRIVER}@"))


def _decode(table: WindowedTable, value: Any) -> Value:
    if value is not None and table.to_stream == "window_in_value":
        window = value["window"]
        return {"value": _joined(table, value["value"]), "window": [window["start"], window["end"]]}
    return _joined(table, value)


def _joined(table: WindowedTable, value: Any) -> Value:
    if value is None or table.with_ is None:
        return from_aggregate(table.aggregate, value)
    left, right = value["left"], value["right"]
    if table.looked_up:
        return [from_json(left), from_aggregate(table.aggregate, right)]
    right = from_json(right) if table.with_ == "table" else from_aggregate(table.aggregate, right)
    return [from_aggregate(table.aggregate, left), right]


def _aggregated(options: Options) -> tuple[str, tuple[str, ...]]:
    inputs = ("events", "right") if options.get("with") == "windowed_table" else ("events",)
    return options.get("aggregate", "count"), inputs


def _is_stream(options: Options) -> bool:
    return options.get("with") == "stream_lookup" or options.get("to_stream") == "window_in_value"


def _start_named(options: Options) -> Callable[[Record], int | None] | None:
    """Return the function that reads the start (ms) of the window that a record looks up; None if the record looks up
    no window.
    """
    name = options.get("window_start")
    if name is None:
        return None

    def start(record: Record) -> int | None:
        found = None if record.input == "events" or record.value is None else record.value.get(name)
        return found if found is not None and found in BIGINTS else None

    return start


def _values(options: Options, answer: Answer) -> list[Value]:
    match options.get("with"):
        case None:
            return answer.aggregates("aggregate")
        case "table":
            return pairs(answer.aggregates("aggregate"), answer.records("record"))
        case "windowed_table":
            return pairs(answer.aggregates("aggregate"), answer.aggregates("other_aggregate"))
        case _:
            return pairs(answer.records("record"), answer.aggregates("aggregate"))


def _in_key(change: Change) -> Change:
    key, window, value, timestamp = change
    assert window is not None
    return Change(f"{key}@{window[0]}", None, value, timestamp)


def _in_value(change: Change) -> Change:
    key, window, value, timestamp = change
    return Change(key, None, {"value": value, "window": list(window or ())}, timestamp)


def _rekeyed(options: Options) -> Callable[[Change], Change] | None:
    return {None: None, "window_in_key": _in_key, "window_in_value": _in_value}[options.get("to_stream")]


def _topology(builder: Builder, windows: WindowedTable) -> Any:
    size, grace = builder.milliseconds(windows.size_ms), builder.milliseconds(windows.grace_ms)
    times = builder.dsl.TimeWindows.ofSizeAndGrace(size, grace).advanceBy(builder.milliseconds(windows.step_ms))

    def table(name: str) -> Any:
        windowed = builder.emitted_as(builder.grouped(name).windowedBy(times), windows.emit)
        retention = builder.retention(windows.emit, windows.size_ms + windows.grace_ms)
        return builder.suppressed(builder.aggregated(windowed, windows.aggregate, False, retention), windows.emit)

    if windows.with_ is None:
        return table("events")
    return builder.joined(windows.join, table("events"), table("right"), builder.joiner("\t", "", ""))


def _refused_by_kafka(table: WindowedTable, records: Sequence[Record]) -> Iterator[str]:
    if table.with_ not in (None, "windowed_table"):
        yield f"kafka has no join of a windowed table with {table.with_!r}: use none or windowed_table"
    if table.to_stream is not None:
        yield f"kafka has no to_stream {table.to_stream!r}: leave it out"
    if table.shift_ms:
        yield "kafka has no shift_ms: it joins windowed tables only on the same windows"


def _read(table: WindowedTable, key: Key | None, text: str) -> Value:
    if table.with_ is None:
        return read_members(table.aggregate, key, text)
    return [read_members(table.aggregate, key, side) for side in text.split("\t")]


def _value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    if side == "events" or definition.with_ == "windowed_table":
        return value
    if definition.with_ == "table":
        return table_row(definition, side, value, choice, near)
    if choice >= CHOICES - 2:
        return None
    # Look up windows near 0 or near an event's time, or a time 1 ms after a window's start, where no window starts.
    around = max(0, near // definition.step_ms - choice % 3)
    start = None if choice == CHOICES - 3 else (choice if choice % 2 else around) * definition.step_ms
    start = around * definition.step_ms + 1 if choice == CHOICES - 6 else start
    return {definition.window_start: start, "value": value}


def _kinds(table: WindowedTable, side: str) -> tuple[str, ...]:
    return kinds_taken(table.aggregate) if side in _inputs(table) else any_kind(table, side)


def _numbers(table: WindowedTable) -> Iterator[Number]:
    yield number_of(table, "size_ms", {"step_ms": table.step_ms})
    yield from (number_of(table, option) for option in ("step_ms", "grace_ms"))
    if table.with_ == "windowed_table":
        yield number_of(table, "shift_ms", apart=table.step_ms)  # windows start only at whole steps


def _met(history: History, played: Played) -> Iterator[str]:
    definition: Any = played.definition
    changes = changes_of(played)
    if any(len(definition.starts(record.timestamp)) > 1 for record in accepted_records(played)):
        yield "several windows"
    if changes:
        yield "window emitted"
    if definition.with_ is None:
        return
    values = [
        change.value["value"] if definition.to_stream == "window_in_value" else change.value for change in changes
    ]
    for value in values:
        yield "tombstone" if value is None else "unmatched row" if None in value else "both sides"


def _goals(table: WindowedTable) -> Iterator[str]:
    yield from ("window emitted", "dropped: late")
    if table.step_ms < table.size_ms:
        yield "several windows"
    if table.with_ is not None:
        yield "both sides"
        if table.join != "inner":
            yield "unmatched row"


def _is_of(table: WindowedTable, emitted: Key, key: Key) -> bool:
    # Split at the last @, which separates the window's start from the key: the key itself may contain an @.
    return key == (emitted.rpartition("@")[0] if table.to_stream == "window_in_key" else emitted)


def _repeats(table: WindowedTable, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult]:
    return (emitted_again() if table.is_stream else doubled)(table, once, twice)


def _retention_differences(history: History, retention_ms: int, outcome: Outcome) -> list[Difference]:
    reference = Outcome.of_play(history.name, play(history))
    return differences(_within(history, retention_ms, reference), _within(history, retention_ms, outcome))


def _within(history: History, retention_ms: int, outcome: Outcome) -> Outcome:
    """Return an outcome without windows beyond the retention, which the operator may have forgotten."""
    table: WindowedTable = operator_named(history.operator).declare(history.options)
    entries = []
    for entry in outcome.entries:
        end = _end_emitted(table, entry)
        if end is None or end + table.grace_ms + retention_ms > clock_before(history, entry.batch):
            entries.append(entry)
        elif table.looked_up and isinstance(entry.output, Change):
            # A row that looks up a window is always emitted, with or without the window.
            change = entry.output._replace(value=[entry.output.value[0], None], timestamp=0)
            entries.append(entry._replace(output=change))
    return replace(outcome, entries=entries)


def _end_emitted(table: WindowedTable, entry: Entry) -> int | None:
    """Return the end (ms) of the window that an entry refers to; None if the entry refers to no window."""
    change = entry.output
    if not isinstance(change, Change):
        return None
    if not table.looked_up:
        return None if change.window is None else change.window[1]
    window = None if change.value is None else table.looked_up_window(change.value[0])
    return None if window is None else window[1]


def _sides(history: History, retention_ms: int) -> Iterator[str]:
    table: WindowedTable = operator_named(history.operator).declare(history.options)
    for entry in play(history).entries:
        end, clock = _end_emitted(table, entry), clock_before(history, entry.batch)
        if end is not None and end + table.grace_ms <= clock:
            beyond = end + table.grace_ms + retention_ms <= clock
            yield "beyond the retention" if beyond else "within the retention"


def _content(table: WindowedTable, record: Record) -> StageValue:
    if record.input == "events" or table.with_ == "windowed_table" or record.value is None:
        return StageValue(record.value)
    window = table.looked_up_window(record.value) if table.looked_up else None
    return StageValue({"value": record.value, "start": None if window is None else window[0]})


def _shared_key(table: WindowedTable, change: SharedOutput) -> Key | None:
    key: Key | None = change.key[0]
    return f"{key}@{change.start}" if table.to_stream == "window_in_key" and change.start is not None else key


def _decoded(table: WindowedTable, change: SharedOutput) -> Value:
    value = change.value
    if value is not None and table.with_ is not None:
        value = [value["left"], value["right"]]
    if table.to_stream == "window_in_value" and change.start is not None:
        return {"value": value, "window": [change.start, change.end]}
    return value


def _are_windows(table: WindowedTable, fields: Sequence[Any]) -> bool:
    """Return whether a key's state contains windows of `events`, but nothing of the right input."""
    events, right, row = fields
    return bool(events) and not right and row is None


_ASKED = (
    AskedOptions({**_HOPPING, "grace_ms": 5, "with": "windowed_table", "join": "outer", "aggregate": "sum"}),
    AskedOptions({"size_ms": 10, "grace_ms": 5, "emit": "close", "aggregate": "list"}),
    AskedOptions({**_HOPPING, "with": "table", "aggregate": "sum"}),
)

REGISTRATION = Registration(
    operator_named("windowed_table"),
    profiles={
        "tumbling": {"size_ms": 10, "grace_ms": 5, "aggregate": "sum"},
        "hopping": {**_HOPPING, "aggregate": "list"},
        "close": {**_HOPPING, "grace_ms": 5, "emit": "close", "aggregate": "max"},
        "with table": {**_HOPPING, "with": "table"},
        "with table, close": {"size_ms": 10, "emit": "close", "with": "table", "to_stream": "window_in_key"},
        **{
            f"{join} with windowed table": {**_HOPPING, "grace_ms": 5, "with": "windowed_table", "join": join}
            for join in ("inner", "left", "outer")
        },
        **{
            f"{join}, shifted": {"size_ms": 10, "with": "windowed_table", "join": join, "shift_ms": shift}
            for join, shift in (("inner", -10), ("left", -10), ("outer", 10))
        },
        "outer, close": {"size_ms": 10, "with": "windowed_table", "join": "outer", "emit": "close"},
        "looked up by a stream": {**_HOPPING, "with": "stream_lookup", "window_start": "start"},
        "looked up by a table": {**_HOPPING, "with": "table_lookup", "window_start": "start"},
        "window in value": {**_HOPPING, "to_stream": "window_in_value"},
    },
    space=OptionSpace(
        {
            "with": (None, "table", "windowed_table", "stream_lookup", "table_lookup"),
            "join": (ABSENT, *JOINS),
            "size_ms": (1, 9, 10),
            "step_ms": (ABSENT, 1, 4, 5, 10),
            "shift_ms": (0, 4, 10, -10),
            "window_start": (ABSENT, "start"),
            "to_stream": (None, "window_in_key", "window_in_value"),
            "grace_ms": (0, 1, 5, 20),
            "aggregate": tuple(AGGREGATES),
            "emit": ("update", "close"),
        },
        independent=("grace_ms", "aggregate", "emit"),
    ),
    domain=Domain(
        lambda table: (table.size_ms, table.step_ms, abs(table.shift_ms)),
        lambda table: (table.size_ms + table.grace_ms, table.grace_ms),
        _value,
        kinds=_kinds,
        aligned=lambda table: (Aligned(table.step_ms, table.size_ms + table.grace_ms),),
        numbers=_numbers,
    ),
    coverage=Coverage(_met, _goals),
    free_order=lambda table: FreeOrder.ANY,
    by_clock=lambda table: True,
    # Profiles with look-ups are left out, because a look-up's result depends on the order of arrival.
    without_late_data={"close": {"grace_ms": 1000, "aggregate": "list"}, "outer, shifted": {"grace_ms": 1000}},
    repeats=_repeats,
    keeps_lists_in_order=lambda table: table.aggregate.ordered,
    key_independence=KeyIndependence(is_of=_is_of),
    spark=Binding(
        _build,
        _fields,
        _decode,
        shared=Shared(
            on_spark("windowed_table", "WindowedLogic"),
            _content,
            _decoded,
            _shared_key,
            lambda table: table.to_stream is None,
        ),
        typed=_build,
        asked=_ASKED,
    ),
    native=Native(
        on_spark("windowed_table", "require_native_windowed_table"),
        _build_native,
        "window emits the reference's results; a stream as a bag per batch",
        {
            # With size 9 and grace 3, a window closes at the clock 30; the clock 38 is 1 ms before the next closing.
            "tumbling": NativeProfile({"size_ms": 9, "grace_ms": 3, "aggregate": "sum", "emit": "close"}),
            "hopping, re-keyed": NativeProfile(
                {"size_ms": 10, "step_ms": 4, "aggregate": "list", "emit": "close", "to_stream": "window_in_value"}
            ),
        },
    ),
    sql=Sql(
        beside(__file__),
        _aggregated,
        number_named=_start_named,
        is_stream=_is_stream,
        values=_values,
        changed=_rekeyed,
    ),
    kafka=Kafka(
        _topology,
        _refused_by_kafka,
        clocks=lambda table: table.inputs,
        moves_all_clocks=True,
        is_windowed=True,
        is_text=False,
        read=_read,
        observed="KafkaWindowedTable",
    ),
    bounded_state=lambda table: table.with_ in (None, "windowed_table"),
    # The retention of 11 ms ends for some window exactly at a batch's clock.
    retention=Retention(
        dict.fromkeys(("with table", "looked up by a stream", "looked up by a table"), ({}, 11)),
        _build,
        _retention_differences,
        _sides,
    ),
    tables=StoredTables(
        lambda table: ("right",) if table.with_ in ("table", "table_lookup") else (),
        "the windows, because a later row may join them",
        _are_windows,
    ),
    unbounded="for windows that a stream may look up at any time",
    mutants=MutantsOf("windowed_table"),
)
