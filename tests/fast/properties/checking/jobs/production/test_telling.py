"""What is said of a run: which rows can't be judged, and which rows are wrong, in which batch and how often."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import RUN, Batches, copy, options
from streamproof import Inconclusive, Violated
from streamproof.properties.checking.jobs.arguments import oracle_of
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.jobs.production.judging import Judging, Wrong
from streamproof.properties.checking.jobs.production.run import Run
from streamproof.properties.checking.jobs.production.telling import report_of, violated
from streamproof.properties.checking.jobs.production.times import Uncertain
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import TWELVE_DIGITS
from streamproof.properties.witnesses.production.output import Written

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


def told(written: Callable[[list[Row]], list[Row]], job: Any = copy) -> Violated:
    """Return what is said of a run whose batches 4 to 8 have read a row each, and which has written other rows."""
    read: list[Row] = [{"user": "a", "at": datetime(2026, 1, day, tzinfo=UTC), "amount": day} for day in range(1, 6)]
    history = JobHistory((*((Arrival("clicks", one),) for one in read), ()))
    checkpoint: Any = SimpleNamespace(
        batches=[SimpleNamespace(number=number) for number in range(4, 9)], is_whole=True, running=None
    )
    rows = written(read)
    output = Written(rows, [None] * len(rows))
    given = options(job)
    check = JobCheck(given, oracle_of(lambda clicks: clicks), Variation(RUN))
    judging = Judging(check, given, Run(checkpoint, history, range(4, 9), [0] * 6, output, 0))
    (expected,) = judging.expected([history])
    return violated(judging, judging.differing(expected, rows), rows)


def sentence(said: Violated) -> str:
    return str(said).splitlines()[0]


def shown(said: Violated) -> str:
    """Return the batch of the only row that is shown to arrive, after which no batch is shown."""
    table = str(said).partition("What arrives:\n")[2].partition("\n\n")[0].splitlines()[1:]
    (row,) = [line for line in table if "no rows" not in line]
    assert table[-1] == row
    return " ".join(row.split()[:2])


def test_a_row_that_a_run_wrote_twice_is_expected_once_and_its_batch_has_the_run_s_number() -> None:
    said = told(lambda read: [*read, read[2]])
    assert re.search(r"wrote .* amount 3 twice, and the function <lambda> expects it once\.$", sentence(said))
    assert str(said).count("  both  ") == 1
    assert str(said).count("≠ only emitted") == 1
    assert shown(said) == "batch 6"
    assert " 3 times, and the function <lambda> expects it once." in sentence(
        told(lambda read: [*read, read[2], read[2]])
    )


def test_a_row_that_a_run_lost_is_shown_with_the_row_that_it_read_in_its_batch() -> None:
    said = told(lambda read: read[:2] + read[3:])
    assert "wrote no such row, and the function <lambda> expects" in sentence(said)
    assert shown(said) == "batch 6"


def test_a_job_that_is_wrong_here_too_is_shown_in_batches_of_its_own() -> None:
    def lost(batches: Batches) -> Batches:
        return [[row for row in rows if row["amount"] != 3] for rows in batches]

    said = told(lambda read: read[:2] + read[3:], lost)
    assert "Here batches are numbered from 0." in str(said)
    assert shown(said) == "batch 2"
