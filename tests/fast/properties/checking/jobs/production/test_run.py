"""The times of a run: its clock, and its watermarks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from streamproof import Input
from streamproof.properties.checking.jobs.production.run import ProductionRun, _watermarks
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.plan.plans import Plan, WatermarkColumn
from streamproof.properties.witnesses.run_options import PLAIN

MINUTE_US, WATERMARK_MS = 60_000_000, 1_000_000
COLUMNS = "user string, at timestamp"


def given(*delays_us: int) -> tuple[Any, Any]:
    """Return the judge of a job with watermarks, and its options."""
    sources = [one.source for one in resolve_all([Input(COLUMNS, key="user", name="clicks")], 0)]
    times = [WatermarkColumn("at", "at", ("user", "at"), one) for one in delays_us]
    options = SimpleNamespace(runner=SimpleNamespace(sources=sources), run=PLAIN)
    return SimpleNamespace(declared=SimpleNamespace(plan=Plan(delays_us=delays_us, event_times=times))), options


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
    judge, options = given(10 * MINUTE_US)
    batches = [[at(20)], [at(30)], [at(40)]]
    reckoned = [0, 10 * 60_000, 20 * 60_000]
    assert _watermarks(run_of(batches, [4, 5, 6]), judge, options) == reckoned
    assert _watermarks(run_of(batches, [4, 5, 6], logged=[5]), judge, options) == [0, 5_000, 20 * 60_000]
    judge, options = given(10 * MINUTE_US, 15 * MINUTE_US)
    assert _watermarks(run_of(batches, [4, 5, 6]), judge, options)[1] == 10 * 60_000  # the least of several
