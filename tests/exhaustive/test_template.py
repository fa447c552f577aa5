"""The template of a repository, in a folder of its own: its test passes, and its workflow uses what there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

TEMPLATE = ROOT / "examples" / "template"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return shutil.copytree(TEMPLATE, tmp_path / "repository", ignore=shutil.ignore_patterns("__pycache__", ".*cache"))


def test_its_test_passes_and_fails_if_the_job_drops_too_much(repository: Path) -> None:
    job = repository / "jobs" / "revenue.py"
    wrong = repository / "jobs" / "wrong.py"
    wrong.write_text(job.read_text().replace('F.sum("cents")', 'F.max("cents")').replace("def revenue", "def other"))
    both = repository / "tests" / "test_wrong.py"
    text = (repository / "tests" / "test_revenue.py").read_text()
    text = text.replace("import as_batch", "import other_job").replace("Input, as_batch", "Input, other_job")
    text = text.replace("as_batch()", "other_job(other)").replace("test_revenue_is", "test_wrong_is")
    both.write_text("from jobs.wrong import other\n" + text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--streamproof-profile", "quick"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=300)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED tests/test_wrong.py::test_wrong_is_the_batch_s" in done.stdout
