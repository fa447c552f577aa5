from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.compare import Arrivals, by_duckdb, by_reference, compare_data
from streamproof.properties.data import DataSet
from streamproof.properties.outcomes import Grain, Outcome
from streamproof.reference.errors import BadInput
from streamproof.reference.play import Entry
from streamproof.reference.records import Change, Dropped

OPTIONS = {"gap_ms": 10, "grace_ms": 5}


def by_stand_in(arrivals: Arrivals) -> Outcome:
    """What Spark would tell: the reference's entries, at batch grain."""
    return replace(by_reference(arrivals), grain=Grain.BATCH)


def changed(change: Callable[[list[Entry]], list[Entry]]) -> Callable[[Arrivals], Outcome]:
    """A stand-in that tells something else."""

    def witness(arrivals: Arrivals) -> Outcome:
        outcome = by_stand_in(arrivals)
        return replace(outcome, entries=change(outcome.entries))

    return witness


KNOWN = {"reference": by_reference, "spark": by_stand_in, "duckdb": by_duckdb}


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
    drawn = [(draw.choice(["a", "b", "c", None]), place + draw.randrange(60)) for place in range(rows)]
    return data_of(*drawn, values=pa.array([draw.randrange(9) for _ in range(rows)], pa.int64()))


@pytest.mark.parametrize("aggregate", ["count", "sum", "min", "max", "list"])
@pytest.mark.parametrize("emit", ["update", "close"])
@pytest.mark.parametrize("late", ["merged", "own"])
def test_witnesses_that_agree_conform(aggregate, emit, late):
    options = {**OPTIONS, "aggregate": aggregate, "emit": emit, "late": late}
    found = compare_data(disordered(), options, ["reference", "spark", "duckdb"], known=KNOWN)
    assert (found.verdict, found.difference_count, found.differences) == ("conforms", 0, [])
    assert found.why == f"reference and spark, duckdb agree on {found.sessions} sessions."
    assert (found.rows, found.batches) == (300, 12)
    assert found.sessions > 10
    assert set(found.seconds) == {"reference", "spark", "duckdb"}


def test_changes_tombstones_merges_and_dropped_records_are_counted():
    # The third record joins two sessions; the last but one comes when its session is closed.
    data = data_of(("a", 0), ("a", 20), ("a", 10), ("b", 100), ("a", 50), (None, 7))
    found = compare_data(data, {**OPTIONS, "grace_ms": 30}, ["reference", "spark"], batches=6, known=KNOWN)
    assert (found.changes, found.tombstones, found.merges, found.sessions) == (6, 2, 1, 2)
    assert found.dropped == {name: {"late": 1, "null key": 1} for name in ("reference", "spark")}
    assert found.late == 1


def test_merges_are_unknown_where_no_tombstone_tells_them():
    assert compare_data(disordered(), {**OPTIONS, "emit": "close"}, ["reference", "duckdb"], known=KNOWN).merges is None
    assert compare_data(disordered(), OPTIONS, ["spark", "duckdb"], known=KNOWN).merges is None


def test_the_order_of_arrival_is_cut_into_batches_of_equal_size_to_within_a_row():
    sizes: list[int] = []

    def witness(arrivals: Arrivals) -> Outcome:
        sizes.extend(batch.num_rows for batch in arrivals.batches)
        assert pa.concat_tables(arrivals.batches).column("order").to_pylist() == list(range(10))
        return by_stand_in(arrivals)

    rows = [("a", place) for place in range(10)]
    compare_data(data_of(*rows), OPTIONS, ["witness"], batches=4, known={"witness": witness})
    assert sorted(sizes) == [2, 2, 3, 3]


def test_there_are_no_more_batches_than_rows():
    assert compare_data(data_of(("a", 0), ("a", 1)), OPTIONS, ["reference", "duckdb"], known=KNOWN).batches == 2


def test_swapped_changes_of_a_key_in_a_batch_are_a_violation():
    def swap(entries: list[Entry]) -> list[Entry]:
        return [entries[0], entries[1], entries[3], entries[2], *entries[4:]]

    data = data_of(("a", 0), ("a", 20), ("a", 10))
    known = {**KNOWN, "spark": changed(swap)}
    found = compare_data(data, {**OPTIONS, "grace_ms": 50}, ["reference", "spark", "duckdb"], batches=1, known=known)
    assert (found.verdict, found.difference_count) == ("violated", 1)
    assert found.why == "1 difference between reference and spark."
    (disagreement,) = found.differences
    assert (disagreement.left, disagreement.right, disagreement.difference.key) == ("reference", "spark", "a")


def test_a_dropped_record_that_is_not_told_is_a_violation():
    known = {**KNOWN, "spark": changed(lambda entries: [at for at in entries if not isinstance(at.output, Dropped)])}
    found = compare_data(data_of(("a", 0), (None, 0)), OPTIONS, ["reference", "spark"], known=known)
    assert found.verdict == "violated"


def test_only_the_first_twenty_differences_are_kept_and_all_are_counted():
    rows = [("a", 100 * place) for place in range(50)]
    known = {**KNOWN, "spark": changed(lambda entries: [])}
    found = compare_data(data_of(*rows), OPTIONS, ["reference", "spark"], batches=50, known=known)
    assert found.difference_count == 50
    assert len(found.differences) == 20


def test_a_table_that_differs_from_duckdbs_is_a_violation():
    def more(entries: list[Entry]) -> list[Entry]:
        return [
            at._replace(output=at.output._replace(value=2)) if isinstance(at.output, Change) else at for at in entries
        ]

    known = {**KNOWN, "spark": changed(more)}
    found = compare_data(data_of(("a", 0)), OPTIONS, ["spark", "duckdb"], known=known)
    (disagreement,) = found.differences
    assert disagreement.difference.left == Change("a", (0, 0), 2, 0)
    assert disagreement.difference.right == Change("a", (0, 0), 1, 0)


def test_sums_of_floats_that_differ_by_rounding_alone_agree_at_the_end():
    values = pa.array([0.1, 0.2, 0.3, 0.4, 0.7], pa.float64())
    data = data_of(("a", 0), ("a", 20), ("a", 21), ("a", 40), ("a", 30), values=values)
    options = {**OPTIONS, "grace_ms": 100, "aggregate": "sum"}

    def rounded(arrivals: Arrivals) -> Outcome:
        table = {row: (value + 1e-15, at) for row, (value, at) in by_duckdb(arrivals).result.items()}
        return Outcome("mine", Grain.END, final=table)

    def wrong(arrivals: Arrivals) -> Outcome:
        table = {row: (value + 1e-6, at) for row, (value, at) in by_duckdb(arrivals).result.items()}
        return Outcome("mine", Grain.END, final=table)

    known = {**KNOWN, "rounded": rounded, "wrong": wrong}
    assert compare_data(data, options, ["reference", "duckdb", "rounded"], known=known).verdict == "conforms"
    assert compare_data(data, options, ["reference", "wrong"], known=known).verdict == "violated"


@pytest.mark.parametrize(
    ("rows", "witnesses", "why"),
    [
        ([], ["reference", "duckdb"], "mine has no rows."),
        ([(None, 5)], ["reference", "duckdb"], "No session came out, so nothing was compared."),
        ([("a", 5)], ["reference"], "One witness alone compares with nothing: name two."),
        ([("a", 5)], ["reference", "reference"], "One witness alone compares with nothing: name two."),
    ],
)
def test_nothing_to_compare_is_inconclusive(rows, witnesses, why):
    found = compare_data(data_of(*rows), OPTIONS, witnesses, known=KNOWN)
    assert (found.verdict, found.why) == ("inconclusive", why)


def test_progress_is_told_of_each_step():
    told: list[str] = []
    compare_data(data_of(("a", 0)), OPTIONS, ["reference", "duckdb"], 12, told.append, KNOWN)
    assert told == [
        "reference: 1 records in 1 micro-batches",
        "duckdb: 1 records in 1 micro-batches",
        "comparing reference with duckdb",
    ]


def test_a_count_takes_values_of_any_type():
    found = compare_data(data_of(("a", 0), values=pa.array([[1]])), OPTIONS, ["reference", "duckdb"], known=KNOWN)
    assert found.verdict == "conforms"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"witnesses": ["nobody"]}, "unknown witness 'nobody': use some of reference, spark, spark-native, duckdb"),
        ({"batches": 0}, "batches is 0: give a positive number"),
        ({"options": {"gap_ms": 0}}, "gap_ms is 0"),
        ({"options": {**OPTIONS, "aggregate": "sum"}}, "sum needs values"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, Any], message: str):
    with pytest.raises(BadInput, match=message):
        compare_data(data_of(("a", 0)), **{"options": OPTIONS, **given})
