"""The functions of `foreachBatch` in the table, without Spark: what each leaves where it stops, and is called again."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from streamproof.properties.checking.sinks.cohorts import SCHEMA, Payments, SinkCohort
from streamproof.properties.checking.sinks.contracts import SinkContract
from streamproof.properties.checking.sinks.judging import found_in
from streamproof.properties.checking.sinks.places import BETWEEN, CHECKED, NOWHERE, WITHIN, DyingPlace, Places
from streamproof.properties.checking.sinks.sinks import SINKS

COHORT = SinkCohort([Payments(("ab", "ab", "", ""))])
FIRST, SECOND = Counter(["0", "1"]), Counter(["100", "101"])


def rows(sink: SinkContract, batch: int) -> pa.Table:
    if sink.result == "rows":
        return COHORT.table(batch)
    found = [{"history": 0, "key": key, "total": batch + 1} for key in "ab"]
    return pa.Table.from_pylist(
        found, pa.schema([*[SCHEMA.field(name) for name in ("history", "key")], ("total", "int64")])
    )


class Target:
    """A target of a sink, to which batches are written."""

    def __init__(self, name: str, folder: Path) -> None:
        self.sink, self.folder = SINKS[name], folder
        self.path = str(folder / self.sink.file)
        if name.startswith("iceberg"):
            Path(self.path).mkdir()

    def write(self, batch: int, place: DyingPlace | None = None) -> None:
        assert self.sink.write is not None
        at = NOWHERE if place is None else Places(place, batch, str(self.folder / "marker"))
        if place is None:
            self.sink.write(rows(self.sink, batch), batch, self.path, at)
            return
        with pytest.raises(RuntimeError, match="PlannedCrash"):
            self.sink.write(rows(self.sink, batch), batch, self.path, at)

    @property
    def found(self) -> Counter[str]:
        return found_in(self.sink.read(self.path), self.sink.result == "totals").get(0, Counter())


IN_PYTHON = [
    name
    for name, sink in SINKS.items()
    if sink.write is not None and sink.writer == "python" and sink.library != "pyiceberg"
]


@pytest.mark.parametrize("name", IN_PYTHON)
def test_each_batch_is_read_as_it_was_written(name: str, tmp_path: Path) -> None:
    target = Target(name, tmp_path)
    for batch in (0, 1):
        target.write(batch)
    assert target.found == (FIRST + SECOND if target.sink.result == "rows" else Counter({"a": 2, "b": 2}))


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_sink_that_promises_each_row_once_skips_or_replaces_a_repeated_batch(name: str, tmp_path: Path) -> None:
    target = Target(name, tmp_path)
    for batch in (0, 1, 1):
        target.write(batch)
    once = FIRST + SECOND if target.sink.result == "rows" else Counter({"a": 2, "b": 2})
    keeps = target.sink.promises == "exactly once" or name.startswith("guard")
    assert (target.found == once) == keeps


@pytest.mark.parametrize(
    ("name", "place", "left", "again"),
    [
        ("sqlite-append", WITHIN, FIRST, FIRST + SECOND),
        ("sqlite-by-row", WITHIN, FIRST + Counter(["100"]), FIRST + SECOND + Counter(["100"])),
        ("guard-after", WITHIN, FIRST, FIRST + SECOND),
        ("guard-after", BETWEEN, FIRST + SECOND, FIRST + SECOND + SECOND),
        ("guard-before", BETWEEN, FIRST, FIRST),
        ("guard-before", WITHIN, FIRST, FIRST),
        ("transaction", CHECKED, FIRST, FIRST + SECOND),
        ("transaction", WITHIN, FIRST, FIRST + SECOND),
        ("sqlite-upsert", WITHIN, Counter({"a": 1, "b": 1}), Counter({"a": 2, "b": 2})),
        ("duckdb-upsert", WITHIN, Counter({"a": 1, "b": 1}), Counter({"a": 2, "b": 2})),
        ("delta-txn", CHECKED, FIRST, FIRST + SECOND),
    ],
)
def test_a_function_that_stops_leaves_its_commits_and_is_called_again(
    name: str, place: DyingPlace, left: Counter[str], again: Counter[str], tmp_path: Path
) -> None:
    target = Target(name, tmp_path)
    target.write(0)
    target.write(1, place)
    assert target.found == left
    target.write(1)
    assert target.found == again


@pytest.mark.parametrize("name", ["guard-after", "guard-before", "transaction"])
def test_a_guard_that_knows_a_batch_by_its_number_drops_the_rows_of_another_query(name: str, tmp_path: Path) -> None:
    target = Target(name, tmp_path)
    target.write(0)
    assert target.sink.write is not None
    target.sink.write(COHORT.table(0, second=True), 0, target.path, NOWHERE)
    assert target.found == FIRST


def test_a_query_stops_once_at_its_place_and_nowhere_else(tmp_path: Path) -> None:
    at = Places(WITHIN, 1, str(tmp_path / "marker"))
    at.reach(WITHIN, 0)
    at.reach(BETWEEN, 1)
    assert not at.is_met
    with pytest.raises(RuntimeError):
        at.reach(WITHIN, 1)
    at.reach(WITHIN, 1)
    assert at.is_met


def test_all_tasks_wait_where_a_query_stands_still_until_they_are_let_go(tmp_path: Path) -> None:
    at = Places(WITHIN, 1, str(tmp_path / "marker"), waits=True)
    tasks = [threading.Thread(target=at.reach, args=(WITHIN, 1), daemon=True) for _ in range(2)]
    for task in tasks:
        task.start()
        task.join(0.1)
    assert (at.is_met, [task.is_alive() for task in tasks]) == (True, [True, True])
    (tmp_path / "marker.go").touch()
    for task in tasks:
        task.join(5)
    assert not any(task.is_alive() for task in tasks)
