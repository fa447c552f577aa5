"""An empty DuckDB database whose results are the same in every run."""

from __future__ import annotations

import duckdb

ONE_THREAD = {"threads": 1}
"""The setting that makes DuckDB run a query with one thread. With two threads, a race in DuckDB 2.0.0 returns wrong
rows for `max(…) OVER (… RANGE …)` in one of twenty runs over 100,000 rows.
"""


def open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open the database in a file, with the default configuration of this process's other connections."""
    return duckdb.connect(path)


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection to an empty in-memory database, which runs statements in one thread."""
    return duckdb.connect(":memory:", config=dict(ONE_THREAD))
