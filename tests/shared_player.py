"""Plays histories as a shared query does, without Spark: the real `SharedProcessor`, over groups in memory."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from logic_player import Memory
from pyspark import TaskContext
from pyspark.sql import Row
from streamproof.properties.laws import runs
from streamproof.properties.runner import check
from streamproof.properties.witnesses.base import PLAIN, RunOptions
from streamproof.properties.witnesses.spark import shared, witness
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.shared import (
    PARTITION,
    Play,
    SharedOutput,
    _logics,
    _read,
    groups_of,
    pack_plays,
)
from streamproof.spark_impl.runtime.shared import CLOCK, GROUP, PACKED, STAGE, SharedProcessor

SCHEMA = pa.schema([(GROUP, pa.int32()), (PACKED, pa.binary()), (PARTITION, pa.int32())])


def processor_of(memory: Memory, *arguments: Any) -> SharedProcessor:
    """Return a processor of a group, opened; `arguments` as of `SharedProcessor`."""
    processor = SharedProcessor(*arguments)
    processor.init(memory)  # type: ignore[arg-type]
    return processor


def served(processor: SharedProcessor, memory: Memory, group: int, rows: Iterable[bytes]) -> list[bytes]:
    """Serve a group in one batch, as Spark does: its rows, then each timer that is due."""
    binaries = [(packed,) for packed in rows]
    emitted: list[Row] = []
    if binaries:
        emitted += processor.handleInputRows((group,), iter(binaries), memory)  # type: ignore[arg-type]
    for timer in sorted(timer for timer in memory.timers if timer <= memory.clock):
        memory.timers.remove(timer)
        emitted += processor.handleExpiredTimer((group,), memory, None)
    return [row.packed for row in emitted]


def share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each definition have its own query, so that what stands in for `QueryWitness.run` is asked."""
    for module in (runs, witness):
        monkeypatch.setattr(module, "can_share", lambda history: False)


def play_in_memory(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Let shared queries be played in memory; return how they are run, filled as they are."""
    asked: list[RunOptions] = []

    def played(plays: Sequence[Play], run: RunOptions = PLAIN) -> SharedOutput:
        asked.append(run)
        found = play_shared(plays, run)
        return found if run.read_state else replace(found, state=[[] for _ in plays])

    monkeypatch.setattr(shared, "_run_query", played)
    monkeypatch.setattr(check, "spark_session", lambda: None)
    return asked


def play_all(plays: Sequence[Play], run: RunOptions = PLAIN) -> SharedOutput:
    """Return what shared queries emit of histories, as `run_shared` does."""
    with pytest.MonkeyPatch.context() as patch:
        play_in_memory(patch)
        return shared.run_shared(plays, run)


def play_shared(plays: Sequence[Play], run: RunOptions = PLAIN) -> SharedOutput:
    """Return what one shared query emits of histories, each batch's, and what is left in its state."""
    with _ONE_TASK:
        return _Query(plays, run).played()


_ONE_TASK = threading.Lock()
"""A process has one task context, and a check plays queries in several threads."""


_QUERIES = count()


class _Task:
    """What a task knows of itself."""

    partition = 0

    def __init__(self, query: str) -> None:
        self.query = query

    def partitionId(self) -> int:
        return self.partition

    def getLocalProperty(self, name: str) -> str | None:
        return {"sql.streaming.queryId": self.query}.get(name)


class _Query:
    """One shared query, which stops, crashes and starts again as Spark's does."""

    def __init__(self, plays: Sequence[Play], run: RunOptions) -> None:
        self.plays, self.run = plays, run
        self.tables = [table.to_pylist() for table in pack_plays(plays, run.state_groups)]
        self.memories: dict[tuple[int, int], Memory] = defaultdict(Memory)
        self.output = StreamOutput(partitions=run.partitions or 2)
        self.clock = self.served_until = 0
        self.task = _Task(f"query {next(_QUERIES)}")

    def played(self) -> SharedOutput:
        last, seen = len(self.tables) - 1, -1
        for stop in [*sorted(min(stop, last) for stop in self.run.stop_after), last]:
            self.start()
            for number in range(seen + 1, stop + 1):
                crashes = self.run.crash_in.count(number)
                before, served_until = deepcopy(self.memories) if crashes else self.memories, self.served_until
                written = self.batch(self.tables[number])
                for _ in range(crashes):
                    self.start()
                    self.memories, self.served_until = deepcopy(before), served_until
                    again = self.batch(self.tables[number])
                    self.output.replayed.append((written, again))
                    written = again
                self.output.batches.append((number, written))
                self.clock = max([self.clock, *(row[CLOCK] for row in self.tables[number])])
            if self.clock > self.served_until:  # a batch without data follows a moved watermark
                self.output.batches.append((min(stop + 1, last), self.batch([])))
            seen = stop
        self.output.leftover = [{"value": {PACKED: one.state[0]}} for one in self.memories.values() if one.state]
        return _read(self.plays, self.output, groups_of(self.plays, self.run.state_groups))

    def start(self) -> None:
        self.logics, self.logic_of = _logics(self.plays)

    def batch(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Run the stages of a batch; return what is written."""
        stages = max(len(logic.stages) for logic in self.logics)
        passed: dict[int, list[bytes]] = {}
        for stage in range(stages):
            taken = defaultdict(list, passed)
            for row in rows:
                if stages == 1 or row[STAGE] == stage:
                    taken[row[GROUP]].append(row[PACKED])
            passed = {}
            for group in {*taken, *(group for group, of_stage in self.memories if of_stage == stage)}:
                memory = self.memories[group, stage]
                memory.clock = self.clock if stages == 1 else 0
                processor = processor_of(memory, self.logics, self.logic_of, stage)
                self.task.partition = group % self.output.partitions
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(TaskContext, "_taskContext", self.task)
                    passed[group] = served(processor, memory, group, taken[group])
        self.served_until = self.clock
        written = [
            {GROUP: group, PACKED: packed, PARTITION: group % self.output.partitions}
            for group, binaries in passed.items()
            for packed in binaries
        ]
        return pa.Table.from_pylist(written, SCHEMA)
