"""What the text of a job's plan says: delays, durations, and the column of its watermark."""

from __future__ import annotations

import pytest
from streamproof.properties.jobs.queries.clock import delays_in, derived_time, durations_in

PLAN = """
~Filter (b#25-T90000ms <= cast(at#2-T3610000ms + INTERVAL '01:00:03' HOUR TO SECOND as timestamp))
+- ~EventTimeWatermark c291d85c-e685-4d72-985e-60744ae47be7, {watermark}: timestamp, 1 hours 10 seconds
   +- ~Project [user#1, at#2 AS seen#7, at#2 + INTERVAL '05' MINUTE AS over#8, seen#7 AS again#9]
      +- StreamingRelation FileSource[/tmp/a], [user#1, at#2, amount#3L], name=<Unassigned>
"""


def test_durations_are_read_from_intervals_delays_and_words() -> None:
    minute = 60_000_000
    assert delays_in(PLAN) == [90_000_000, 3_610_000_000]
    assert {5 * minute, 3_603_000_000, 90_000_000, 60 * minute, 10_000_000} <= {*durations_in(PLAN)}
    assert durations_in("window 900000000 and 0 and 12") == [15 * minute]


@pytest.mark.parametrize(
    ("watermark", "derived"), [("at#2", None), ("seen#7", None), ("again#9", None), ("over#8", "over")]
)
def test_a_watermark_is_on_a_column_of_the_input_or_on_one_that_is_made(watermark: str, derived: str | None) -> None:
    assert derived_time(PLAN.format(watermark=watermark)) == derived
