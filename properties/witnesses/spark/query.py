"""Run an operator's query over given micro-batches, and return its output per micro-batch.

Output goes through `foreachBatch`, keyed by the batch's id, so that a repeated batch replaces its first output.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ....reference.core.errors import StreamproofError
from ....spark_impl.runtime.pages import Stored, unpacked
from ....spark_impl.runtime.processor import PACKED, STATE
from ...system.installed.spark_versions import arrow_table_of
from ..run_options import PLAIN, RunOptions
from .engine import PreparedQuery, hand_over
from .failures import QueryFailed, in_own_folder
from .session import sessions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Build: TypeAlias = "Callable[[DataFrame], DataFrame]"
AtEnd: TypeAlias = "Callable[[OperatorQuery], None]"

_INPUT = "input"


@dataclass
class StreamOutput:
    """The output of a query.

    Attributes:
        batches: `(data batch, table)` in the order of the query's own batches. The batch without data that Spark runs
            after a moved watermark counts as the next data batch, or as the last batch.
        replayed: The first and the second output of each batch that Spark ran again after a crash.
        leftover: The final rows of the state named by `state`.
        partitions: The number of shuffle partitions of stateful operators; 0 without such operators.
    """

    batches: list[tuple[int, pa.Table]] = field(default_factory=list)
    replayed: list[tuple[pa.Table, pa.Table]] = field(default_factory=list)
    leftover: list[dict[str, Any]] = field(default_factory=list)
    partitions: int = 0


def run_stream(
    spark: SparkSession,
    batches: Sequence[pa.Table],
    build: Build,
    run: RunOptions = PLAIN,
    *,
    stepwise: bool = False,
    stages: int = 1,
    at_end: AtEnd | None = None,
) -> StreamOutput:
    """Run a streaming query over the batches, in a fresh checkpoint.

    Args:
        spark: The session.
        batches: An Arrow table for each micro-batch, all with one schema; an empty table is an empty batch.
        build: A function from the streaming input to the streaming result.
        run: The stops and crashes after which the query restarts, and whether to read its state at the end.
        stepwise: Read one batch at a time, and wait for the following batch without data; ignores stops and crashes.
        stages: The number of the query's stateful operators whose state is read at the end.
        at_end: Called with the query after its end, while its checkpoint still exists.

    Raises:
        BadInput: Spark refuses the query, for example because a watermark is missing.
        StreamproofError: The query failed; the message contains the last line of Spark's error and the path of the log.
        MachineTooBusy: A Python worker didn't start in time, twice in succession.
    """

    def in_folder(folder: Path) -> StreamOutput:
        query = OperatorQuery(spark, folder, batches, build, run, stepwise)
        query.run_all()
        if run.read_state:
            for stage in range(stages):
                query.output.leftover += query.stored(stage)
        if at_end is not None:
            at_end(query)
        return query.finished()

    return in_own_folder(in_folder)


def stored_in(leftover: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[Any, ...], list[Any], Stored]]:
    """List the keys of a state with Spark's state data source, each with the key's fields and the whole entry."""
    import msgspec

    decode = msgspec.msgpack.Decoder().decode
    for row in leftover:
        for of_key, stored in unpacked(row["value"][PACKED]):
            yield tuple(decode(of_key)), decode(stored.fields), stored


def stop_queries() -> None:
    """Stop the queries of this process; threads that wait for the queries fail."""
    with contextlib.suppress(Exception):  # the JVM may have died
        for session in sessions():
            for query in session.streams.active:
                query.stop()


class OperatorQuery(PreparedQuery):
    """An operator's query over given batches, and its checkpoint.

    Attributes:
        output: Its output.
        tables: The query's output in each micro-batch.
        build: A function from the streaming input to the streaming result.
        stepwise: Whether the query reads one batch at a time.
    """

    refused = (
        "Spark refuses the query: ",
        {"watermark": 'declare a watermark, such as .withWatermark("time", "5 milliseconds"), before the operator'},
    )

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        batches: Sequence[pa.Table],
        build: Build,
        run: RunOptions,
        stepwise: bool,
    ) -> None:
        super().__init__(spark, folder, [{_INPUT: table} for table in batches], PLAIN if stepwise else run)
        self.output = StreamOutput()
        self.tables: dict[int, pa.Table] = {}
        self.build, self.stepwise = build, stepwise

    def start(self) -> StreamingQuery:
        """Declare the query and start it, as `PreparedQuery.start` does."""
        writer = self.build(self.stream(_INPUT)).writeStream.foreachBatch(self.dying(self._write))
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer if self.stepwise else writer.trigger(availableNow=True)).start()

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        table = arrow_table_of(frame)
        before = self.tables.get(batch_id)
        if before is not None:
            self.output.replayed.append((before, table))
        self.tables[batch_id] = table

    def run_all(self) -> None:
        """Run all batches, as `PreparedQuery.run_all` does.

        Raises:
            StreamproofError: The query failed, or didn't reach a batch of a planned crash.
        """
        if self.stepwise:
            with self.running() as query:
                for number in range(len(self.batches)):
                    self.make_available(number + 1)
                    query.processAllAvailable()
            return
        super().run_all()
        for crash in self.deaths.planned:
            if crash.batch < len(self.batches):
                raise StreamproofError(
                    f"the query should crash in {crash}, but never reached it: name a batch that it runs"
                )
        self.deaths.planned.clear()

    @property
    def stages(self) -> int:
        """The number of the query's stateful operators."""
        return sum(path.name.isdigit() for path in (self.checkpoint / "state").glob("*"))

    def stored(self, stage: int) -> list[dict[str, Any]]:
        """Read the state of a stateful operator; operators are counted from the last."""
        reader = self.spark.read.format("statestore").option("path", str(self.checkpoint))
        rows = reader.option("stateVarName", STATE).option("operatorId", stage).load().collect()
        return [row.asDict(recursive=True) for row in rows]

    def refusal(self, build: Build) -> str | None:
        """Start another declaration from the checkpoint, on an empty batch; return the start's failure, or None.

        A query that wrote output, or committed a batch, before its failure counts as a successful start.
        """
        hand_over(self.batches[0][_INPUT].slice(0, 0), self.available, self.folders[_INPUT])
        self.available += 1
        own, written, committed = self.build, dict(self.tables), self.committed()
        self.build = build
        try:
            self.drained()
        except QueryFailed as failed:
            return str(failed) if (self.tables, self.committed()) == (written, committed) else None
        finally:
            self.build, self.tables = own, written
        return None

    def committed(self) -> set[str]:
        """List the committed batches."""
        return {path.name for path in (self.checkpoint / "commits").glob("[0-9]*")}

    def place(self, batch_id: int) -> tuple[int, bool]:
        """Return the newest file that a micro-batch of the query has read, and whether the file belongs to the
        micro-batch.
        """

        def offset(number: int) -> int:
            if number < 0:
                return -1
            path = self.checkpoint / "offsets" / str(number)
            try:
                return int(json.loads(path.read_text().splitlines()[-1])["logOffset"])
            except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
                why = getattr(error, "strerror", None) or "it holds no offset"
                raise StreamproofError(
                    f"the checkpoint {self.checkpoint} is damaged: offsets/{number}: {why}; run it again, on an "
                    "intact disk (TMPDIR or --shared names another folder)"
                ) from None

        return offset(batch_id), offset(batch_id) != offset(batch_id - 1)

    def finished(self) -> StreamOutput:
        """Return the rows that the query wrote, and its state."""
        last = len(self.batches) - 1
        self.output.partitions = sum(path.name.isdigit() for path in (self.checkpoint / "state" / "0").glob("*"))
        for batch_id in sorted(self.tables):
            newest, own = self.place(batch_id)
            self.output.batches.append((newest if own else min(newest + 1, last), self.tables[batch_id]))
        return self.output
