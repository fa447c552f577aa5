"""The registration of range aggregates; the column of values has the type of the aggregate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry, Played, play
from ...reference.core.records import Dropped, Key, Record, bag
from ...reference.definitions.aggregates import AGGREGATES_OF_SAMZA
from ...reference.definitions.windows import RangeAggregate
from ..generators.cohorts import clock_before, clock_schedule, record_batches, with_clock_advances
from ..generators.values import kinds_of_aggregate
from ..outcomes.outcomes import Difference, FinalResult, Outcome, differences
from ..registration.bindings import (
    OF_COHORT,
    AskedOptions,
    Binding,
    Columns,
    aggregated,
    called,
    decode_aggregate,
    fields_of_aggregate,
    on_spark,
)
from ..registration.coverage import Coverage, accepted_records
from ..registration.domain import Domain, number_of
from ..registration.options import OptionSpace
from ..registration.registration import MutantsOf, Registration, Retention
from ..registration.repeats import changes_of, doubled_value
from ..registration.shared import Shared
from ..registration.sql import Sql, aggregate_values, aggregated_events, always, beside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(
    ranges: RangeAggregate,
    frame: DataFrame,
    logic: Any,
    state_groups: int | None,
    retention: str | None = None,
    columns: Columns = OF_COHORT,
) -> DataFrame:
    from ...spark_impl.range_aggregate import range_aggregate

    return range_aggregate(
        frame,
        preceding=f"{ranges.preceding_ms} ms",
        retention=retention,
        **aggregated(ranges.aggregate),
        **called(logic, state_groups, columns),
    )


def _met(history: History, played: Played) -> Iterator[str]:
    definition: Any = played.definition
    records = accepted_records(played)
    for number, record in enumerate(records):
        distances = [record.timestamp - earlier.timestamp for earlier in records[:number] if earlier.key == record.key]
        if definition.preceding_ms in distances:
            yield "exact bound"
        if definition.preceding_ms + 1 in distances:
            yield "bound + 1"
        if sum(0 <= distance <= definition.preceding_ms for distance in distances) > 1:
            yield "range of several"


def _repeats(ranges: RangeAggregate, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult]:
    """Return the result if every record arrives twice: each value counts twice."""
    expected = bag(change._replace(value=doubled_value(ranges.aggregate, change.value)) for change in changes_of(once))
    answers: dict[Key | None, list[Any]] = defaultdict(list)
    for entry in twice.entries:
        answers[entry.output.key].append(entry.output)
    return expected, bag(answer for of_key in answers.values() for answer in of_key[1::2])


def _with_clock(history: History) -> Iterator[tuple[int, int, Record]]:
    for batch, records in enumerate(record_batches(history)):
        yield from ((batch, clock_before(history, batch), record) for record in records)


def _with_retention(history: History, retention_ms: int) -> Outcome:
    """Return the reference's output under a retention: records beyond the retention become dropped records."""
    taken: list[list[Record]] = [[] for _ in history.batches]
    dropped: list[Entry] = []
    for batch, clock, record in _with_clock(history):
        if record.timestamp >= clock - retention_ms:
            taken[batch].append(record)
        else:
            dropped.append(Entry(-1, batch, Dropped(record.key, "late")))
    played = play(replace(history, lines=with_clock_advances(taken, clock_schedule(history))))
    outcome = Outcome.of_play(history.name, played)
    return replace(outcome, entries=[*outcome.entries, *dropped])


def _retention_differences(history: History, retention_ms: int, outcome: Outcome) -> list[Difference]:
    return differences(_with_retention(history, retention_ms), replace(outcome, knows_dropped=True))


def _sides(history: History, retention_ms: int) -> set[str]:
    ages = [clock - record.timestamp for _, clock, record in _with_clock(history) if clock > record.timestamp]
    return {"beyond the retention" if age > retention_ms else "within the retention" for age in ages}


_ASKED = (
    AskedOptions({"preceding_ms": 10, "aggregate": "average"}),
    AskedOptions({"preceding_ms": 6, "aggregate": "sum"}),
    AskedOptions({"preceding_ms": 20, "aggregate": "max"}, "text of all scripts"),
)

REGISTRATION = Registration(
    operator_named("range_aggregate"),
    profiles={
        "average": {"preceding_ms": 10, "aggregate": "average"},
        "list": {"preceding_ms": 6, "aggregate": "list"},
        "sum": {"preceding_ms": 0, "aggregate": "sum"},
        "max": {"preceding_ms": 20, "aggregate": "max"},
    },
    space=OptionSpace({"preceding_ms": (0, 1, 6, 10, 20), "aggregate": tuple(AGGREGATES_OF_SAMZA)}),
    domain=Domain(
        lambda ranges: (ranges.preceding_ms,),
        lambda ranges: (ranges.preceding_ms,),
        kinds=kinds_of_aggregate,
        numbers=lambda ranges: iter([number_of(ranges, "preceding_ms")]),
    ),
    coverage=Coverage(_met, lambda ranges: ("range of several", "exact bound", "bound + 1")),
    repeats=_repeats,
    keeps_lists_in_order=lambda ranges: ranges.aggregate.ordered,
    spark=Binding(
        _build,
        fields_of_aggregate,
        decode_aggregate,
        shared=Shared(on_spark("range_aggregate", "RangeLogic")),
        typed=_build,
        asked=_ASKED,
    ),
    sql=Sql(beside(__file__), aggregated_events, is_stream=always, values=aggregate_values),
    # The range is longer than a step of the clock schedule, so that it contains rows behind the clock.
    retention=Retention({"list": ({"preceding_ms": 20}, 15)}, _build, _retention_differences, _sides),
    unbounded="it accepts rows of any age, so every row is stored forever: see the law retention",
    mutants=MutantsOf("range_aggregate"),
)
