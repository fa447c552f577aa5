"""A machine that fails a query, by a Python worker that starts too late or is lost: the query is run once more."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.witnesses.spark.witness import SPARK
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play

HISTORY = parse_history(
    """\
{"operator": "table_table_join", "options": {"join": "inner"}, "clock": "batch"}
{"input": "left", "key": "a", "value": 1, "timestamp": 0}
{"input": "right", "key": "a", "value": 2, "timestamp": 1}
""",
    "h",
)


def test_a_query_whose_worker_starts_too_late_once_still_gives_its_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, slow = tmp_path / "started", tmp_path / "python"
    python = f'exec {shlex.quote(sys.executable)} "$@"'
    first = f"[ -e {started} ] || {{ touch {started}; sleep 12; }}"
    late = f'case "$*" in *transform_with_state_driver_worker*) {first};; esac'
    slow.write_text(f"#!/bin/sh\n{late}\n{python}\n")
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    (outcome,) = SPARK.evaluate([HISTORY])
    assert not differences(Outcome.of_play("h", play(HISTORY)), outcome)
    assert started.exists()
