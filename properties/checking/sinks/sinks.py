"""The sinks of the table, by name, and those that aren't played."""

from __future__ import annotations

from collections.abc import Mapping

from ....reference.core.errors import BadInput
from . import of_databases, of_spark, of_tables
from .contracts import SinkContract

SINKS: Mapping[str, SinkContract] = {one.name: one for one in [*of_spark.SINKS, *of_databases.SINKS, *of_tables.SINKS]}
NOT_PLAYED: Mapping[str, str] = {
    "console": "nothing reads what it has printed",
    "kafka": "Spark takes its connector only when a session starts: `invariants(Sink.kafka(start))` asks it",
    "postgres": "it needs a server: `invariants(Sink.postgres(start, …))` asks it",
    "delta-spark": "no release of Delta is for PySpark 4.3",
    "iceberg-spark": "no release of Iceberg is for PySpark 4.3",
}
"""Further sinks, and the reason why they aren't in the table."""


def sink_named(name: str) -> SinkContract:
    """Return a sink.

    Raises:
        BadInput: No sink has this name, or the sink isn't played.
    """
    if name in NOT_PLAYED:
        raise BadInput(f"the sink {name} isn't played: {NOT_PLAYED[name]}")
    if name not in SINKS:
        raise BadInput(f"there is no sink {name!r}: name some of {', '.join(SINKS)}")
    return SINKS[name]
