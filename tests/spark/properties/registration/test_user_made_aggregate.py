"""An aggregate of a user's own, which depends on the order and can't be undone: texts are put one after the other.

History files name count, sum, min, max, list and average; of those `list` depends on the order, and `average` and `max`
don't vanish under retraction. Another aggregate is part of a definition, under which an operator is registered.

The meaning of session windows is in the order of time, for it leaves the order within a list open. The order of a text
is not open, so this operator has a meaning of its own, in the order in which sessions are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from streamproof import Registration
from streamproof.properties.checking.check import check_reference
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.coverage import draw_covering
from streamproof.properties.generators.registering import register
from streamproof.properties.generators.values import kinds_taken
from streamproof.properties.operators.session_windows import REGISTRATION as SESSIONS
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.bindings import VALUE, Binding, Field, aggregated_field, called
from streamproof.properties.registration.registration import unregister
from streamproof.properties.witnesses.by_name import witness_named
from streamproof.reference import session_windows
from streamproof.reference.core.operator import Operator
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Record, Table
from streamproof.reference.definitions.aggregates import Aggregate
from streamproof.reference.definitions.declarations import PYTHON_ONLY
from streamproof.reference.definitions.windows import SessionWindows

CONCATENATION = Aggregate(
    "concatenation",
    initializer=str,
    aggregator=lambda key, value, text: text + value,
    merger=lambda key, one, two: one + two,
    refuses=lambda value: None if isinstance(value, str) else "a text",
    ordered=True,
)


@dataclass(frozen=True)
class ConcatenatedSessions(SessionWindows):
    """Session windows whose texts are put one after the other."""

    aggregate: Aggregate = field(default=CONCATENATION, metadata=PYTHON_ONLY)


def meaning(windows: SessionWindows, accepted: Iterable[Accepted], clock: int) -> Table:
    """Return the texts of the sessions: of those that a record merges, the earlier first, and its own last."""
    sessions: list[tuple[str | None, int, int, str]] = []
    for (_, key, text, at), now in accepted:
        edge = windows.close_edge(now)
        near = [
            (owner, start, end, before)
            for owner, start, end, before in sessions
            if owner == key and end >= edge and start - windows.gap_ms <= at <= end + windows.gap_ms
        ]
        bounds = [at, *(bound for _, start, end, _ in near for bound in (start, end))]
        whole = "".join(before for *_, before in sorted(near, key=itemgetter(1))) + text
        sessions = [one for one in sessions if one not in near] + [(key, min(bounds), max(bounds), whole)]
    return {(key, (start, end)): (text, end) for key, start, end, text in sessions}


class Swapped(session_windows.Behaviour):
    """Merges the later session first."""

    def __init__(self, windows: Any, clock: Any) -> None:
        merger = windows.aggregate.merger
        swapped = replace(windows.aggregate, merger=lambda key, one, two: merger(key, two, one))
        super().__init__(replace(windows, aggregate=swapped), clock)


def _fields(windows: SessionWindows, records: Sequence[Record]) -> list[Field]:
    return [aggregated_field(windows.aggregate, [record.value for record in records if record.key is not None])]


def _build(windows: SessionWindows, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    from streamproof.spark_impl.session_windows import session_windows as on_spark

    return on_spark(
        frame,
        gap=f"{windows.gap_ms} ms",
        grace=f"{windows.grace_ms} ms",
        value=VALUE,
        aggregate=windows.aggregate,
        value_type="string",
        **called(logic, state_groups),
    )


def concatenated(behaviour: Any = session_windows.Behaviour) -> Registration:
    return register(
        Registration(
            Operator("concatenated_sessions", ConcatenatedSessions, behaviour, meaning),
            profiles={"update": {"gap_ms": 10, "grace_ms": 5}},
            domain=SESSIONS.domain,  # its kinds of values are those that the definition's aggregate takes
            coverage=SESSIONS.coverage,
            by_clock=SESSIONS.by_clock,
            free_order=SESSIONS.free_order,
            keeps_lists_in_order=SESSIONS.keeps_lists_in_order,
            spark=Binding(_build, _fields, lambda windows, value: value),
            bounded_state=SESSIONS.bounded_state,
        )
    )


@pytest.fixture(autouse=True)
def _ten_again() -> Iterator[None]:
    yield
    unregister("concatenated_sessions")


def test_an_aggregate_of_ones_own_takes_the_kinds_of_values_that_it_does_not_refuse() -> None:
    concatenated()
    texts = {"text", "text of all scripts", "text like other values", "text with separators"}
    assert set(kinds_taken(CONCATENATION)) == texts
    assert set(kinds_taken(replace(CONCATENATION, refuses=lambda value: None))) == texts


def test_a_concatenation_folds_to_its_meaning(tmp_path: Path) -> None:
    concatenated()
    report = check_reference("concatenated_sessions", FolderStore(tmp_path), 200)
    assert (report.verdict, report.found) == ("conforms", [])


def test_sessions_that_are_merged_in_the_wrong_order_are_found_and_shrunk(tmp_path: Path) -> None:
    concatenated(Swapped)
    report = check_reference("concatenated_sessions", FolderStore(tmp_path), 200)
    assert report.verdict == "violated"
    (counterexample,) = [one for one, _ in report.found]
    assert counterexample.law == "fold is meaning"
    assert len(counterexample.history.records) <= 4
    assert {record.key for record in counterexample.history.records} == {"a"}
    # Of one text nothing would show: two of them differ.
    assert len({record.value for record in counterexample.history.records}) > 1


def test_a_concatenation_on_spark_is_the_references(spark: SparkSession) -> None:
    registration = concatenated()
    drawn = draw_covering("concatenated_sessions", registration.profiles["update"], 60, 1)
    assert drawn.missing == ()
    for history, outcome in zip(drawn.histories, witness_named("spark").evaluate(drawn.histories), strict=True):
        assert differences(Outcome.of_play(history.name, play(history)), outcome) == [], history.to_text()
