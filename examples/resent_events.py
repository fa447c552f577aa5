"""The events of devices without repeats: a gateway without a response sends an event again, with a new time.

Events with equal device and number are repeats of one event. `wrong` also deduplicates by the time, as many jobs do so
that Spark forgets old events. So `wrong` treats a repeat with a new time as another event.
"""

from __future__ import annotations

from pyspark.sql import DataFrame


def job(events: DataFrame) -> DataFrame:
    """Return events without repeats within an hour."""
    return events.withWatermark("sent_at", "1 hour").dropDuplicatesWithinWatermark(["device", "event_id"])


def wrong(events: DataFrame) -> DataFrame:
    """Return events deduplicated by their time, too: the bug."""
    return events.withWatermark("sent_at", "1 hour").dropDuplicates(["device", "event_id", "sent_at"])
