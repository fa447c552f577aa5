"""The rules of change data, on jobs without Spark: right tables conform, wrong ones are shown on few events."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from memory_jobs import RUN, Batches, options
from streamproof import BadInput, Input, Violated, scd1, scd2
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.changes import ChangesOracle
from streamproof.properties.laws.variation import Variation

EVENTS = Input(
    "id string, at timestamp, seq int NOT NULL, op string, name string",
    key="id",
    values={"seq": [1, 2, 3, 4, 5], "op": ["I", "U", "D"], "name": ["x", "y"]},
)
GIVEN: dict[str, Any] = {"keys": "id", "sequence_by": "seq", "deletes": "op = 'D'"}
TYPE1, TYPE2 = scd1(**GIVEN, columns=["name"]), scd2(**GIVEN, columns="name")
Row = dict[str, Any]


def check(
    job: Callable[[Batches], Batches], oracle: ChangesOracle, mode: Any = "append", events: Input = EVENTS
) -> Any:
    run = replace(RUN, mode=mode)
    return JobCheck(options(job, clicks=events, run=run, unique=["id"]), oracle, Variation(run)).check(60)


def at_the_end(table: Callable[[list[Row]], list[Row]]) -> Callable[[Batches], Batches]:
    def job(batches: Batches) -> Batches:
        return [*[[] for _ in batches[1:]], table([row for rows in batches for row in rows])]

    return job


def newest(rows: list[Row]) -> list[Row]:
    by_key = {row["id"]: row for row in sorted(rows, key=lambda row: row["seq"])}
    return [{"id": row["id"], "name": row["name"]} for row in by_key.values() if row["op"] != "D"]


def last_arrival(rows: list[Row]) -> list[Row]:
    return newest([{**row, "seq": at} for at, row in enumerate(rows)])


def without_tombstones(rows: list[Row]) -> list[Row]:
    kept: dict[str, Row] = {}
    for row in rows:
        if row["seq"] >= kept.get(row["id"], row)["seq"]:
            kept[row["id"]] = row
            if row["op"] == "D":
                del kept[row["id"]]
    return [{"id": row["id"], "name": row["name"]} for row in kept.values()]


def every_version(rows: list[Row]) -> list[Row]:
    found: list[Row] = []
    for key in dict.fromkeys(row["id"] for row in rows):
        events = sorted({row["seq"]: row for row in rows if row["id"] == key}.items())
        opened: Row | None = None
        for seq, row in events:
            if opened is not None and (row["op"] == "D" or row["name"] != opened["name"]):
                opened["valid_to"] = seq
                opened = None
            if row["op"] != "D" and opened is None:
                opened = {"id": key, "name": row["name"], "valid_from": seq, "valid_to": None}
                found.append(opened)
    return found


def rows_by_duration(rows: list[Row]) -> list[Row]:
    return [row for row in every_version(rows) if row["valid_to"] is None]


def overlapping(rows: list[Row]) -> list[Row]:
    return [{**row, "valid_to": row["valid_to"] and row["valid_to"] + 1} for row in every_version(rows)]


@pytest.mark.parametrize(("table", "oracle"), [(newest, TYPE1), (every_version, TYPE2)])
def test_a_table_that_is_a_function_of_the_set_of_events_conforms(table: Any, oracle: ChangesOracle) -> None:
    report = check(at_the_end(table), oracle)
    assert (report.comparing, report.expecting > 40) == ("end", True)
    assert (
        "events of a key with equal seq that differ: ties=[…] names the columns that decide which event counts"
        in report.not_checked
    )


@pytest.mark.parametrize(
    ("table", "oracle", "events"),
    [(last_arrival, TYPE1, 2), (without_tombstones, TYPE1, 2), (rows_by_duration, TYPE2, 2), (overlapping, TYPE2, 2)],
)
def test_a_wrong_table_is_shown_on_the_fewest_events(table: Any, oracle: ChangesOracle, events: int) -> None:
    with pytest.raises(Violated) as raised:
        check(at_the_end(table), oracle)
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == events


def test_in_complete_mode_the_table_is_compared_after_each_batch() -> None:
    def job(batches: Batches) -> Batches:
        return [newest([row for rows in batches[: last + 1] for row in rows]) for last in range(len(batches))]

    assert check(job, TYPE1, "complete").comparing == "cuts"
    with pytest.raises(Violated, match="batch"):
        check(at_the_end(newest), TYPE1, "complete")


def test_ties_are_drawn_where_a_column_decides() -> None:
    events = replace(
        EVENTS, schema=f"{EVENTS.schema}, n int NOT NULL", values={**(EVENTS.values or {}), "n": [1, 2, 3]}
    )
    oracle = scd1(**GIVEN, columns="name", ties="n")

    def decided(rows: list[Row]) -> list[Row]:
        return newest(sorted(rows, key=lambda row: row["n"]))

    assert not [one for one in check(at_the_end(decided), oracle, events=events).not_checked if "ties" in one]
    with pytest.raises(Violated):
        check(at_the_end(newest), oracle, events=events)


def test_untracked_columns_are_those_of_the_newest_event_of_a_version() -> None:
    (expected,) = expected_of(
        scd2("id", "seq", ["name", "op"], track="name"), (1, "I", "x"), (3, "U", "x"), (2, "I", "x")
    )
    assert expected == [{"id": "a", "name": "x", "op": "U", "valid_from": 1, "valid_to": None}]


def test_the_columns_of_an_interval_have_the_names_and_the_end_that_a_table_has() -> None:
    oracle = scd2("id", "seq", "name", start="since", end="until", current="is_current", open_end=9999)
    (expected,) = expected_of(oracle, (1, "I", "x"), (3, "U", "y"))
    assert expected == [
        {"id": "a", "name": "x", "since": 1, "until": 3, "is_current": False},
        {"id": "a", "name": "y", "since": 3, "until": 9999, "is_current": True},
    ]


def expected_of(oracle: ChangesOracle, *events: tuple[Any, str, str], schema: Any = EVENTS) -> Any:
    time = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [{"id": "a", "at": time, "seq": seq, "op": op, "name": name} for seq, op, name in events]
    history = JobHistory((tuple(Arrival("events", row) for row in rows),))
    return oracle.expected([history], [resolve(schema).source], RUN)[0].rows


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            ((1, "I", "x"), (1, "I", "y")),
            r"two events of the key 'a' have the sequence 1 and differ, id 'a', name '.' and id 'a'",
        ),
        (((1, "I", "x"), (1, "D", "x")), r".*a delete and id 'a'.*: name a field that orders them with ties"),
        (
            ((None, "I", "x"),),
            r"'seq' is NULL in the row id 'a'.*, but sequence_by uses this column: .*; give each event a value",
        ),
    ],
)
def test_events_without_a_place_are_refused(events: Any, message: str) -> None:
    with pytest.raises(BadInput, match=r"scd1\(keys=id, sequence_by=seq.*: " + message):
        expected_of(TYPE1, *events)


@pytest.mark.parametrize(
    ("given", "events", "message"),
    [
        ({"keys": "user"}, EVENTS, r"keys has 'user', and events has the columns id, at, .*: name one of them"),
        ({"columns": ["nope"]}, EVENTS, r"columns has 'nope'"),
        ({"ties": "nope"}, EVENTS, r"ties has 'nope'"),
        ({"sequence_by": "amount"}, Input("id string, at timestamp, op string, amount double NOT NULL", key="id"),
         r"sequence_by has 'amount', which is double in events and can't order events: name a column of whole"),
        ({"sequence_by": "op"}, replace(EVENTS, values=None), r"which may be NULL in events.*declare it NOT NULL"),
        ({"sequence_by": "at"}, replace(EVENTS, null_times=0.1), r"'at', which may be NULL in events.*null_times out"),
        ({"deletes": "op"}, EVENTS, r"deletes is 'op', which is VARCHAR and no truth value: write a condition"),
        ({"deletes": "nope = 1"}, EVENTS, r"DuckDB refuses the condition of deletes.*the columns are id, at, seq"),
        ({"deletes": "op ="}, EVENTS, r"DuckDB refuses the condition of deletes"),
        ({"keys": "name"}, EVENTS, r"a row's key is name, but the key of events is id.*key=\['name'\]"),
        ({"input": "other"}, EVENTS, r"there is no input 'other': use events"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(given: dict[str, Any], events: Input, message: str) -> None:
    with pytest.raises(BadInput, match=rf"^scd1\(.*\): .*{message}") as raised:
        check(at_the_end(newest), scd1(**{**GIVEN, **given}), events=events)
    assert "\n" not in raised.value.message


def test_a_sample_without_nulls_needs_no_declaration() -> None:
    time = datetime(2024, 1, 1, tzinfo=UTC)
    row = {"id": "a", "at": time, "op": "I", "name": "x"}
    sample = pa.Table.from_pylist([{**row, "seq": seq} for seq in (1, 2, 3)])
    assert check(at_the_end(newest), scd1("id", "seq", columns="name"), events=Input(sample=sample, key="id"))
    with pytest.raises(BadInput, match="'seq', which may be NULL"):
        check(at_the_end(newest), TYPE1, events=Input(sample=pa.concat_tables([sample, null_of(sample)]), key="id"))


def null_of(sample: pa.Table) -> pa.Table:
    return sample.slice(0, 1).set_column(4, "seq", pa.array([None], pa.int64()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scd1([], "seq"), r"scd1: keys is \[\]: give the names of columns"),
        (lambda: scd1("id", []), r"scd1: sequence_by is \[\]"),
        (lambda: scd1("id", "seq", deletes=" "), r"scd1: deletes is empty"),
        (lambda: scd2("id", "seq", []), r"scd2: columns is \[\]"),
        (
            lambda: scd2("id", "seq", "name", track="op"),
            r"scd2: track names 'op', which is not among the columns .*: add it to columns=",
        ),
        (lambda: scd1(3, "seq"), r"scd1: keys is 3: give"),  # type: ignore[arg-type]
    ],
)
def test_a_rule_without_columns_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()


LOG = Input("id string, name string", key="id", name="customers", format="kafka", value="debezium")
OF_LOG = scd2("id", "ts_ms", "name", deletes="deleted")


def versions_of_log(ops: str = "crud") -> Callable[[list[Row]], list[Row]]:
    """Return the versions that Debezium's envelopes leave: snapshots, changes and deletes; tombstones say nothing."""

    def versions(records: list[Row]) -> list[Row]:
        events = [json.loads(record["value"]) for record in records if record["value"] is not None]
        rows = [(event, event["after"] or event["before"]) for event in events if event["op"] in ops]
        return every_version(
            [
                {"id": row["id"], "seq": event["ts_ms"], "op": event["op"].upper(), "name": row["name"]}
                for event, row in rows
            ]
        )

    return versions


def test_debezium_s_envelopes_snapshots_and_tombstones_drive_a_rule() -> None:
    assert check(at_the_end(versions_of_log()), OF_LOG, events=LOG).expecting > 40
    for ops in ("cud", "cru"):
        with pytest.raises(Violated):
            check(at_the_end(versions_of_log(ops)), OF_LOG, events=LOG)


def test_one_of_two_inputs_has_to_be_named() -> None:
    events = resolve(EVENTS, "events").source
    sources = [events, replace(events, name="others")]
    with pytest.raises(
        BadInput, match=r'reads one input, and the job has events.*others: name the input, input="events"'
    ):
        TYPE1._source(sources)
    assert TYPE1._source(sources[1:]).name == "others"
    assert replace(TYPE1, input="others")._source(sources).name == "others"
    with pytest.raises(BadInput, match="there is no input 'none'"):
        replace(TYPE1, input="none")._source(sources)
