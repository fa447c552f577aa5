"""When the rows that can't be judged make a run's verdict inconclusive."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import Inconclusive
from streamproof.properties.checking.jobs.production.judging import Wrong
from streamproof.properties.checking.jobs.production.telling import report_of
from streamproof.properties.checking.jobs.production.times import Uncertain
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.outcomes.equality import TWELVE_DIGITS

HOUR_MS = 3_600_000


def row(hour: int, total: int) -> Row:
    return {"user": "a", "at": datetime.fromtimestamp(hour * 3600, UTC), "total": total}


def judging(**of_run: Any) -> Any:
    """Return the judging of a run of ten batches, of which the first four have no logs."""
    batches = [SimpleNamespace(number=number) for number in range(4, 10)]
    run = SimpleNamespace(
        checkpoint=SimpleNamespace(batches=batches),
        history=SimpleNamespace(arrivals=[]),
        **{"otherwise": [], "lacking": (), "earlier_ms": 2 * HOUR_MS, "unreadable": 0, **of_run},
    )
    judge = SimpleNamespace(name="totals", oracle=SimpleNamespace(name="the rule"))
    options = SimpleNamespace(equality=TWELVE_DIGITS)
    return SimpleNamespace(run=run, judge=judge, options=options, not_checked=[], by_batch=True, mode="append")


def reported(written: int, changed: int, missing: int = 0, **of_run: Any) -> str:
    """Return the report on a run that wrote a row an hour, of which the first are changed, and lacks others."""
    rows, doubtful = [row(hour, 5) for hour in range(written)], Uncertain(lambda row: ("user",))
    if of_run:
        doubtful.until_ms = 2 * HOUR_MS
    differing = [Wrong(None, row(hour, total), total == 6) for hour in range(changed) for total in (5, 6)]
    differing += [Wrong(None, row(written + hour, 6), True) for hour in range(missing)]
    return str(report_of(judging(**of_run), differing, rows, doubtful))


@pytest.mark.parametrize(("changed", "missing"), [(0, 0), (3, 0), (0, 6), (2, 2)])
def test_a_run_whose_rows_are_mostly_as_expected_conforms(changed: int, missing: int) -> None:
    assert "wrote what the rule expects, in batches 0 to 9" in reported(6, changed, missing)


@pytest.mark.parametrize(
    ("changed", "missing", "says"),
    [
        (4, 0, "most of what the run .* 8 rows that differ, but depend on the order .*; 2 rows are as expected$"),
        (5, 0, "most of .*; 1 row is as expected$"),
        (6, 0, "inconclusive: what the run of totals .* 12 rows that differ, but depend on the order of the batches"),
        (0, 7, "most of what the run of totals has written can't be judged: 7 rows that differ"),
        (2, 3, "most of what the run of totals has written can't be judged: 7 rows that differ"),
    ],
)
def test_a_run_of_which_more_rows_are_in_doubt_than_as_expected_is_inconclusive(
    changed: int, missing: int, says: str
) -> None:
    with pytest.raises(Inconclusive, match=says):
        reported(6, changed, missing)


def test_a_run_that_wrote_nothing_of_what_may_be_due_is_in_doubt() -> None:
    with pytest.raises(Inconclusive, match="can't be judged: 2 rows that differ"):
        reported(0, 0, 2)
    with pytest.raises(Inconclusive, match="isn't there, and none is due"):
        reported(0, 0)


def test_rows_of_the_times_whose_rows_are_gone_count_neither_as_expected_nor_in_doubt() -> None:
    gone: dict[str, Any] = {"lacking": ["clicks"], "otherwise": None}
    assert "results with times up to 1970-01-01 02:00:00 UTC" in reported(4, 3, **gone)
    for changed in (0, 3):
        with pytest.raises(Inconclusive, match=r"can't be judged: .* clicks no longer has"):
            reported(3, changed, **gone)
