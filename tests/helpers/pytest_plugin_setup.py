from __future__ import annotations

from pathlib import Path

from suites import Ran, run_suite

CONFTEST = """\
from streamproof import BadInput, Inconclusive, JobReport
import streamproof.properties.checking.jobs.check as of_jobs


def check_job(job, *inputs, expect, histories=300, seed=0, seconds=120.0, folder=None):
    if expect == "inconclusive":
        raise Inconclusive("inconclusive: too few")
    if expect == "refused":
        raise BadInput("the columns can't be read: rename them")
    return JobReport(f"{histories} histories, seed {seed}, {seconds:g} s", "what is expected", 9, 9, "batches")


of_jobs.check_job = check_job
"""
SUITE = """\
import pytest


def test_its_own_number(check_job):
    check_job(None, expect=1, histories=11)


def test_another(check_job):
    check_job(None, expect=1)


@pytest.mark.xfail
def test_unsure(check_job):
    check_job(None, expect="inconclusive")
"""


def suite(folder: Path, *options: str, tests: str = SUITE) -> Ran:
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "test_jobs.py").write_text(tests, encoding="utf-8")
    return run_suite(folder, ["-p", "no:cacheprovider", *options, "test_jobs.py"])
