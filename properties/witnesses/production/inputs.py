"""The rows that each micro-batch of a query has read from its sources."""

from __future__ import annotations

import contextlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ....reference.core.errors import BadInput
from ...generators.columns.model import Arrival, Row, Source
from ...system.spark_versions import arrow_table_of, struct_of_arrow
from ...system.visible import first_cause, first_line, visible
from ..job.plans import Plan
from ..job.rows import rows_of
from .checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    "avro": "avro",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "orc": "orc",
    "parquet": "parquet",
    "txt": "text",
}
"""Spark's formats by the ends of files' names."""
COMPRESSED = ("gz", "bz2", "zst", "snappy", "lz4", "deflate")
FILE, BLOCK, NUMBER = "__streamproof_file", "__streamproof_block", "__streamproof_number"
KAFKA = "kafka"


@dataclass(frozen=True)
class Reading:
    """How a source is read again.

    Attributes:
        format: Spark's format; None: by the ends of the files' names.
        options: The reader's options.
    """

    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchesRead:
    """The rows that a query has read.

    Attributes:
        batches: The rows of each batch, in order.
        numbers: The id of each batch's micro-batch; None: it was before the first that the checkpoint still has.
        unreadable: The number of records whose payload is no row.
    """

    batches: Sequence[tuple[Arrival, ...]]
    numbers: Sequence[int | None]
    unreadable: int = 0


def sources_by_input(checkpoint: Checkpoint, plan: Plan, sources: Sequence[Source]) -> dict[str, str]:
    """Return the folder of the checkpoint's source for each input, by the input's name.

    Raises:
        BadInput: The job has other sources than the checkpoint.
    """
    where, names = checkpoint.files.where(), [source.name for source in sources]
    if not all(name.isdecimal() for name in checkpoint.sources):
        unknown = [name for name in names if name not in checkpoint.sources]
        if unknown or len(names) != len(checkpoint.sources):
            raise BadInput(
                f"{where} has the sources {', '.join(checkpoint.sources)}, and the inputs are {', '.join(names)}: "
                "name each Input as the job names its source"
            )
        return {name: name for name in names}
    # The check's own clock is a source of the plan, too; it has none of an input's columns.
    by_columns = [[source.name for source in sources if [*source.wire_schema.names] == [*one]] for one in plan.sources]
    order = [found for found in by_columns if found]
    left, chosen = [*names], []
    for found in order:
        name = next((name for name in found if name in left), None)
        if name is not None:
            left.remove(name)
            chosen.append(name)
    chosen += left
    if len(chosen) != len(checkpoint.sources):
        count = len(checkpoint.sources)
        raise BadInput(
            f"{where} is of a query with {count} source{'s' * (count != 1)}, and the job has {len(chosen)}: give the "
            "checkpoint of this job, and one Input for each source"
        )
    return dict(zip(chosen, checkpoint.sources, strict=True))


def read_inputs(
    spark: SparkSession,
    checkpoint: Checkpoint,
    folders: Mapping[str, str],
    sources: Sequence[Source],
    readings: Mapping[str, Reading],
) -> BatchesRead:
    """Read the rows of all committed micro-batches again.

    Args:
        spark: The session.
        checkpoint: The query's checkpoint.
        folders: The checkpoint's source of each input, as `sources_by_input` returns it.
        sources: The job's inputs.
        readings: How each input is read.

    Raises:
        BadInput: A source can't be read again, or the logs of batches that are needed are gone.
    """
    first = checkpoint.batches[0].number
    of_kafka = [name for name, folder in folders.items() if _is_kafka(checkpoint, folder)]
    if first and (len(sources) > 1 or of_kafka):
        why = "Kafka's offsets" if of_kafka else "the order of batches of several sources"
        raise BadInput(
            f"{checkpoint.files.where()} has the logs of the last {len(checkpoint.batches):,} batches alone, and "
            f"{why} before batch {first} aren't in it: set spark.sql.streaming.minBatchesToRetain to the number of "
            "batches that are to be judged, and judge the next run from its start"
        )
    before: dict[int, list[Arrival]] = {}
    batches: dict[int, list[Arrival]] = {batch.number: [] for batch in checkpoint.batches}
    unreadable = 0
    for source in sources:
        folder, reading = folders[source.name], readings.get(source.name, Reading())
        if source.name in of_kafka:
            found = _kafka_rows(spark, checkpoint, folder, source, reading)
        else:
            found = _file_rows(spark, checkpoint, folder, source, reading)
        for number, row in found:
            if row is None:
                unreadable += 1
            elif number < first:
                before.setdefault(number, []).append(Arrival(source.name, row))
            else:
                batches[number].append(Arrival(source.name, row))
    earlier = [before[number] for number in sorted(before)]
    return BatchesRead(
        [*map(tuple, earlier), *map(tuple, batches.values())], [*[None] * len(earlier), *batches], unreadable
    )


def _is_kafka(checkpoint: Checkpoint, folder: str) -> bool:
    ends = [batch.ends.get(folder) for batch in checkpoint.batches]
    end = next((one for one in reversed(ends) if one is not None), None)
    if end is None or (isinstance(end, dict) and "logOffset" in end):
        return False
    if isinstance(end, dict) and end and all(isinstance(one, dict) for one in end.values()):
        return True
    raise BadInput(
        f"{checkpoint.files.where()}: source {folder} has the offset {json.dumps(end)[:60]}, and files and Kafka are "
        "the sources that can be read again: judge such a job with check_job"
    )


def _file_rows(
    spark: SparkSession, checkpoint: Checkpoint, folder: str, source: Source, reading: Reading
) -> Iterator[tuple[int, Row | None]]:
    """Yield the rows of a file source, each with its micro-batch; before the checkpoint's first by a negative number.

    There the source's own batches count, of which each was a micro-batch.
    """
    ends = [(batch.ends.get(folder) or {}).get("logOffset", -1) for batch in checkpoint.batches]
    first, begins = checkpoint.batches[0].number, ends[0]
    numbers: dict[str, int] = {}
    for own, path in checkpoint.files_read(folder):
        if own > ends[-1]:
            continue  # a micro-batch that isn't committed
        # Of batches up to the first whose log is kept, the order alone is known.
        before = first > 0 and own <= begins
        numbers[path] = own - begins + first - 1 if before else checkpoint.batches[bisect_left(ends, own)].number
    if not numbers:
        return
    paths = [*numbers]
    form = reading.format or format_of(checkpoint.files.where(), source.name, paths)
    schema = struct_of_arrow(source.wire_schema)
    reader = spark.read.format(form).options(**reading.options).schema(schema)
    with reported_reading(f"input {source.name}"):
        table, order = in_order(reader.load([unquote(path) for path in paths]), paths)
    for row, path in zip(rows_of(table), order, strict=True):
        yield numbers[path], _with_time(source, row)


def _kafka_rows(
    spark: SparkSession, checkpoint: Checkpoint, folder: str, source: Source, reading: Reading
) -> Iterator[tuple[int, Row | None]]:
    """Yield the rows of a Kafka source, in the order of the partitions' offsets, each with its micro-batch.

    Raises:
        BadInput: The broker isn't named, the records are gone, or the input's payload isn't JSON.
    """
    from pyspark.sql import functions as F

    encoding = source.encoding
    if encoding is None or encoding.format != KAFKA or encoding.value != "json":
        raise BadInput(
            f'input {source.name} was read from Kafka: declare its payload as JSON, Input(…, format="kafka"); others '
            "can't be judged yet"
        )
    if not any(name.lower() == "kafka.bootstrap.servers" for name in reading.options):
        raise BadInput(
            f"input {source.name} was read from Kafka: say where the broker is, "
            f'reads={{"{source.name}": {{"format": "kafka", "kafka.bootstrap.servers": "host:9092"}}}}'
        )
    start, last = checkpoint.start_of(folder), checkpoint.batches[-1].ends[folder]
    if start is None:
        raise BadInput(f"{checkpoint.files.where(f'sources/{folder}/0')} is missing: copy the whole checkpoint")
    begins = {topic: {part: start.get(topic, {}).get(part, -2) for part in parts} for topic, parts in last.items()}
    options = {
        "assign": json.dumps({topic: [*map(int, parts)] for topic, parts in last.items()}),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(last),
        **reading.options,
    }
    columns = struct_of_arrow(encoding.columns)
    with reported_reading(f"input {source.name}"):
        frame = spark.read.format(KAFKA).options(**options).load()
        payload = F.from_json(F.col("value").cast("string"), columns)
        selected = frame.select(
            *(F.col(name).alias(f"__{name}") for name in ("topic", "partition", "offset", "timestamp")),
            payload.alias("payload"),
            F.get_json_object(F.col("value").cast("string"), "$").isNull().alias("__unreadable"),
        ).orderBy("__timestamp", "__topic", "__partition", "__offset")
        rows = rows_of(arrow_table_of(selected))
    of_batches = [batch.ends.get(folder) or {} for batch in checkpoint.batches]
    ends = {
        (topic, int(part)): [of_batch.get(topic, {}).get(part, -1) for of_batch in of_batches]
        for topic, parts in last.items()
        for part in parts
    }
    for row in rows:
        of_partition = ends[row["__topic"], row["__partition"]]
        number = checkpoint.batches[bisect_right(of_partition, row["__offset"])].number
        if row["__unreadable"] or row["payload"] is None:
            yield number, None
        else:
            given = {**row["payload"]}
            if encoding.is_records_time:
                given[source.time] = row["__timestamp"]
            yield number, _with_time(source, given)


def in_order(frame: DataFrame, paths: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Return the rows of files in the order of the files and of their rows, and the path of each row's file.

    Args:
        frame: The frame that reads them.
        paths: The paths of the files as Spark's logs have them.
    """
    from pyspark.sql import functions as F

    names = frame.columns
    numbers = {_plain(path): number for number, path in enumerate(paths)}
    more = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias(BLOCK)]
    table = arrow_table_of(frame.select(*(F.col(f"`{name}`") for name in names), *more))
    files = table.column(FILE).combine_chunks().dictionary_encode()
    of_files = pa.array([numbers[_plain(path)] for path in files.dictionary.to_pylist()], pa.int64())
    table = table.append_column(NUMBER, of_files.take(files.indices))
    table = table.take(pc.sort_indices(table, [(NUMBER, "ascending"), (BLOCK, "ascending")]))
    return table.select(names), [paths[number] for number in table.column(NUMBER).to_pylist()]


def _plain(path: str) -> str:
    """Return a file's address in one form: Spark writes `file:///tmp/a%20b`, and `file:/tmp/a%20b` elsewhere."""
    return re.sub("^([A-Za-z][A-Za-z0-9+.-]*):/+", r"\1:/", unquote(path))


def format_of(where: str, name: str, paths: Sequence[str]) -> str:
    """Return Spark's format of files by the ends of their names.

    Raises:
        BadInput: They have several formats, or none that is known.
    """
    found = set()
    for path in paths:
        ends = [end for end in PurePosixPath(path).name.lower().split(".")[1:] if end not in COMPRESSED]
        found.add(FORMATS.get(ends[-1], "") if ends else "")
    if len(found) == 1 and "" not in found:
        return found.pop()
    raise BadInput(
        f"{where}: the names of the files of {visible(name)} don't say their format, such as "
        f'{visible(PurePosixPath(paths[0]).name)}: give it, reads={{"{name}": "json"}}'
    )


@contextlib.contextmanager
def reported_reading(what: str) -> Iterator[None]:
    """Raise `BadInput` if Spark can't read within it.

    Args:
        what: What messages call the read rows.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        said = first_line(_root(error)).rstrip(".")
        gone = "PATH_NOT_FOUND" in said or "FileNotFoundException" in str(error)
        remedy = (
            "restore the file: the run can't be judged without the rows that it read" if gone else "mend how it is read"
        )
        raise BadInput(f"{what} can't be read again: {said}; {remedy}") from None


def _root(error: Any) -> str:
    """Return the text of an error; if it is Java's, of its first cause."""
    java = getattr(error, "java_exception", None)
    return str(error) if java is None else str(first_cause(java).toString())


def _with_time(source: Source, row: dict[str, Any]) -> Row:
    """Return a row whose event time is a timestamp."""
    form = source.encoding and source.encoding.form
    return {**row, source.time: form.time(row[source.time])} if form else row
