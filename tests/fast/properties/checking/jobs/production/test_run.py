"""The times of a run: its clock, its watermarks, and the bound on rows that are gone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput, Input
from streamproof.properties.checking.jobs.production.run import ProductionRun, _earlier_ms, _watermarks
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.plan.plans import EventTime, Plan
from streamproof.properties.witnesses.run_options import PLAIN

MINUTE_US, WATERMARK_MS = 60_000_000, 1_000_000
COLUMNS = "user string, at timestamp"


@pytest.mark.parametrize(
    ("form", "more", "bound_ms"),
    [
        (None, {}, WATERMARK_MS + 10 * 60_000 + 1),
        (None, {"has_sessions": True}, WATERMARK_MS + (10 + 10 + 30) * 60_000 + 1),
        ("kafka", {}, WATERMARK_MS + 10 * 60_000 + 1),
    ],
    ids=["windows", "sessions, which later rows prolong", "a payload"],
)
def test_rows_that_are_gone_count_up_to_the_next_watermark_and_its_delay(form: Any, more: Any, bound_ms: int) -> None:
    sources = [given.source for given in resolve_all([Input(COLUMNS, key="user", name="clicks", format=form)], 0)]
    time = EventTime("at", *(("at", ["user", "at"]) if form is None else (None, [])), delay_us=10 * MINUTE_US)
    plan = Plan(
        operators=frozenset({"Aggregate", "EventTimeWatermark"}),
        durations_us=[10 * MINUTE_US, 30 * MINUTE_US],
        delays_us=[10 * MINUTE_US],
        event_times=[time],
        **more,
    )
    batches = [SimpleNamespace(number=4, watermark_ms=0), SimpleNamespace(number=5, watermark_ms=WATERMARK_MS)]
    checkpoint: Any = SimpleNamespace(batches=batches)
    judge: Any = SimpleNamespace(declared=SimpleNamespace(plan=plan))
    options: Any = SimpleNamespace(runner=SimpleNamespace(sources=sources), run=PLAIN)
    assert _earlier_ms(checkpoint, judge, options, ["clicks"]) == bound_ms


def given(**more: Any) -> tuple[Any, Any, Any]:
    """Return the reader of a run: two batches of a job of windows that has a watermark of ten minutes."""
    sources = [one.source for one in resolve_all([Input(COLUMNS, key="user", name="clicks")], 0)]
    plan = Plan(
        operators=frozenset({"Aggregate", *more.get("operators", ())}),
        delays_us=more.get("delays_us", [10 * MINUTE_US]),
        event_times=[EventTime("at", "at", ("user", "at"), one) for one in more.get("delays_us", [10 * MINUTE_US])],
    )
    batches = [SimpleNamespace(number=at, watermark_ms=at) for at in range(more.get("batches", 2))]
    run = replace(PLAIN, mode=more.get("mode", "append"))
    options = SimpleNamespace(runner=SimpleNamespace(sources=sources), run=run)
    return SimpleNamespace(batches=batches), SimpleNamespace(declared=SimpleNamespace(plan=plan)), options


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, ""),
        ({"mode": "update"}, "in update mode"),
        ({"operators": ["Deduplicate"]}, "with the operator Deduplicate"),
        ({"delays_us": []}, "without a watermark of its own"),
        ({"batches": 1}, "without a watermark of its own"),
    ],
)
def test_rows_that_are_gone_have_a_bound_in_append_mode_by_a_watermark_alone(more: Any, why: str) -> None:
    asked = given(**more)
    if not why:
        assert _earlier_ms(*asked, ["clicks"]) == 1 + 10 * 60_000 + 1
        return
    with pytest.raises(BadInput, match=rf"input clicks no longer has the rows from before batch 1, and a job {why}"):
        _earlier_ms(*asked, ["clicks"])


def at(minute: int, name: str = "clicks") -> Arrival:
    return Arrival(name, {"user": "a", "at": from_microseconds(minute * MINUTE_US)})


def run_of(batches: Any, numbers: Any, **more: Any) -> ProductionRun:
    logged = [SimpleNamespace(number=number, watermark_ms=1_000 * number) for number in more.pop("logged", ())]
    checkpoint: Any = SimpleNamespace(batches=logged)
    return ProductionRun(checkpoint, JobHistory(tuple(map(tuple, batches))), numbers, (), None, 0, **more)  # type: ignore[arg-type]


def test_the_clock_of_a_run_is_the_largest_time_of_any_input_so_far() -> None:
    sources = [
        one.source for one in resolve_all([Input(COLUMNS, key="user", name=name) for name in ("clicks", "views")], 0)
    ]
    batches = [[at(5), at(3)], [at(2), at(4, "views")], [], [at(1), at(9, "views")], [at(7)]]
    clock = run_of(batches, [0, 1, 2, 3, 4]).clock(sources)
    assert [us // MINUTE_US for us in clock] == [5, 5, 5, 9, 9]


def test_a_batch_goes_by_the_watermark_of_its_log_or_by_that_which_its_rows_reach() -> None:
    _, judge, options = given()
    batches = [[at(20)], [at(30)], [at(40)]]
    reckoned = [0, 10 * 60_000, 20 * 60_000]
    assert _watermarks(run_of(batches, [4, 5, 6]), judge, options) == reckoned
    assert _watermarks(run_of(batches, [4, 5, 6], logged=[5]), judge, options) == [0, 5_000, 20 * 60_000]
    # Those of before the first whose log is kept go by its watermark, the largest of theirs.
    gone = run_of(batches, [None, 5, 6], logged=[5], otherwise=JobHistory(((),)))
    assert _watermarks(gone, judge, options) == [5_000, 5_000, 20 * 60_000]
    _, judge, options = given(delays_us=[10 * MINUTE_US, 15 * MINUTE_US])
    assert _watermarks(run_of(batches, [4, 5, 6]), judge, options)[1] == 10 * 60_000  # the least of several
