from __future__ import annotations

from pathlib import Path

from pytest_plugin_setup import suite


def test_each_worker_writes_a_report_of_its_own(tmp_path: Path) -> None:
    done = suite(tmp_path, "--streamproof-report", "out", "--numprocesses", "1")
    assert "out, a folder for each worker" in done.stdout
    assert (tmp_path / "out" / "gw0" / "report.html").is_file()
