"""The law *columns* on Spark: a join in every layout, and a wrong reading; others are in `runtime_mutants`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from streamproof.properties.checking import confirm
from streamproof.properties.checking.check import Check
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import columns_sample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.layouts import LAYOUTS, Layout
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.base import OWN, Verdict
from streamproof.properties.laws.on_spark.columns import (
    layouts_of,
)
from streamproof.properties.registration.registration import registration_of
from streamproof.spark_impl.runtime import inputs

TEXTS, BIGINT, BATCH = LAYOUTS


def test_a_join_emits_what_the_reference_emits_in_every_layout(spark: SparkSession, tmp_path: Path) -> None:
    report = checked("stream_stream_join", tmp_path, *LAYOUTS)
    assert report.result("columns").verdict is Verdict.CONFORMS


def checked(operator: str, folder: Path, *layouts: Layout) -> Report:
    """Check an operator by its samples in some layouts alone."""
    registration = registration_of(operator)
    samples = [
        columns_sample(registration, asked, 10, 0) for asked in layouts_of(registration) if asked.layout in layouts
    ]
    report = Report(operator, [], 0)
    Check(registration, report, ON_SPARK, "spark", FolderStore(folder), lambda step: None, OWN).run(samples)
    return report


def joins_key_columns_by_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inputs.key_columns

    def confused(frame: Any, key: Any) -> list[tuple[Column, T.StructField]]:
        found = right(frame, key)
        if [type(field.dataType) for _, field in found] != [T.StringType, T.StringType]:
            return found
        (first, one), (second, two) = found
        together = F.when(first.isNotNull() & second.isNotNull(), F.concat_ws("|", first, second))
        return [(together, one), (F.when(second.isNotNull(), F.lit("")), two)]

    monkeypatch.setattr(inputs, "key_columns", confused)


def test_a_wrong_reading_of_columns_is_killed_and_confirmed_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joins_key_columns_by_a_separator(monkeypatch)
    monkeypatch.setattr(confirm, "shrink", lambda first, *_: first)  # it is tested elsewhere, and takes long
    report = checked("table_table_join", tmp_path, TEXTS)
    assert report.result("columns").verdict is Verdict.VIOLATED
    ((found, _),) = report.found
    assert (found.law, found.confirmed) == ("columns", True)
