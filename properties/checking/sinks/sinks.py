"""The sinks in the table of sinks and faults, by name, and the sinks that the command doesn't run."""

from __future__ import annotations

from collections.abc import Mapping

from ....reference.core.errors import BadInput
from . import of_databases, of_spark, of_tables
from .contracts import SinkContract

SINKS: Mapping[str, SinkContract] = {one.name: one for one in [*of_spark.SINKS, *of_databases.SINKS, *of_tables.SINKS]}
NOT_PLAYED: Mapping[str, str] = {
    "console": "no reader sees what it prints",
    "kafka": "Spark loads its connector only when a session starts: use `invariants(Sink.kafka(start))`",
    "postgres": "it needs a server: use `invariants(Sink.postgres(start, …))`",
    "delta-spark": "no release of Delta supports PySpark 4.3",
    "iceberg-spark": "no release of Iceberg supports PySpark 4.3",
}
"""Sinks that the table lacks, and the reason."""


def sink_named(name: str) -> SinkContract:
    """Return the sink with a name.

    Raises:
        BadInput: No sink has this name, or the command doesn't run this sink.
    """
    if name in NOT_PLAYED:
        raise BadInput(f"the sink {name} can't be tested: {NOT_PLAYED[name]}")
    if name not in SINKS:
        raise BadInput(f"there is no sink {name!r}: name one of {', '.join(SINKS)}")
    return SINKS[name]
