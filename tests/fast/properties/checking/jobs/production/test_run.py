"""The bound on rows that are gone: up to which time results may depend on them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import Input
from streamproof.properties.checking.jobs.production.run import _earlier_ms
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
