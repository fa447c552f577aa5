"""The script that runs in a process to be killed: it starts the given queries and waits, or writes one batch.

The script's argument is a JSON file: the queries, each with its sink, folder, target and stopping point. For one batch,
the JSON file contains the sink's name, the target, the batch and the file with the rows.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from . import tracing
from .cohorts import SinkCohort
from .places import NOWHERE, Places
from .sinks import sink_named


def start_all(told: Path) -> None:
    """Start the queries, print that they started, and wait; if a query ends, write its error to a file."""
    from ...system.visible import first_line
    from ...witnesses.spark.failures import QueryFailed, reported_failures
    from ...witnesses.spark.session import spark_session
    from .playing import FaultedQuery

    asked: list[dict[str, Any]] = json.loads(told.read_text())
    spark = spark_session(cores=2 + 2 * len(asked), any_provider=True)
    jvm: Any = spark._jvm
    told.with_suffix(".pids").write_text(f"{os.getpid()} {jvm.java.lang.ProcessHandle.current().pid()}")
    watched = []

    def watch(query: Any, marker: str) -> None:
        why = ""
        try:
            with reported_failures():
                query.awaitTermination()
        except QueryFailed as failed:
            why = failed.cause
        except Exception as error:
            why = first_line(error)
        Path(f"{marker}.ended").write_text(why)

    for one in asked:
        sink = sink_named(one["sink"])
        play = FaultedQuery(spark, Path(one["folder"]), sink, SinkCohort(()), one["target"])
        play.at = Places(one["place"], one["batch"], one["marker"], waits=True)
        try:
            query = play.start()
        except Exception as error:
            Path(f"{one['marker']}.ended").write_text(first_line(error))
            continue
        thread = threading.Thread(target=watch, args=(query, one["marker"]), daemon=True)
        thread.start()
        watched.append(thread)
    for thread in watched:
        thread.join()
    spark.stop()


def write_once(name: str, target: str, batch: int, rows: str) -> None:
    """Write one batch with the sink's function for `foreachBatch`, while another process traces this process."""
    import pyarrow.parquet as pq

    sink = sink_named(name)
    assert sink.write is not None
    if sink.library:
        importlib.import_module(sink.library)  # import first, because a traced import takes seconds
    tracing.begin()
    sink.write(pq.read_table(rows), batch, target, NOWHERE)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        if len(sys.argv) == 2:
            start_all(Path(sys.argv[1]))
        else:
            write_once(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
