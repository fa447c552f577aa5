"""The events of devices, each once: a gateway that gets no answer sends an event again, with a new time.

Events are the same if device and number are. `wrong` has the time among the columns, as is often done for Spark to
forget old ones: an event that was sent again with a new time passes for another.
"""

from __future__ import annotations

from pyspark.sql import DataFrame


def job(events: DataFrame) -> DataFrame:
    """Events without those that come again within an hour."""
    return events.withWatermark("sent_at", "1 hour").dropDuplicatesWithinWatermark(["device", "event_id"])


def wrong(events: DataFrame) -> DataFrame:
    """The same, with the time in the key."""
    return events.withWatermark("sent_at", "1 hour").dropDuplicates(["device", "event_id", "sent_at"])
