"""The common options of commands, and the files that their arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...reference.core.errors import BadInput
from ..witnesses.kafka.versions import DEFAULT, OLDEST, VERSION_VARIABLE
from ..witnesses.spark.platform.cluster import MASTER_VARIABLE, PARTITIONS_VARIABLE, SHARED_VARIABLE

CounterexamplesFolder = Annotated[
    Path, typer.Option("--findings", help="The folder that counterexamples are written to and replayed from.")
]
Seed = Annotated[int, typer.Option(help="The seed of the random histories.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar=MASTER_VARIABLE,
        help="Run on this Spark cluster: spark://HOST:PORT, local-cluster[WORKERS,CORES,MEGABYTES], yarn or k8s://….",
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        envvar=PARTITIONS_VARIABLE,
        help="The number of shuffle partitions: by default 2, or 1 in a check of operators.",
    ),
]
Shared = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        envvar=SHARED_VARIABLE,
        help="A folder that this machine and all workers see under one path; needed if the workers are other machines.",
    ),
]
KafkaVersion = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        envvar=VERSION_VARIABLE,
        help=f"The release of Kafka Streams to run, such as 3.9.0, any from {'.'.join(map(str, OLDEST))} on; "
        f"{DEFAULT} by default.",
    ),
]
ReportFolder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Write report.html, .txt, .json and .sarif, and junit.xml into this folder."),
]

of_job = partial(typer.Option, rich_help_panel="A job of your own")
Inputs = Annotated[
    list[str] | None,
    of_job(
        metavar="[NAME=]COLUMNS",
        help='The columns of an input, "user string, at timestamp, amount bigint"; a parquet or CSV file of '
        "sample rows; or module:NAME of an Input. Once for each input.",
    ),
]
Keys = Annotated[
    list[str] | None,
    of_job(metavar="COLUMN[,…]", help="The columns of an input's key; once for all inputs, or once for each."),
]
Times = Annotated[
    list[str] | None,
    of_job(
        metavar="COLUMN",
        help=("The column of an input's event time, if several columns are timestamps; may be repeated, like --key."),
    ),
]
TimeFormats = Annotated[
    list[str] | None,
    of_job(
        metavar="FORM",
        help="The format of an event time that isn't a timestamp: s, ms, us since 1970, or a strftime pattern; "
        "may be repeated, like --key.",
    ),
]
Formats = Annotated[
    list[str] | None,
    of_job(
        metavar="FORMAT",
        help="The format of an input's records: kafka, kinesis, eventhubs, pubsub, pulsar, or text; by default the "
        "job gets the columns. May be repeated, like --key.",
    ),
]
Values = Annotated[
    list[str] | None,
    of_job(
        metavar="VALUE",
        help="The payload of the records: json (default), csv, text, or debezium; may be repeated, like --key.",
    ),
]
Static = Annotated[list[str] | None, of_job(metavar="NAME=FILE", help="A static table: a parquet or CSV file.")]
Expect = Annotated[
    str | None,
    of_job(
        metavar="WHAT",
        help="batch: the same job as a batch; FILE.sql: a statement for DuckDB; or module:NAME of a rule, a function, "
        "a class, or an oracle. By default, the check tests the invariants of every correct job.",
    ),
]
OutputMode = Annotated[
    str | None,
    of_job(help="The output mode: append, update or complete; by default a script's own, and append for a function."),
]
Query = Annotated[
    str | None,
    of_job(metavar="NAME", help="The query to check, if a script starts several queries: its name, or its index."),
]
Arguments = Annotated[
    list[str] | None,
    of_job(metavar="TEXT", help="A command-line argument of a script, as --argument=--delay --argument=5m."),
]
Trigger = Annotated[str, of_job(help="The query's trigger: default, or available_now.")]
Timeouts = Annotated[
    list[str] | None,
    of_job(
        metavar="DURATION", help='The length of a timeout or timer of processing time, "30 minutes"; once for each.'
    ),
]
Verbose = Annotated[
    bool | None, of_job("--verbose", "-v", help="Print all that was not checked, and all notes on the plan.")
]
OutOfOrder = Annotated[str | None, of_job(metavar="DURATION", help='How far out of order events may be: "10 minutes".')]
Seconds = Annotated[
    float | None,
    of_job(
        min=1,
        help="Time limit of a query, and of all histories that run alone, 120 by default; of a script whose inputs are "
        "inferred, of the whole check, by default 150 from the start of the command.",
    ),
]


def files_of(paths: Sequence[Path], what: str) -> list[Path]:
    """Return the files that the arguments name; for a folder, return its `*.jsonl` files, in sorted order.

    Raises:
        BadInput: A folder contains no `*.jsonl` files; `what` names the expected content in the message.
    """
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not found:
            raise BadInput(f"{path}: the folder has no {what}, which end in .jsonl")
        files += found
    return files
