"""First steps on whatever PySpark is installed: the job of docs/jobs.md, and jobs that break the contract."""

from __future__ import annotations

from typing import Any

import pytest
from doc_pages import ROOT, blocks_of
from streamproof import BadInput, Input, MissingTool, Violated, check, check_job, session_windows
from streamproof.properties.system.installed.requirements import minor_of
from streamproof.spark_impl.runtime.required import OLDEST

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
HISTORIES = 100


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Run the first file of docs/jobs.md, and return its names."""
    (text,) = [block.text for block in blocks_of("docs/jobs.md") if block.notes.get("file") == "test_visits.py"]
    names: dict[str, Any] = {}
    exec(compile(text, str(ROOT / "test_visits.py"), "exec"), names)
    return names


def test_the_page_s_job_differs_from_what_is_expected_of_it(page: dict[str, Any]) -> None:
    with pytest.raises(Violated) as failure:
        page["test_visits"](check_job)
    assert len(failure.value.counterexample.history.arrivals) <= 3


def test_the_page_s_job_conforms_to_what_it_says(page: dict[str, Any]) -> None:
    total = {"total": ("sum", "amount")}
    rule = session_windows(gap="30 minutes", delay="1 minute", aggregates=total)
    assert check_job(page["visits"], CLICKS, expect=rule, histories=HISTORIES).comparing == "batches"


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (lambda clicks: None, "returned None: return the streaming DataFrame"),
        (lambda clicks: clicks.sparkSession.range(1), "returned a batch DataFrame"),
        (lambda clicks: clicks.select("nope"), "is refused by Spark: .*`nope`"),
        (lambda clicks: clicks.writeStream.format("noop").start(), "returned a query that it had started"),
        (lambda clicks: clicks.groupBy("user").count(), "Spark refuses the job's query: .*watermark"),
    ],
    ids=["none", "a batch", "no such column", "a query", "no watermark"],
)
def test_a_job_that_breaks_the_contract_is_one_clear_message(job: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_job(job, CLICKS, expect="select user, amount from clicks", histories=20)


@pytest.mark.skipif(minor_of("pyspark") == OLDEST, reason="this PySpark has all that the twelve operators need")
def test_the_ten_operators_are_refused_on_an_older_pyspark() -> None:
    with pytest.raises(MissingTool, match=rf"the twelve operators of streamproof need PySpark {OLDEST} or newer, but "):
        check("session_windows", histories=10)
