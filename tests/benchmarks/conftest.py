"""The command line of the benchmarks, run in the process of the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmarks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Runs `python -m benchmarks` with words, and ends no Spark session: gives its exit code, and what it printed."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    from benchmarks import command_line

    def run(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return (ended.value.code, *capsys.readouterr())

    return run
