"""The rows that each micro-batch of a query has read from its sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....reference.core.errors import BadInput
from ...generators.columns.model import Arrival, Source
from ..job.plan.plans import Plan
from .checkpoint import Checkpoint
from .delta_source import read_delta
from .file_source import read_files
from .kafka_source import read_kafka
from .reading import Again, Reading, ReadSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BatchesRead:
    """The rows that a query has read.

    Attributes:
        batches: The rows of each batch, in order.
        numbers: The id of each batch's micro-batch (None for batches up to the first micro-batch in the checkpoint).
        unreadable: The number of records whose payload isn't a row of the input's schema.
    """

    batches: Sequence[tuple[Arrival, ...]]
    numbers: Sequence[int | None]
    unreadable: int = 0


def sources_by_input(checkpoint: Checkpoint, plan: Plan, sources: Sequence[Source]) -> dict[str, str]:
    """Return the checkpoint's source folder for each input, by the input's name.

    Raises:
        BadInput: The job's sources differ from the checkpoint's.
    """
    where, names = checkpoint.files.where(), [source.name for source in sources]
    if not all(name.isdecimal() for name in checkpoint.sources):
        unknown = [name for name in names if name not in checkpoint.sources]
        if unknown or len(names) != len(checkpoint.sources):
            raise BadInput(
                f"{where} has the sources {', '.join(checkpoint.sources)}, but the inputs are {', '.join(names)}: "
                "give each Input the name of its source in the job"
            )
        return {name: name for name in names}
    # The check's own clock is also a source of the plan, but provides no columns of an input.
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
            f"{where} belongs to a query with {count} source{'s' * (count != 1)}, but the job has {len(chosen)}: give "
            "the "
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
        folders: The checkpoint's source folder of each input, from `sources_by_input`.
        sources: The job's inputs.
        readings: The format and options with which each input is read again.

    Raises:
        BadInput: A source can't be read again.
    """
    first = checkpoint.batches[0].number
    before: dict[int, list[Arrival]] = {}
    batches: dict[int, list[Arrival]] = {batch.number: [] for batch in checkpoint.batches}
    unreadable = 0
    for source in sources:
        place = ReadSource(spark, checkpoint, folders[source.name], source, readings.get(source.name, Reading()))
        for number, row in _reader(place)(place):
            if row is None:
                unreadable += 1
            elif number < first:
                before.setdefault(number, []).append(Arrival(source.name, row))
            else:
                batches[number].append(Arrival(source.name, row))
    earlier = [before[number] for number in sorted(before)]
    read = [*map(tuple, earlier), *map(tuple, batches.values())]
    return BatchesRead(read, [*[None] * len(earlier), *batches], unreadable)


def _reader(place: ReadSource) -> Callable[[ReadSource], Again]:
    """Return the function that reads a source, according to the source's offsets.

    Raises:
        BadInput: Rows of this kind of source can't be read again.
    """
    end = next((end for end in reversed(place.ends) if end is not None), None)
    if end is None or (isinstance(end, dict) and "logOffset" in end):
        return read_files
    if isinstance(end, dict) and "reservoirVersion" in end:
        return read_delta
    if isinstance(end, dict) and end and all(isinstance(one, dict) for one in end.values()):
        return read_kafka
    raise BadInput(
        f"{place.checkpoint.files.where()}: source {place.folder} has the offset {json.dumps(end)[:60]}, but only "
        "files, Kafka and Delta tables can be read again: judge this job with check_job"
    )
