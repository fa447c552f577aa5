from __future__ import annotations

import ast

from paths import ROOT
from streamproof.properties.witnesses.duckdb import relation
from streamproof.properties.witnesses.duckdb.connection import connect

PROPERTIES = ROOT / "properties"
FILES = {"witnesses/duckdb/connection.py", "datasets/data.py"}
"""Where a database is opened: one thread, and the files of data sets, which no window function reads."""


def test_statements_run_in_one_thread() -> None:
    with connect() as connection:
        assert connection.sql("SELECT current_setting('threads')").fetchall() == [(1,)]
    assert relation._database().sql("SELECT current_setting('threads')").fetchall() == [(1,)]


def test_no_other_module_opens_a_database() -> None:
    opening = {
        str(path.relative_to(PROPERTIES))
        for path in PROPERTIES.rglob("*.py")
        if "duckdb" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "duckdb.connect"
    }
    assert opening == FILES
