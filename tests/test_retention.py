"""The law of retention on Spark: the operators keep it, and seeded bugs are seen to break either half of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.cohorts import one_cohort
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.mutants.common import Mutant, travelling
from streamproof.properties.retention import (
    RETAINED,
    retention_broken,
    retention_law,
    retention_plan,
    retention_situations,
    still_kept,
)
from streamproof.properties.shape_check import long_after
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import run_cohort
from streamproof.reference.histories import History
from streamproof.reference.operators import operator_named
from streamproof.spark_impl.keyed import Arrived, Key, Told
from streamproof.spark_impl.range_aggregate import Held, RangeLogic
from streamproof.spark_impl.windowed_table import Kept, WindowedLogic


# Local classes, for Spark's workers can't import a test's module.
def range_logics() -> tuple[type[RangeLogic], ...]:
    class RowsKeptForEver(RangeLogic):
        def keep(self, kept: list[Held], told: int, clock: int) -> list[Held]:
            return kept

    class ReachForgotten(RangeLogic):
        def keep(self, kept: list[Held], told: int, clock: int) -> list[Held]:
            return super().keep(kept, told, clock + self.ranges.preceding_ms)

    class NothingIsLate(RangeLogic):
        def take(self, key: Key, kept: list[Held], row: Arrived, clock: int) -> list[Told]:
            return super().take(key, kept, row, 0)

    return RangeLogic, RowsKeptForEver, ReachForgotten, NothingIsLate


def windowed_logics() -> tuple[type[WindowedLogic], ...]:
    class WindowsKeptForEver(WindowedLogic):
        def keep(self, kept: Kept, told: int, clock: int) -> Kept:
            return kept

    class RetentionForgotten(WindowedLogic):
        def over(self, side: str, start: int) -> int | None:
            return start + self.table.size_ms + self.table.grace_ms

    return WindowedLogic, WindowsKeptForEver, RetentionForgotten


def drawn(operator: str, name: str) -> list[History]:
    options = {**SHAPES[operator][name], **RETAINED[operator][name].changed}
    definition = operator_named(operator).declare(options)
    histories = draw_histories(Shape(options, SCHEDULE, operator=operator), 30, 3)
    return [long_after(history, definition) for history in histories]


def held_to_the_law(operator: str, name: str, logics: Sequence[type]) -> dict[str, tuple[bool, bool]]:
    """Say of each logic, all in one query, whether it parts within the retention, and whether it keeps beyond it."""
    histories, retention_ms = drawn(operator, name), RETAINED[operator][name].retention_ms
    mutants = [Mutant(operator, one.__name__, one, logics[0], name, "") for one in logics]
    logic = travelling(mutants, [number * len(histories) for number in range(len(logics))])
    cohort = one_cohort(histories * len(logics))
    outcomes, output = run_cohort(cohort, retention_plan(operator, cohort.options, retention_ms, logic))
    left = still_kept(cohort, output)
    found: dict[str, tuple[bool, bool]] = {}
    for number, one in enumerate(logics):
        places = range(number * len(histories), (number + 1) * len(histories))
        parts = any(retention_broken(cohort.histories[place], retention_ms, outcomes[place]) for place in places)
        found[one.__name__] = (parts, any(left[place] for place in places))
    return found


def test_a_range_answers_what_it_reaches_within_the_retention_and_is_gone_after_it(spark: SparkSession) -> None:
    assert held_to_the_law("range_aggregate", "list", range_logics()) == {
        "RangeLogic": (False, False),
        "RowsKeptForEver": (False, True),
        "ReachForgotten": (True, False),
        "NothingIsLate": (True, False),
    }


def test_a_window_is_joined_within_the_retention_and_is_gone_after_it(spark: SparkSession) -> None:
    assert held_to_the_law("windowed_table", "with table", windowed_logics()) == {
        "WindowedLogic": (False, False),
        "WindowsKeptForEver": (False, True),
        "RetentionForgotten": (True, False),
    }


@pytest.mark.parametrize("operator", RETAINED)
def test_drawn_histories_have_late_records_within_the_retention_and_beyond_it(operator: str) -> None:
    needs = set(retention_law(operator).needs)
    met: set[Any] = set()
    for name, (_, retention_ms) in RETAINED[operator].items():
        for history in drawn(operator, name):
            met |= {f"{side} ({name})" for side in retention_situations(history, retention_ms)}
    assert met >= needs
