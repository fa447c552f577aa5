"""A user's sink under each fault that no crash shows, in a Spark without a JVM: wrong sinks, and right ones."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from memory_spark import memory_session
from sqlite_sinks import Rows, Write, by_key, checked_before, noted_in_memory, numbered, swallowing
from sqlite_sinks import sqlite_sink as waiting_sink
from streamproof import Input, Sink
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.laws.metamorphic.sink_fault import SINK_FAULTS
from streamproof.properties.witnesses.job.dying import faults
from streamproof.properties.witnesses.job.dying.faults import AT, FAULTS, LateWrite, Seen, zombie
from streamproof.properties.witnesses.job.query.faulted_sink import (
    CHOSEN,
    NO_FUNCTION,
    NO_KEYS,
    ONE_FOLDER,
    _why_not_two,
)
from streamproof.properties.witnesses.job.running import QueryOutput, Runner
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions

sqlite_sink = partial(waiting_sink, timeout_s=0.01)
CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
SOURCES = [given.source for given in resolve_all([CLICKS], 0)]
BATCHES = ("ab", "ac", "bd", "ab")
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def session(tmp_path: Path) -> Iterator[None]:
    with memory_session(tmp_path):
        yield


def ran(sink: Sink, fault: str = "", at: tuple[tuple[int, int], ...] = ()) -> QueryOutput:
    """Run a query over four batches of two rows, whose amounts tell them apart."""
    tables = []
    for number, users in enumerate(BATCHES):
        rows = [
            {"user": user, "at": START + timedelta(seconds=number), "amount": 10 * number + i}
            for i, user in enumerate(users)
        ]
        tables.append({"clicks": pa.Table.from_pylist(rows, SOURCES[0].wire_schema)})
    return Runner(sink, SOURCES).run(tables, (), RunOptions(fault=fault, fault_at=at, is_sink=True))


def amounts(output: QueryOutput) -> list[int]:
    ((*rows,),) = output.batches
    return sorted(row["amount"] for row in rows)


ALL = [0, 1, 10, 11, 20, 21, 30, 31]


def row_by_row(database: sqlite3.Connection, rows: Rows, batch: int, target: str) -> None:
    database.execute("COMMIT")
    for row in rows:
        database.execute("INSERT OR IGNORE INTO keyed VALUES (?, ?, ?)", row)


def json_sink(is_chained: bool) -> Sink:
    """A file for each batch; one after the first may need the first."""

    def start(clicks: Any, target: str, checkpoint: str) -> Any:
        def of_batch(rows: Any, batch: int) -> None:
            folder = Path(target)
            folder.mkdir(exist_ok=True)
            if batch and is_chained:
                (folder / "0.json").read_text()
            lines = [json.dumps({"amount": row["amount"]}) for row in rows.toArrow().to_pylist()]
            (folder / f"{batch}.json").write_text("".join(f"{line}\n" for line in lines))

        return clicks.writeStream.foreachBatch(of_batch).option("checkpointLocation", checkpoint).start()

    return Sink.json(start)


NUMBERED, CHECKED = sqlite_sink(numbered), sqlite_sink(checked_before)


@pytest.mark.parametrize(
    ("fault", "sink", "found"),
    [
        ("lost-connection", sqlite_sink(noted_in_memory), [0, 1, 20, 21, 30, 31]),
        ("full-disk", sqlite_sink(swallowing), [0, 1, 20, 21, 30, 31]),
        ("zombie", CHECKED, [0, 1, 10, 10, 11, 11, 20, 21, 30, 31]),
        ("two-queries", NUMBERED, [0, 10, 11, 30]),
        ("old-checkpoint", NUMBERED, [0, 1, 10, 11, 20, 21]),
        ("deleted-checkpoint", NUMBERED, [0, 1, 10, 11, 20, 21]),
        ("deleted-checkpoint-latest", NUMBERED, [0, 1, 10, 11, 20, 21]),
    ],
)
def test_a_wrong_sink_loses_or_doubles_rows_under_each_fault(fault: str, sink: Sink, found: Sequence[int]) -> None:
    at = {"lost-connection": ((AT, 18),), "zombie": ((AT, 18),)}.get(fault, ())
    output = ran(sink, fault, at)
    assert (amounts(output), output.fault.stuck) == (found, "")
    assert output.fault.lines == at


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "retention"])
def test_a_sink_that_ignores_known_rows_withstands_each_fault(fault: str) -> None:
    output = ran(sqlite_sink(by_key, "keyed"), fault)
    assert (amounts(output), output.fault.stuck, output.fault.unmet, output.fault.torn) == (ALL, "", "", 0)


def test_a_function_that_needs_a_removed_file_is_stuck_and_another_is_not() -> None:
    stuck, right = ran(json_sink(is_chained=True), "retention"), ran(json_sink(is_chained=False), "retention")
    assert amounts(right) == ALL
    assert right.fault.unmet == right.fault.stuck == ""
    assert amounts(stuck) == [0, 1, 10, 11]
    assert "FileNotFoundError" in stuck.fault.stuck


def test_a_reader_finds_half_a_batch_after_an_error_between_two_rows() -> None:
    output = ran(sqlite_sink(row_by_row, "keyed"), "lost-connection", ((AT, 19),))
    assert (amounts(output), output.fault.torn) == (ALL, 1)


@pytest.mark.parametrize("write", [numbered, checked_before, swallowing])
def test_without_a_fault_each_wrong_sink_holds_all_rows(write: Write) -> None:
    assert amounts(ran(sqlite_sink(write))) == ALL


def test_a_fault_happens_at_other_lines_of_the_function_in_each_run() -> None:
    outputs = [ran(sqlite_sink(by_key, "keyed"), "zombie", at) for at in CHOSEN]
    first, *others = (output.fault.lines for output in outputs)
    assert (first[-1], len(first)) == ((AT + 1, 0), 2), "the last writes the whole batch late"
    lines = [line for run in (first, *others) for _, line in run]
    assert len({*lines}) == len(lines) == 6
    law = SINK_FAULTS["zombie"]
    (part, *_) = law.variation(PLAIN, ()).parts(outputs[0])  # type: ignore[misc]
    assert (part.given, part.run.fault_at) == ([[*first[0]]], (first[0],))
    assert [one.given for one in law.variations(PLAIN)] == [[], [[0, 1]], [[0, 2]]]
    assert len(SINK_FAULTS["retention"].variations(PLAIN)) == 1


def test_an_old_query_that_is_blocked_is_named_and_does_not_block_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "JOINED_S", 0.1)
    blocked = threading.Event()
    query: Any = SimpleNamespace(
        seen=Seen(range(4)),
        late_writes=lambda: [LateWrite(blocked.wait, tmp_path / "marker")],  # type: ignore[arg-type]
        run_until=lambda batches: "",
        observe=lambda: None,
        finish=lambda: query.seen,
    )
    try:
        assert zombie(query).refusals == ["the old query: it doesn't end within 0.1 s"]
    finally:
        blocked.set()


def test_a_fault_that_cannot_happen_says_why() -> None:
    def in_files(clicks: Any, target: str, checkpoint: str) -> Any:
        return clicks.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(target)

    of_files = Sink(lambda clicks, folder: in_files(clicks, str(folder / "out"), str(folder / "c")), lambda folder: [])
    assert ran(of_files, "zombie").fault.unmet == NO_FUNCTION
    assert ran(of_files, "lost-connection").fault.unmet == NO_FUNCTION
    assert ran(of_files, "two-queries").fault.unmet == ONE_FOLDER
    assert ran(NUMBERED, "retention").fault.unmet == "each of its files is also written by later batches"


@pytest.mark.parametrize(("columns", "said"), [(("k", "k"), ""), (("k", "value"), NO_KEYS), (("value", "k"), NO_KEYS)])
def test_a_second_query_has_rows_of_its_own_where_every_input_has_its_key_as_a_column(
    columns: tuple[str, str], said: str
) -> None:
    inputs = resolve_all([Input("k string, at timestamp", key="k", name=name) for name in ("a", "b")])
    runnable: Any = SimpleNamespace(job=SimpleNamespace(_store=object()), sources=[given.source for given in inputs])
    feed: Any = SimpleNamespace(batches=[{name: pa.table({of: ["x"]}) for name, of in zip("ab", columns, strict=True)}])
    assert _why_not_two(runnable, feed) == said
    runnable.job = SimpleNamespace()
    assert _why_not_two(runnable, feed) == ONE_FOLDER
