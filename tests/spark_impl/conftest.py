"""The targets that the tests of `materialize` write to."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamproof.spark_impl.sinks.materialize import Target
from streamproof.spark_impl.sinks.tables import DuckDBTable, ParquetTable


@pytest.fixture(params=["parquet", "duckdb"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "parquet":
        return ParquetTable(tmp_path / "table", buckets=3)
    return DuckDBTable(tmp_path / "database.duckdb", "table of totals")
