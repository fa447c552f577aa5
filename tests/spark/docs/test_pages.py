"""The documentation: its samples run, its commands exist, its histories give what it shows, its links work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from doc_pages import pages_of_python, run_python
from shared_player import play_in_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = {
    "events": {"country": "no", "user": "ann", "amount": 3, "offset": 0},
    "users": {"country": "no", "user": "ann", "name": "Ann", "offset": 0},
    "orders": {"order_id": "o1", "amount": 3},
    "shipments": {"order_id": "o1", "carrier": "post"},
    "songs": {"song": "s1", "title": "Feeling Good", "artist": "a1"},
    "artists": {"artist": "a1", "name": "Nina"},
}
"""The data that the samples on Spark read, by folder."""
IN_MEMORY = {"docs/own_operator.md"}
"""The pages whose samples check an operator: what Spark emits of this one is asked in test_eleventh_operator.py."""


@pytest.mark.parametrize("page", pages_of_python("spark"))
def test_python_runs_on_spark(page: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in IN_MEMORY:
        play_in_memory(monkeypatch)
    for name, row in ROWS.items():
        (tmp_path / name).mkdir()
        line = json.dumps(row | {"time": "2026-01-01T00:00:00Z"})
        (tmp_path / name / "rows.json").write_text(line + "\n", encoding="utf-8")
    try:
        run_python(page, {"__name__": "sample", "spark": spark, "folder": tmp_path})
    finally:
        for query in spark.streams.active:
            query.stop()
