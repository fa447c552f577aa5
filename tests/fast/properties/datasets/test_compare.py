from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.datasets.compare import compare_data, history_of
from streamproof.properties.datasets.data import DataSet
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.witnesses.base import Witness
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.properties.witnesses.reference import ReferenceWitness
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry

OPTIONS = {"gap_ms": 10, "grace_ms": 5}


@dataclass(frozen=True)
class StandIn(Witness):
    """What stands in for a witness: it answers as the reference does, but for a change of its entries or its table."""

    name: str = "spark"
    change: Callable[[list[Entry]], list[Entry]] = list
    grain: Grain = Grain.BATCH
    more: float | None = None

    def refuses(self, history: History) -> str | None:
        return "no null keys here" if self.name == "refusing" else None

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        (outcome,) = ReferenceWitness().evaluate(histories)
        if self.more is not None:
            table = {row: (value + self.more, at) for row, (value, at) in outcome.result.items()}
            return [Outcome("mine", Grain.END, final=table)]
        return [replace(outcome, grain=self.grain, entries=self.change(outcome.entries))]


REFERENCE, SPARK, DUCKDB = ReferenceWitness(), StandIn(), DuckDBWitness()


def data_of(*rows: tuple[str | None, int], values: pa.Array | None = None) -> DataSet:
    columns = [
        pa.array([key for key, _ in rows], pa.string()),
        pa.nulls(len(rows), pa.int64()) if values is None else values,
        pa.array([timestamp for _, timestamp in rows], pa.int64()),
        pa.array(range(len(rows)), pa.int64()),
    ]
    return DataSet("mine", pa.table(columns, names=["key", "value", "timestamp", "order"]))


def disordered(rows: int = 300) -> DataSet:
    draw = random.Random(11)
    drawn = [(draw.choice(["a", "b", "c", None]), index + draw.randrange(60)) for index in range(rows)]
    return data_of(*drawn, values=pa.array([draw.randrange(9) for _ in range(rows)], pa.int64()))


@pytest.mark.parametrize(
    ("aggregate", "emit", "late"),
    [
        ("count", "update", "merged"),
        ("sum", "close", "own"),
        ("min", "update", "own"),
        ("max", "close", "merged"),
        ("list", "update", "own"),
        ("list", "close", "merged"),
    ],
)
def test_witnesses_that_agree_conform(aggregate, emit, late):
    options = {**OPTIONS, "aggregate": aggregate, "emit": emit, "late": late}
    found = compare_data(disordered(), options, [REFERENCE, SPARK, DUCKDB])
    assert (found.verdict, found.differences) == ("conforms", [])
    assert found.why == f"reference and spark, duckdb agree on {found.sessions} sessions."
    assert (found.rows, found.batches) == (300, 12)
    assert found.sessions > 10
    assert set(found.seconds) == {"reference", "spark", "duckdb"}


def test_changes_tombstones_merges_and_dropped_records_are_counted():
    # The third record joins two sessions; the last but one comes when its session is closed.
    data = data_of(("a", 0), ("a", 20), ("a", 10), ("b", 100), ("a", 50), (None, 7))
    found = compare_data(data, {**OPTIONS, "grace_ms": 30}, [REFERENCE, SPARK], batches=6)
    assert (found.changes, found.tombstones, found.merges, found.sessions) == (6, 2, 1, 2)
    assert found.dropped == {name: {"late": 1, "null key": 1} for name in ("reference", "spark")}


def test_merges_are_unknown_where_no_tombstone_shows_them():
    assert compare_data(disordered(), {**OPTIONS, "emit": "close"}, [REFERENCE, DUCKDB]).merges is None
    assert compare_data(disordered(), OPTIONS, [SPARK, DUCKDB]).merges is None


def test_the_order_of_arrival_is_cut_into_batches_of_equal_size_to_within_a_row_and_none_is_empty():
    rows = [("a", index) for index in range(10)]
    history = history_of(data_of(*rows, values=pa.array(range(10), pa.int64())), OPTIONS, 4)
    assert [record.timestamp for record in history.records] == list(range(10))
    assert {record.value for record in history.records} == {None}, "a count reads none"
    assert sorted(map(len, history.batches)) == [2, 2, 3, 3]
    assert compare_data(data_of(*rows[:2]), OPTIONS, [REFERENCE, DUCKDB]).batches == 2, "no more than rows"


def test_swapped_changes_of_a_key_in_a_batch_are_a_violation():
    def swap(entries: list[Entry]) -> list[Entry]:
        return [entries[0], entries[1], entries[3], entries[2], *entries[4:]]

    data = data_of(("a", 0), ("a", 20), ("a", 10))
    found = compare_data(data, {**OPTIONS, "grace_ms": 50}, [REFERENCE, StandIn(change=swap), DUCKDB], batches=1)
    assert found.verdict == "violated"
    assert found.why == "1 difference between reference and spark."
    ((witness, difference),) = found.differences
    assert (found.witnesses[0], witness, difference.key) == ("reference", "spark", "a")


def test_only_the_first_twenty_differences_are_shown_and_all_are_counted():
    rows = [("a", 100 * index) for index in range(50)]
    found = compare_data(data_of(*rows), OPTIONS, [REFERENCE, StandIn(change=lambda entries: [])], batches=50)
    assert found.why == "50 differences between reference and spark."
    assert len(found.differences) == 20


def test_sums_of_floats_that_differ_by_rounding_alone_agree_at_the_end():
    values = pa.array([0.1, 0.2, 0.3, 0.4, 0.7], pa.float64())
    data = data_of(("a", 0), ("a", 20), ("a", 21), ("a", 40), ("a", 30), values=values)
    options = {**OPTIONS, "grace_ms": 100, "aggregate": "sum"}

    rounded, wrong = StandIn("rounded", more=1e-15), StandIn("wrong", more=1e-6)
    found = compare_data(data, options, [REFERENCE, DUCKDB, rounded, SPARK])
    assert found.verdict == "conforms"
    assert found.compared == {
        "duckdb": "the table at the end; floating-point numbers to 9 digits",
        "rounded": "the table at the end; floating-point numbers to 9 digits",
        "spark": "the changes of each key in each batch, in order; numbers exactly",
    }
    assert compare_data(data, options, [REFERENCE, wrong]).verdict == "violated"


@pytest.mark.parametrize(
    ("rows", "witnesses", "why"),
    [
        ([], [REFERENCE, DUCKDB], "mine has no rows."),
        ([(None, 5)], [REFERENCE, DUCKDB], "No witness emitted a session, so nothing was compared."),
        ([("a", 5)], [REFERENCE], "A comparison needs two witnesses: name two."),
        ([("a", 5)], [REFERENCE, REFERENCE], "A comparison needs two witnesses: name two."),
    ],
)
def test_nothing_to_compare_is_inconclusive(rows, witnesses, why):
    found = compare_data(data_of(*rows), OPTIONS, witnesses)
    assert (found.verdict, found.why) == ("inconclusive", why)


def test_each_step_is_reported():
    reported: list[str] = []
    compare_data(data_of(("a", 0)), OPTIONS, [REFERENCE, DUCKDB], 12, reported.append)
    assert reported == [
        "reference: 1 records in 1 micro-batches",
        "duckdb: 1 records in 1 micro-batches",
        "comparing reference with duckdb",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"witnesses": [StandIn("refusing")]}, "no null keys here"),
        ({"batches": 0}, "batches is 0: give a positive number"),
        ({"options": {"gap_ms": 0}}, "gap_ms is 0"),
        ({"options": {**OPTIONS, "aggregate": "sum"}}, "sum needs values"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, Any], message: str):
    with pytest.raises(BadInput, match=message):
        compare_data(data_of(("a", 0)), **{"options": OPTIONS, "witnesses": [REFERENCE, DUCKDB], **given})
