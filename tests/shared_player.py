"""Plays histories as a shared query does, without Spark: the real `SharedProcessor`, over groups in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from logic_player import Memory
from pyspark.sql import Row
from streamproof.properties.laws import runs
from streamproof.properties.witnesses.base import PLAIN, RunOptions
from streamproof.properties.witnesses.spark import witness
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.shared import Play, SharedOutput, _logics, _read, pack_plays, shared_queries
from streamproof.spark_impl.runtime.shared import CLOCK, GROUP, PACKED, STAGE, SharedProcessor

SCHEMA = pa.schema([(GROUP, pa.int32()), (PACKED, pa.binary())])


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


def play_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let shared queries be played in memory; without stops, crashes and partitions."""
    monkeypatch.setattr(runs, "run_shared", play_all)
    monkeypatch.setattr(witness, "run_shared", play_all)


def play_all(plays: Sequence[Play], run: RunOptions = PLAIN) -> SharedOutput:
    """Return what shared queries emit of histories, as `run_shared` does, and the state at the end where it is read."""
    assert not run.is_rerun
    nothing: list[Any] = [None] * len(plays)
    found = SharedOutput(*(list(nothing) for _ in range(4)))
    for query in shared_queries(plays):
        own = play_shared([plays[number] for number in query])
        found.queries += own.queries
        for index, number in enumerate(query):
            found.outcomes[number], found.changes[number] = own.outcomes[index], own.changes[index]
            found.state[number], found.rewritten[number] = own.state[index] if run.read_state else [], set()
    return found


def play_shared(plays: Sequence[Play]) -> SharedOutput:
    """Return what one shared query emits of histories, each batch's, and what is left in its state."""
    logics, logic_of = _logics(plays)
    stages = max(len(logic.stages) for logic in logics)
    memories: dict[tuple[int, int], Memory] = defaultdict(Memory)
    output = StreamOutput()
    clock = 0
    tables = [table.to_pylist() for table in pack_plays(plays)]
    for number, rows in enumerate([*tables, []]):
        passed: dict[int, list[bytes]] = {}
        for stage in range(stages):
            taken = defaultdict(list, passed)
            for row in rows:
                if stages == 1 or row[STAGE] == stage:
                    taken[row[GROUP]].append(row[PACKED])
            passed = {}
            for group in {*taken, *(group for group, of_stage in memories if of_stage == stage)}:
                memory = memories[group, stage]
                memory.clock = clock if stages == 1 else 0
                processor = processor_of(memory, logics, logic_of, stage)
                passed[group] = served(processor, memory, group, taken[group])
        written = [{GROUP: group, PACKED: packed} for group, binaries in passed.items() for packed in binaries]
        output.batches.append((min(number, len(tables) - 1), pa.Table.from_pylist(written, SCHEMA)))
        clock = max([clock, *(row[CLOCK] for row in rows)])
    output.leftover = [{"value": {PACKED: one.state[0]}} for one in memories.values() if one.state is not None]
    return _read(plays, output)
