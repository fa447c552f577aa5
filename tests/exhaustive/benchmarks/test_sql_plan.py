from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamproof.reference.table_table_join import TableJoin

from benchmarks.production.cases import unless_deleted
from benchmarks.production.sql_table_table_join import SqlTableTableJoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "key string, order bigint, time bigint, amount bigint, deleted boolean"


@pytest.mark.weekly("a plan that only a figure uses")
def test_the_join_in_sql_emits_what_the_reference_emits_and_stores_no_more_than_its_runs(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
) -> None:
    emitted: list[Any] = []

    def write(changes: DataFrame, folder: Path | None) -> None:
        emitted.extend(changes.selectExpr("cause", "key", "value", "unix_millis(timestamp) AS timestamp").collect())

    drawn, reference, expected = random.Random(0), TableJoin("outer"), []
    join = SqlTableTableJoin(tmp_path / "state", write)
    for batch in range(5):
        sides: dict[str, list[Any]] = {"left": [], "right": []}
        for order in range(12 * batch, 12 * batch + 12):
            side, key, deleted = drawn.choice(["left", "right"]), drawn.choice("abc"), drawn.random() < 0.3
            time, amount = drawn.randrange(100), drawn.randrange(100)
            sides[side].append((key, order, time, amount, deleted))
            for change in reference.change(side, (key, None), None if deleted else amount, time):
                expected.append((order, key, change.value, change.timestamp))
        inputs = {side: spark.createDataFrame(rows, SCHEMA) for side, rows in sides.items()}
        join.write_batch(join.rows(inputs, unless_deleted("amount")), None)
    found = [
        (row.cause, row.key, row.value and [*row.value], row.timestamp)
        for row in sorted(emitted, key=lambda row: row.cause)
    ]
    assert found == expected
    assert {each.name for each in (tmp_path / "state").iterdir() if each.is_dir()} == {run.name for run in join.runs}
