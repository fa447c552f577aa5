from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.production.run import differing, last_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_result_that_lacks_or_repeats_a_row_of_the_baselines_is_counted_as_different(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
) -> None:
    def rows(*pairs: tuple[str, int]) -> DataFrame:
        return spark.createDataFrame(list(pairs), "key string, value int")

    one = rows(("a", 1), ("a", 1), ("b", 2), ("~end", 3))
    assert differing(one, rows(("b", 2), ("a", 1), ("a", 1))) == (3, 0)
    assert differing(one, rows(("b", 2), ("a", 1))) == (3, 1)
    assert differing(one, rows(("b", 1), ("a", 1), ("a", 1))) == (3, 2)


def test_of_a_key_the_last_change_of_the_last_batch_stands_unless_it_is_a_tombstone(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    changes = [
        ("a", 1, "update", 0, 9, 1),
        ("a", 2, "update", 0, 9, 0),
        ("b", 1, "update", 0, 9, 0),
        ("b", 2, "update", 1, None, 0),
        ("c", 1, "update", 0, 1, 0),
        ("c", None, "tombstone", 0, 2, 0),
    ]
    emitted = spark.createDataFrame(changes, "key string, value int, change string, batch int, cause int, ordinal int")
    assert sorted(map(tuple, last_changes(emitted, ["key"]).collect())) == [("a", 1), ("b", 2)]
