from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.weekly("it starts sessions of Spark, and none of our commits but those of a benchmark changes it")
@pytest.mark.parametrize(("query", "forms"), [("q7", 2), ("q9", 2), ("q11", 3), ("q18", 4), ("q20", 3)])
def test_a_small_run_of_a_query_has_the_rows_of_duckdb_in_each_form(
    query: str, forms: int, benchmarks: Callable[..., tuple[object, str, str]], tmp_path: Path
) -> None:
    code, _, err = benchmarks(f"nexmark:{query}", "--size", "small", "--json", str(tmp_path / "figures.json"))
    assert code == 0, err
    (found,) = json.loads((tmp_path / "figures.json").read_text())["benchmarks"]
    differing = [figure for figure in found["figures"] if "differ" in figure["name"]]
    assert {figure["median"] for figure in differing} == {0}
    # And Kafka Streams, Delta and Bytewax, where they are.
    assert len(differing) >= forms
