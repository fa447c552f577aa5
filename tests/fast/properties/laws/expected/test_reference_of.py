"""An operator's reference as the oracle of a job: its rows, its clock, and what its histories must show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from memory_jobs import CLICKS, RUN, Batches, MemoryRunner, options
from streamproof import BadInput, Violated, reference_of
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Source
from streamproof.properties.laws.expected.reference import ReferenceOracle, _record
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions

SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("amount", pa.int64())])
SOURCE = Source("clicks", SCHEMA, "at", ("user",))
SESSIONS = {"gap_ms": 10, "grace_ms": 5}


def at(time_ms: int) -> Any:
    return from_microseconds(1000 * time_ms)


def row(time_ms: int, amount: int | None = 1, user: str | None = "a") -> dict[str, Any]:
    return {"user": user, "at": at(time_ms), "amount": amount}


def history(*batches: list[dict[str, Any]], clock_ms: tuple[int, ...] = ()) -> JobHistory:
    arrivals = tuple(tuple(Arrival("clicks", one) for one in batch) for batch in batches)
    return JobHistory(arrivals, tuple(1000 * time_ms for time_ms in clock_ms))


def expected(oracle: ReferenceOracle, given: JobHistory, run: RunOptions = RUN, source: Source = SOURCE) -> Any:
    (found,) = oracle.expected([given], [source], run)
    return found


def session(start: int, end: int, value: int | None) -> dict[str, Any]:
    return {"user": "a", "window": {"start": at(start), "end": at(end)}, "value": value, "timestamp": at(end)}


def test_each_change_is_expected_in_its_batch_and_a_tombstone_has_a_null_value() -> None:
    found = expected(reference_of("session_windows", **SESSIONS), history([row(100)], [row(107)]))
    assert found.comparing == "batches"
    assert found.rows == [[session(100, 100, 1)], [session(100, 100, None), session(100, 107, 2)]]


def test_the_table_after_each_batch_is_expected_where_a_job_updates_its_result() -> None:
    oracle = reference_of("session_windows", **SESSIONS)
    found = expected(oracle, history([row(100)], [row(107)]), RunOptions(mode="update"))
    assert (found.comparing, found.rows) == ("cuts", [[session(100, 100, 1)], [session(100, 107, 2)]])


def test_a_batch_is_taken_in_the_order_of_its_timestamps_unless_arrival_is_asked_for() -> None:
    given = history([row(107), row(100)])
    counts = [
        [change["timestamp"] for change in expected(oracle, given).rows[0]]
        for oracle in (
            reference_of("session_windows", **SESSIONS),
            reference_of("session_windows", order="arrival", **SESSIONS),
        )
    ]
    assert counts == [[at(100), at(100), at(107)], [at(107), at(107), at(107)]]


@pytest.mark.parametrize(("clock", "batch"), [(116, 0), (115, 1)])
def test_a_session_closes_in_the_batch_whose_clock_is_past_gap_and_grace(clock: int, batch: int) -> None:
    oracle = reference_of("session_windows", emit="close", **SESSIONS)
    found = expected(oracle, history([row(100)], [], clock_ms=(clock, 200)))
    assert [len(rows) for rows in found.rows] == [int(number == batch) for number in range(2)]


def test_under_available_now_it_closes_one_batch_later() -> None:
    oracle = reference_of("session_windows", emit="close", **SESSIONS)
    given = history([row(100)], [], [], clock_ms=(116, 117, 118))
    found = expected(oracle, given, RunOptions(trigger="available_now"))
    assert [len(rows) for rows in found.rows] == [0, 1, 0]


def test_a_row_without_a_key_is_dropped_and_the_one_other_column_is_the_value() -> None:
    found = expected(
        reference_of("session_windows", aggregate="sum", **SESSIONS), history([row(100, 5), row(100, 7, user=None)])
    )
    assert found.rows == [[session(100, 100, 5)]]


def test_a_key_of_two_columns_is_expected_in_both() -> None:
    source = Source("clicks", SCHEMA, "at", ("user", "amount"))
    (change,) = expected(reference_of("session_windows", **SESSIONS), history([row(100, 3)]), source=source).rows[0]
    assert (change["user"], change["amount"]) == ("a", 3)


@pytest.mark.parametrize(
    ("oracle", "given", "said"),
    [
        (("table_table_join", {}), history([row(1)]), "has the inputs left, right, and the job has 1: give an Input"),
        (("session_windows", {**SESSIONS, "value": "total"}), history([row(1)]), "value is 'total', and clicks has"),
        (("session_windows", {**SESSIONS, "aggregate": "sum"}), history([row(1, None), row(2)]), "NOT NULL"),
        (("session_windows", SESSIONS), history([{**row(1), "at": None}]), "has no event time.*leave null_times out"),
    ],
)
def test_what_is_no_record_is_refused_with_the_remedy(oracle: Any, given: JobHistory, said: str) -> None:
    operator, named = oracle
    with pytest.raises(BadInput, match=said):
        expected(reference_of(operator, **named), given)


def test_options_are_refused_where_they_are_given() -> None:
    with pytest.raises(BadInput, match="gap_ms is 0: a session's gap must be positive"):
        reference_of("session_windows", gap_ms=0)
    with pytest.raises(BadInput, match="unknown operator 'sessions'"):
        reference_of("sessions")


def test_histories_that_hide_1_ms_are_inconclusive() -> None:
    oracle = reference_of("session_windows", **SESSIONS)
    given = [history([row(100)], [row(200)], clock_ms=(100, 200))]
    unmet = oracle.unmet(given, [SOURCE], RUN)
    assert {"gap_ms 10 and 9 differ", "gap_ms 10 and 11 differ", "grace_ms 5 and 4 differ"} <= {*unmet}


def played_under(named: dict[str, Any]) -> Any:
    """Return a job that emits what the reference says under some options."""
    oracle = reference_of("session_windows", **named)

    def job(batches: Batches) -> Batches:
        given = history(*[[row for row in rows if row["user"] is not None] for rows in batches])
        return [[*rows] for rows in expected(oracle, given).rows]

    return job


@pytest.mark.parametrize("wrong", [{"gap_ms": 9}, {"gap_ms": 11}])
def test_a_job_that_is_off_by_1_ms_is_violated(wrong: dict[str, Any]) -> None:
    alone = options(played_under(SESSIONS | wrong), clicks=CLICKS, alone=True)
    with pytest.raises(Violated, match="the reference of session_windows expects"):
        JobCheck(alone, reference_of("session_windows", **SESSIONS), Variation(RUN)).check(40)


@dataclass(frozen=True)
class Columns(MemoryRunner):
    """A job whose columns are known before its query runs."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared([*self.job([[row(100)]])[0][0]])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("columns", "lacking"),
    [
        (("user", "clicks"), "start, end, value"),
        (("user", "start", "end", "clicks"), "value"),
        (("user", "start", "value"), "end"),
        (("start", "end", "value"), "user"),
    ],
)
def test_a_job_without_the_columns_of_key_window_and_value_is_refused(columns: tuple[str, ...], lacking: str) -> None:
    def job(batches: Batches) -> Batches:
        return [[dict.fromkeys(columns, None) for _ in rows] for rows in batches]

    check = JobCheck(options(job, Columns), reference_of("session_windows", value="amount", **SESSIONS), Variation(RUN))
    with pytest.raises(
        BadInput, match=rf"returns the columns {lacking}, and the result of .* has {', '.join(columns)}"
    ):
        check.check(20)


@pytest.mark.parametrize(
    ("user", "amount", "key"), [("a", 1, ("a", 1)), (None, 1, None), ("a", None, None), (None, None, None)]
)
def test_a_key_of_several_columns_is_null_where_any_of_them_is(user: Any, amount: Any, key: Any) -> None:
    source = Source("clicks", SCHEMA, "at", ("user", "amount"))
    record = _record("events", source, None, row(100, amount, user))
    assert (record.input, record.key, record.value, record.timestamp) == ("events", key, 1, 100)
