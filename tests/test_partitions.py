from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from streamproof.properties.check import Report
from streamproof.properties.cohorts import one_cohort
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.examinations import examine
from streamproof.properties.laws import LAWS, LawResult, Verdict
from streamproof.properties.mutants.common import Mutant, travelling
from streamproof.properties.partitions import PARTITIONS, named_count
from streamproof.properties.shape_check import ShapeCheck, laws_of
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import ON_SPARK, Plan
from streamproof.reference.histories import History
from streamproof.spark_impl.keyed import Arrived, Key, Told
from streamproof.spark_impl.table_table_join import TableTableLogic


def drawn(operator: str, count: int) -> list[History]:
    options = next(iter(SHAPES[operator].values()))
    return list(draw_histories(Shape(options, SCHEDULE, operator=operator), count, seed=1))


@pytest.mark.parametrize("operator", ON_SPARK)
def test_the_law_is_asked_of_every_operator_and_needs_all_three_numbers(operator: str) -> None:
    asked = LAWS.values() if operator == "session_windows" else laws_of(operator)
    (law,) = [law for law in asked if law.name == "partitions"]
    assert law.needs == tuple(map(named_count, PARTITIONS)) == ("1 partition", "2 partitions", "7 partitions")


def test_partitions_catches_what_depends_on_the_other_keys_of_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    class CountsAllKeys(TableTableLogic):
        """Every tenth row that a worker takes is lost: what is counted for a key is counted on the worker."""

        taken = 0

        def take(self, key: Key, kept: dict[str, Any], row: Arrived, clock: int) -> list[Told]:
            self.taken += 1
            return [] if self.taken % 10 == 0 else super().take(key, kept, row, clock)

    class KnowsTwoPartitions(TableTableLogic):
        """What comes to a third partition is lost."""

        def take(self, key: Key, kept: dict[str, Any], row: Arrived, clock: int) -> list[Told]:
            context = TaskContext.get()
            assert context is not None
            return super().take(key, kept, row, clock) if context.partitionId() < 2 else []

    logics = (TableTableLogic, CountsAllKeys, KnowsTwoPartitions)
    mutants = [Mutant("table_table_join", logic.__name__, logic, TableTableLogic, "", "") for logic in logics]
    names = ("right", "first bug", "second bug")
    histories = [
        replace(history, name=f"{name}, {history.name}") for name in names for history in drawn("table_table_join", 4)
    ]
    plan = Plan(logic=travelling(mutants, [0, 4, 8]))
    plain = examine(one_cohort(histories * 5), plan)  # the law is asked of a fifth
    # Of two partitions the third bug shows nothing; this law alone sees it.
    assert not any(plain.broken[:4])
    assert any(plain.broken[4:8])
    assert not any(plain.broken[8:12])

    laws = {"changelog": LawResult(LAWS["changelog"]), "partitions": LawResult(LAWS["partitions"])}
    check = ShapeCheck(Report("table_table_join", [], 1), laws, 60, 1, tmp_path, lambda step: None, plan)
    check.partitions(plain)
    law = laws["partitions"]
    assert (law.verdict, law.judged, law.missing) == (Verdict.VIOLATED, 24, [])
    assert {history.name.split(",")[0] for history, _ in law.violations} == {"first bug", "second bug"}
    ((finding, folder),) = check.report.found
    assert "Spark in 2 partitions instead of 1 tells" in finding.sentence
    assert (folder / "history.jsonl").exists()


def test_the_stages_of_a_join_in_seven_partitions_give_what_the_reference_gives(spark: SparkSession) -> None:
    cohort = one_cohort(drawn("foreign_key_join", 20))
    examination = examine(cohort, Plan(partitions=7))
    assert (examination.output.partitions, any(examination.broken)) == (7, False)
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
