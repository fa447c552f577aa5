"""Plays histories as a shared query does, without Spark: the real processor, over groups in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from memory_runtime import Came, Groups, Row, by_group, came, decode, sent
from pyspark import TaskContext
from pyspark.sql import types as T
from streamproof.properties.checking import check
from streamproof.properties.laws import runs
from streamproof.properties.registration.bindings import KEY, ORDER, TIMESTAMP, VALUE
from streamproof.properties.witnesses.run_options import PLAIN, Crash, RunOptions
from streamproof.properties.witnesses.spark import shared, witness
from streamproof.properties.witnesses.spark.answers import Answers
from streamproof.properties.witnesses.spark.dispatch import ROWS, DispatchProcessor
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.shared import (
    CLOCK,
    HISTORY,
    PARTITION,
    STAGE,
    Play,
    _read,
    dispatched_of,
    groups_of,
    tables_of,
)
from streamproof.spark_impl.runtime.codec import Anything, encode
from streamproof.spark_impl.runtime.processor import PACKED, Stage, StageInput

CHANGELOG = pa.schema(
    [
        (HISTORY, pa.int32()),
        (KEY, pa.string()),
        ("window", pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("change", pa.string()),
        ("reason", pa.string()),
        ("cause", pa.int64()),
        ("ordinal", pa.int32()),
        (PARTITION, pa.int32()),
    ]
)


def share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each definition have its own query, so that what stands in for `QueryWitness.run` is asked."""
    for module in (runs, witness):
        monkeypatch.setattr(module, "can_share", lambda history: False)


def play_in_memory(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Let shared queries be played in memory; return how they are run, filled as they are."""
    asked: list[RunOptions] = []

    def played(plays: Sequence[Play], run: RunOptions = PLAIN) -> Answers:
        asked.append(run)
        found = play_shared(plays, run)
        return found if run.read_state else replace(found, left=[[] for _ in plays])

    monkeypatch.setattr(shared, "_run_query", played)
    monkeypatch.setattr(check, "spark_session", lambda: None)
    return asked


def play_all(plays: Sequence[Play], run: RunOptions = PLAIN) -> Answers:
    """Return what shared queries emit of histories, as `run_shared` does."""
    with pytest.MonkeyPatch.context() as patch:
        play_in_memory(patch)
        return shared.run_shared(plays, run)


def play_shared(plays: Sequence[Play], run: RunOptions = PLAIN) -> Answers:
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
        self.tables = [table.to_pylist() for table in tables_of(plays)]
        self.count = groups_of(plays, run.state_groups)
        self.groups = [Groups(self.count, DispatchProcessor) for _ in dispatched_of(plays)]
        self.output = StreamOutput(partitions=run.partitions or 2)
        self.clock = self.served_until = 0
        self.task = _Task(f"query {next(_QUERIES)}")

    def played(self) -> Answers:
        last, seen = len(self.tables) - 1, -1
        for stop in [*sorted(min(stop, last) for stop in self.run.stop_after), last]:
            self.start()
            for number in range(seen + 1, stop + 1):
                crashes = self.run.crash_in.count(Crash(number))
                before, served_until = deepcopy(self.groups) if crashes else self.groups, self.served_until
                written = self.batch(self.tables[number])
                for _ in range(crashes):
                    self.start()
                    self.groups, self.served_until = deepcopy(before), served_until
                    again = self.batch(self.tables[number])
                    self.output.replayed.append((written, again))
                    written = again
                self.output.batches.append((number, written))
                self.clock = max([self.clock, *(row[CLOCK] for row in self.tables[number] if row[CLOCK] is not None)])
            if self.clock > self.served_until:  # a batch without data follows a moved watermark
                self.output.batches.append((min(stop + 1, last), self.batch([])))
            seen = stop
        states = [memory.state for groups in self.groups for memory in groups.memories.values()]
        self.output.leftover = [{"value": {PACKED: state[0]}} for state in states if state]
        return _read(self.plays, self.output, self.count)

    def start(self) -> None:
        self.dispatched = dispatched_of(self.plays)

    def batch(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Run the stages of a batch; give what is written."""
        messages: list[Row] = []
        written: list[dict[str, Any]] = []
        count = len(self.dispatched)
        for number, (dispatch, hop) in enumerate(self.dispatched):
            place = T.StructType([T.StructField(f"{step}", T.LongType()) for step in range(number + 2)])
            order = T.LongType() if count == 1 else place
            sides = [StageInput(name, order, Anything()) for name in (ROWS, "messages")]
            stage = Stage(dispatch, sides, [], T.StructType(), hop if number + 1 < count else None)
            taken = messages + [_row(row, number, count) for row in rows if count == 1 or row[STAGE] == number]
            messages = []
            for group, own in by_group(taken, self.count).items():
                self.task.partition = group % self.output.partitions
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(TaskContext, "_taskContext", self.task)
                    binaries = self.groups[number].serve(group, stage, own, self.clock if count == 1 else 0)
                if number + 1 < count:
                    messages += [Row(*message, side=1) for message in sent(binaries)]
                else:
                    written += [_written(change, self.task.partition) for change in came(binaries)]
        self.served_until = self.clock
        return pa.Table.from_pylist(written, CHANGELOG)


def _row(row: dict[str, Any], stage: int, stages: int) -> Row:
    value = None if row[VALUE] is None else decode(row[VALUE])
    order = row[ORDER] if stages == 1 else [row[ORDER], row[TIMESTAMP], *[-1] * stage]
    return Row((row[HISTORY], row[KEY]), row[TIMESTAMP], order, value)


def _written(change: Came, partition: int) -> dict[str, Any]:
    one = change.emitted
    cause = one.cause[0] if isinstance(one.cause, list) else one.cause
    window = None if one.start is None or one.end is None else {"start": 1000 * one.start, "end": 1000 * one.end}
    return {
        HISTORY: change.key[0],
        KEY: change.key[1],
        "window": window,
        "value": None if one.value is None else encode(one.value),
        "timestamp": None if one.timestamp is None else 1000 * one.timestamp,
        "change": one.change,
        "reason": one.reason,
        "cause": cause,
        "ordinal": change.ordinal,
        PARTITION: partition,
    }
