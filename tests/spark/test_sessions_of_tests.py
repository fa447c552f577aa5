"""Tests share one Spark session, whatever else runs in their process."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import caller
from pyspark.sql import SparkSession


def test_a_command_in_the_process_of_the_tests_leaves_them_their_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert caller(monkeypatch, capsys)("run", tmp_path / "missing.jsonl").code == 3
    assert spark.range(3).count() == 3
