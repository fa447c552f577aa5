"""The registration of Samza's window operator; the column of values has the aggregate's type, or is JSON text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Record, Value
from ...reference.definitions.aggregates import AGGREGATES_OF_SAMZA
from ...reference.definitions.windows import WindowAggregate
from ..generators.values import kinds_taken
from ..outcomes.outcomes import FinalResult, Outcome
from ..registration.bindings import (
    KEYED,
    OF_COHORT,
    ORDER,
    VALUE,
    AskedOptions,
    Binding,
    Columns,
    Field,
    Native,
    NativeProfile,
    aggregated,
    as_json,
    called,
    decode_aggregate,
    fields_of_aggregate,
    from_json,
    on_spark,
)
from ..registration.coverage import Coverage, accepted_records, changes_of
from ..registration.domain import Aligned, Domain, Number, number_of
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import FreeOrder, MutantsOf, Registration
from ..registration.repeats import doubled
from ..registration.shared import Shared
from ..registration.sql import Answer, Options, Sql, aggregated_events, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _fields(windows: WindowAggregate, records: Sequence[Record]) -> list[Field]:
    return [as_json()] if windows.storage == "full" else fields_of_aggregate(windows, records)


def _build(
    windows: WindowAggregate, frame: DataFrame, logic: Any, state_groups: int | None, columns: Columns = OF_COHORT
) -> DataFrame:
    from ...spark_impl.window_aggregate import window_aggregate

    early = windows.early

    def length(number: int) -> int | str:
        return number if windows.unit == "tuple" else f"{number} ms"

    return window_aggregate(
        frame,
        size=length(windows.size),
        value=None if windows.storage == "aggregate" and windows.aggregate.name == "count" else VALUE,
        aggregate=windows.aggregate.name,
        type=windows.type,
        unit=windows.unit,
        step=None if windows.type == "session" else length(windows.step),
        retention=f"{windows.retention_ms} ms",
        storage=windows.storage,
        early=None if early is None else early.every_tuples or f"{early.every_ms} ms",
        late=windows.late,
        **called(logic, state_groups, columns),
    )


def _build_native(windows: WindowAggregate, frame: DataFrame, batches: Sequence[pa.Table]) -> DataFrame:
    from ...spark_impl.window_aggregate import native_window_aggregate

    return native_window_aggregate(
        frame,
        **KEYED,
        order=ORDER,
        size=f"{windows.size} ms",
        step=f"{windows.step} ms",
        retention=f"{windows.retention_ms} ms",
        **aggregated(windows.aggregate),
    )


def _decode(windows: WindowAggregate, value: Any) -> Value:
    return from_json(value) if windows.storage == "full" else decode_aggregate(windows, value)


def _is_full(options: Options) -> bool:
    return options.get("storage") == "full"


def _aggregated(options: Options) -> tuple[str, tuple[str, ...]]:
    # With `storage="full"`, a window's value is the list of its messages.
    return ("list", ("events",)) if _is_full(options) else aggregated_events(options)


def _values(options: Options, answer: Answer) -> list[Value]:
    values = answer.aggregates("value")
    return [value for (value,) in values] if _is_full(options) else values


def _distances(windows: WindowAggregate) -> tuple[int, ...]:
    if windows.unit == "tuple":
        return (5,)
    ticks = () if windows.early is None or windows.early.every_ms is None else (windows.early.every_ms,)
    return (windows.size, windows.step, *ticks)


def _edges(windows: WindowAggregate) -> tuple[int, ...]:
    if windows.unit == "tuple":
        return ()
    # Distances behind the clock of the first and last rows of windows that close, or that still accept late records.
    latest = windows.late_ms
    return (windows.size, windows.size + latest, latest) if latest else (windows.size,)


def _aligned(windows: WindowAggregate) -> tuple[Aligned, ...]:
    if windows.unit == "tuple":
        return ()
    early = windows.early
    ticks = () if early is None or early.every_ms is None else (Aligned(early.every_ms, 0, "an early emission"),)
    if windows.type == "session":
        return ticks
    late = Aligned(windows.step, windows.size + windows.late_ms, "the end of a retention")
    return (Aligned(windows.step, windows.size), *([late] if windows.late_ms else []), *ticks)


def _kinds(windows: WindowAggregate, side: str) -> tuple[str, ...]:
    # With `storage="full"`, a window's value is the list of its messages.
    return kinds_taken(AGGREGATES_OF_SAMZA["list"] if windows.storage == "full" else windows.aggregate)


def _numbers(windows: WindowAggregate) -> Iterator[Number]:
    yield number_of(windows, "size", {} if windows.type == "session" else {"step": windows.step})
    if windows.type == "fixed":
        yield number_of(windows, "step")
    if windows.late == "update" and windows.unit == "ms":
        yield number_of(windows, "retention_ms")
    if windows.early is not None:
        ((option, every),) = ((name, every) for name, every in vars(windows.early).items() if every is not None)
        yield Number(option, every, lambda value: {"early": {option: value}})


def _met(history: History, played: Played) -> Iterator[str]:
    definition: Any = played.definition
    changes = changes_of(played)
    emitted = Counter((change.key, change.window) for change in changes if change.value is not None)
    if changes:
        yield "window emitted"
    if any(count > 1 for count in emitted.values()):
        yield "window emitted again"
    if any(change.value is None for change in changes):
        yield "emitted session merged"
    windows = Counter(
        window for record in accepted_records(played) for window in definition.fixed(record.timestamp, 0, 0)
    )
    if definition.type == "fixed" and any(count > 1 for count in windows.values()):
        yield "window of several"


def _goals(windows: WindowAggregate) -> Iterator[str]:
    yield "window emitted"
    if windows.unit == "ms":
        yield "dropped: late"
    # Tuple-based windows have no late rows, and a window of one tuple is complete at once, so neither is emitted again.
    by_tuples = windows.unit == "tuple"
    if (windows.early is not None and not (by_tuples and windows.size == 1)) or (
        windows.late == "update" and not by_tuples
    ):
        yield "window emitted again"
    if windows.type == "session" and windows.storage == "aggregate" and windows.early is not None:
        yield "emitted session merged"


def _repeats(windows: WindowAggregate, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult] | None:
    # Tuple-based windows have no declared result: each repetition shifts the bounds of all later windows.
    return None if windows.unit == "tuple" else doubled(windows, once, twice)


def _by_clock(windows: WindowAggregate) -> bool:
    # Tuple-based windows depend on the clock only if they are emitted early by time.
    return windows.unit == "ms" or (windows.early is not None and windows.early.every_ms is not None)


_ASKED = (
    AskedOptions(
        {"size": 20, "step": 10, "early": {"every_ms": 7}, "late": "update", "retention_ms": 15, "aggregate": "average"}
    ),
    AskedOptions({"type": "session", "size": 6, "late": "update", "retention_ms": 20, "aggregate": "sum"}),
    AskedOptions({"size": 10, "step": 5, "storage": "full", "early": {"every_tuples": 2}}),
)

REGISTRATION = Registration(
    operator_named("window_aggregate"),
    profiles={
        "fixed": {"size": 10, "aggregate": "sum"},
        "hopping, late update": {"size": 10, "step": 4, "late": "update", "retention_ms": 15, "aggregate": "list"},
        "early by tuples": {"size": 12, "early": {"every_tuples": 2}, "late": "update", "retention_ms": 40},
        "early by time": {"size": 20, "step": 10, "early": {"every_ms": 7}, "aggregate": "max"},
        "full": {"size": 10, "step": 5, "storage": "full", "early": {"every_tuples": 2}},
        "by tuple": {"unit": "tuple", "size": 3, "step": 2, "aggregate": "average"},
        "by tuple, early": {"unit": "tuple", "size": 4, "early": {"every_tuples": 2}, "aggregate": "list"},
        "session": {"type": "session", "size": 6, "aggregate": "list"},
        "session, late update": {
            "type": "session",
            "size": 6,
            "late": "update",
            "retention_ms": 20,
            "aggregate": "sum",
        },
        "session, early": {"type": "session", "size": 8, "early": {"every_tuples": 2}},
        "session, full": {"type": "session", "size": 6, "storage": "full"},
    },
    space=OptionSpace(
        {
            "type": ("fixed", "session"),
            "unit": ("ms", "tuple"),
            "size": (1, 4, 10, 12),
            "step": (ABSENT, 1, 4, 5, 10),
            "retention_ms": (0, 1, 15, 40),
            "late": ("drop", "update"),
            "storage": ("aggregate", "full"),
            "aggregate": tuple(AGGREGATES_OF_SAMZA),
            "early": (None, *({"every_tuples": n} for n in (1, 2, 3)), *({"every_ms": n} for n in (1, 5, 7))),
        },
        independent=("storage", "aggregate", "early"),
    ),
    domain=Domain(
        _distances,
        _edges,
        kinds=_kinds,
        aligned=_aligned,
        numbers=_numbers,
        by_clock=lambda windows: windows.unit == "ms",
        takes_until_forgotten=True,
        silent={"retention_ms": "with late drop or tuples, a complete window accepts no rows, whatever the retention"},
    ),
    coverage=Coverage(_met, _goals),
    free_order=lambda windows: FreeOrder.KEYS if windows.unit == "tuple" else FreeOrder.ANY,
    by_clock=_by_clock,
    without_late_data={
        "hopping, late update": {"retention_ms": 1000},
        "session, early": {"late": "update", "retention_ms": 1000},
    },
    repeats=_repeats,
    keeps_lists_in_order=lambda windows: windows.aggregate.ordered,
    spark=Binding(
        _build, _fields, _decode, shared=Shared(on_spark("window_aggregate", "WindowLogic")), typed=_build, asked=_ASKED
    ),
    native=Native(
        on_spark("window_aggregate", "require_native_window_aggregate"),
        _build_native,
        "window emits the reference's results, each key's changes in order",
        {"hopping": NativeProfile({"size": 10, "step": 4, "retention_ms": 15, "aggregate": "average"})},
    ),
    sql=Sql(beside(__file__), _aggregated, is_stream=_is_full, values=_values),
    bounded_state=lambda windows: windows.unit == "ms",
    unbounded="for tuple-based windows, which wait for the next row forever",
    mutants=MutantsOf("window_aggregate"),
)
