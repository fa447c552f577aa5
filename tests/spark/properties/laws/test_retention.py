"""The law of retention on Spark: the operators keep it, and mutants are seen to break either half of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from given_answers import Given, judged, right_outcome
from pyspark.sql import SparkSession
from streamproof.properties.checking.samples import long_after
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.retention import SIDES
from streamproof.properties.laws.on_spark.retention import RetentionLaw as Law
from streamproof.properties.laws.runs import Kind, Sample
from streamproof.properties.registration.mutants import LogicByHistory, Mutant
from streamproof.properties.registration.registration import Retention, registered, registration_of
from streamproof.properties.witnesses.spark.answers import StoredState
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.history import History
from streamproof.spark_impl.range_aggregate import RangeLogic, Retained
from streamproof.spark_impl.runtime.logic import Arrived, Key, LogicOutput
from streamproof.spark_impl.windowed_table import WindowedLogic, WindowedState


# Local classes, for Spark's workers can't import a test's module.
def range_logics() -> tuple[type[RangeLogic], ...]:
    class RowsKeptForEver(RangeLogic):
        def keep(self, state: list[Retained], emitted: int, clock: int) -> list[Retained]:
            return state

    class ReachForgotten(RangeLogic):
        def keep(self, state: list[Retained], emitted: int, clock: int) -> list[Retained]:
            return super().keep(state, emitted, clock + self.ranges.preceding_ms)

    class NothingIsLate(RangeLogic):
        def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
            return super().take(key, state, row, 0)

    return RangeLogic, RowsKeptForEver, ReachForgotten, NothingIsLate


def windowed_logics() -> tuple[type[WindowedLogic], ...]:
    class WindowsKeptForEver(WindowedLogic):
        def keep(self, state: WindowedState, emitted: int, clock: int) -> WindowedState:
            return state

    class RetentionForgotten(WindowedLogic):
        def over(self, side: str, start: int) -> int | None:
            return start + self.table.size_ms + self.table.grace_ms

    return WindowedLogic, WindowsKeptForEver, RetentionForgotten


RETAINED = [name for name, registration in registered().items() if registration.retention]


def retention_of(operator: str) -> Retention:
    retention = registration_of(operator).retention
    assert retention is not None
    return retention


def drawn(operator: str, name: str) -> list[History]:
    registration = registration_of(operator)
    options = {**registration.profiles[name], **retention_of(operator).profiles[name][0]}
    histories = draw_histories(HistorySettings(operator, options, SCHEDULE), 30, 3)
    return [long_after(history, registration) for history in histories]


def checked(operator: str, name: str, logics: Sequence[type]) -> dict[str, tuple[bool, bool]]:
    """Say of each logic, all in one query, whether it differs within the retention, and whether it keeps beyond it."""
    histories = drawn(operator, name)
    mutants = [Mutant(operator, one.__name__, one, logics[0], name, "") for one in logics]
    starts = [number * len(histories) for number in range(len(logics))]

    def logic(definition: Any) -> Any:
        return LogicByHistory(logics[0](definition), [mutant.logic(definition) for mutant in mutants], starts)

    compared = Law().recheck([Case(history) for _ in logics for history in histories], SparkWitness(logic))
    found: dict[str, tuple[bool, bool]] = {}
    for number, one in enumerate(logics):
        own = compared[number * len(histories) : (number + 1) * len(histories)]
        said = [difference for comparison in own for difference in comparison.differences]
        left = [difference.actual == "state left" for difference in said]
        found[one.__name__] = (not all(left), any(left))
    return found


def test_a_range_answers_what_it_reaches_within_the_retention_and_is_gone_after_it(spark: SparkSession) -> None:
    assert checked("range_aggregate", "list", range_logics()) == {
        "RangeLogic": (False, False),
        "RowsKeptForEver": (False, True),
        "ReachForgotten": (True, False),
        "NothingIsLate": (True, False),
    }


def test_a_window_is_joined_within_the_retention_and_is_gone_after_it(spark: SparkSession) -> None:
    assert checked("windowed_table", "with table", windowed_logics()) == {
        "WindowedLogic": (False, False),
        "WindowsKeptForEver": (False, True),
        "RetentionForgotten": (True, False),
    }


@pytest.mark.parametrize("operator", RETAINED)
def test_drawn_histories_have_late_records_within_the_retention_and_beyond_it(operator: str) -> None:
    retention = retention_of(operator)
    for name, (changed, retention_ms) in retention.profiles.items():
        histories = drawn(operator, name)
        met: set[Any] = {side for history in histories for side in retention.sides(history, retention_ms)}
        assert met == set(SIDES)
        sample = Sample(registration_of(operator), Kind.RETENTION, name, changed, histories, more=retention_ms)
        assert set(Law().goals(sample)) == {f"{side} ({name})" for side in SIDES}


def test_what_is_left_out_or_still_stored_breaks_the_law() -> None:
    registration = registration_of("windowed_table")
    changed, retention_ms = retention_of("windowed_table").profiles["with table"]
    options = {**registration.profiles["with table"], **changed}
    histories = drawn("windowed_table", "with table")[:10]
    sample = Sample(registration, Kind.RETENTION, "with table", options, histories, more=retention_ms)
    right = {history.name: right_outcome(history) for history in histories}
    assert judged(Law(), sample, Given(right)) == (10, [])
    # What came first is of a window within the retention.
    first = replace(right["h4"], entries=right["h4"].entries[1:])
    assert judged(Law(), sample, Given({**right, "h4": first})) == (10, ["h4"])
    assert judged(Law(), sample, Given(right, {"h6": [StoredState("a", [])]})) == (10, ["h6"])
