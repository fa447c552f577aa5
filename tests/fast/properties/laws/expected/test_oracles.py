"""What is said of oracles that can't say what is expected: the function with its file and line, and the remedy."""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from streamproof import sql
from streamproof.properties.checking.jobs.arguments import oracle_of
from streamproof.properties.generators.columns.forms.rows import microseconds
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.oracles import FORGETS, BatchOracle, JobOracle
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.reference.core.errors import BadInput, StreamproofError

SOURCE = resolve(Input("user string, at timestamp", key="user", name="clicks")).source
ROW = Arrival("clicks", {"user": "a", "at": datetime(2024, 1, 1, tzinfo=UTC)})


def nothing(clicks: Any) -> None: ...


def a_number(clicks: Any, clock: Any) -> int:
    return 3


def numbers(clicks: Any) -> list[int]:
    return [3]


def leaves(clicks: Any) -> Any:
    sys.exit(0)


def leaves_at_once(clicks: Any) -> Any:
    os._exit(0)


class Callable:
    def __call__(self, clicks: Any) -> None: ...


class Model:
    def arrive(self, row: Any) -> list[int]:
        return [4]


class Unmakeable:
    def __init__(self, size: int) -> None: ...

    def arrive(self, row: Any) -> None: ...


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        (
            nothing,
            r"nothing \(tests/.*test_oracles.py:\d+\): expected rows, and got None: return dicts",
        ),
        (a_number, r"a_number \(.*:\d+\): expected rows, and got int: return dicts"),
        (numbers, r"numbers \(.*:\d+\): a row is 3: return each row as a dict"),
        (Callable(), r"Callable \(tests/.*test_oracles.py:\d+\): expected rows, and got None"),
        (Model, r"Model: a row is 4: return each row as a dict"),
        (Unmakeable, r"the expected rows can't be computed: Unmakeable raised TypeError: .*'size'"),
        (
            leaves,
            r"expected rows can't be computed: leaves \(.*:\d+\), for the rows .*, ended the program with exit\(0\)",
        ),
        (leaves_at_once, r"leaves_at_once \(.*:\d+\), for the rows .*, ended the program with exit\(0\): return"),
    ],
)
def test_an_oracle_that_says_no_rows_is_named(expect: Any, message: str) -> None:
    oracle: Any = oracle_of(expect)
    with pytest.raises(BadInput, match=message):
        oracle.expected([JobHistory(((ROW,),))], [SOURCE], RunOptions())


class Waiting:
    def arrive(self, row: Any) -> list[Any]:
        threading.Event().wait()
        return []


@pytest.mark.parametrize("expect", [lambda clicks: threading.Event().wait(), Waiting])
def test_an_oracle_that_never_returns_is_named_with_its_line(expect: Any) -> None:
    never = r"the expected rows can't be computed: .+ didn't return within 0.2 s \(it was in line \d+ of .+\), .+: find"
    with pytest.raises(StreamproofError, match=never):
        oracle_of(expect, lambda clicks: clicks).expected([JobHistory(((ROW,),))], [SOURCE], RunOptions(seconds=0.2))


@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("SELECT user, at FROM clicks", r'; columns whose names are SQL keywords need quotes: "at"$'),
        ("SELECT max(AT) AS end FROM clicks GROUP BY user ORDER BY end", r': "at", "end"$'),
        ('SELECT "at" FROM clicks WHERE', "its tables are clicks$"),
        ("SELECT attempts FROM clicks", "its tables are clicks$"),
    ],
)
def test_a_column_that_is_a_word_of_sql_is_to_be_quoted_where_the_statement_has_it_bare(
    statement: str, remedy: str
) -> None:
    with pytest.raises(BadInput, match=remedy):
        oracle_of(statement).expected([JobHistory(((ROW,),))], [SOURCE], RunOptions())


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("CREATE TEMP TABLE t AS SELECT 1 AS n; SELECT n FROM t", ""),
        ("SELECT 1 AS n; CREATE TEMP TABLE t (n int)", "ends in CREATE, which"),
        ("SELECT 1 AS n; SELECT 2 AS n; DROP TABLE IF EXISTS t", "ends in DROP, which"),
        ("-- nothing", "is empty, and"),
    ],
)
def test_the_last_of_several_statements_must_have_the_rows(statement: str, refused: str) -> None:
    def expected() -> Any:
        return oracle_of(statement).expected([JobHistory(((ROW,),))], [SOURCE], RunOptions())[0].rows

    if not refused:
        assert expected() == [[{"n": 1}]]
        return
    with pytest.raises(BadInput, match=f"the SQL statement {refused} returns no rows"):
        expected()


def test_a_function_with_a_clock_is_given_the_rows_of_all_batches_so_far_and_the_clock_of_the_last() -> None:
    given: list[Any] = []

    def noting(clicks: Any, clock: Any) -> list[Any]:
        given.append((len(clicks), clock.minute))
        return []

    def at(minute: int) -> Arrival:
        return Arrival("clicks", {"user": "a", "at": datetime(2024, 1, 1, 0, minute, tzinfo=UTC)})

    batches = ((at(5), at(3)), (), (at(4),))
    own = oracle_of(noting).expected([JobHistory(batches)], [SOURCE], RunOptions())[0]
    assert (given, own.comparing, len(own.rows)) == ([(2, 5), (2, 5), (3, 5)], "cuts", 3)
    given.clear()
    clock = tuple(microseconds(at(minute).row["at"]) for minute in (5, 7, 9))
    oracle_of(noting).expected([JobHistory(batches, clock)], [SOURCE], RunOptions())
    assert given == [(2, 5), (2, 7), (3, 9)]
    given.clear()
    oracle_of(noting).expected([JobHistory(((), (at(1),)))], [SOURCE], RunOptions())
    assert given == [(1, 1)]  # before the first row there is no clock


def test_a_function_without_a_clock_is_given_all_rows_once() -> None:
    given: list[Any] = []

    def noting(clicks: Any) -> list[Any]:
        given.append(len(clicks))
        return []

    own = oracle_of(noting).expected([JobHistory(((ROW,), (ROW, ROW)))], [SOURCE], RunOptions())[0]
    assert (given, own.comparing) == ([3], "end")


def test_a_statement_reads_the_tables_of_the_job_that_it_is_compared_with() -> None:
    statement = oracle_of(sql("SELECT user, name FROM clicks JOIN names USING (user)"), nothing)
    witness: Any = SimpleNamespace(runner=SimpleNamespace(static={"names": pa.table({"user": ["a"], "name": ["ann"]})}))
    history = JobHistory(((ROW,),))
    (expected,) = statement.beside(witness).expected([history], [SOURCE], RunOptions())
    assert expected.rows == [[{"user": "a", "name": "ann"}]]
    witness.runner.static = {}
    assert statement.beside(witness) is statement


def test_a_statement_is_asked_after_each_batch_where_the_mode_updates_a_table() -> None:
    statement = oracle_of(sql("SELECT count(*) AS n FROM clicks"), nothing)
    history = JobHistory(((ROW,), (ROW, ROW), ()))
    for mode, counts in (("append", [3]), ("update", [1, 3, 3]), ("complete", [1, 3, 3])):
        (expected,) = statement.expected([history], [SOURCE], RunOptions(mode=mode))  # type: ignore[arg-type]
        assert [row["n"] for (row,) in expected.rows] == counts


@pytest.mark.parametrize(
    ("other", "failure", "is_refused"),
    [
        (True, "dropDuplicatesWithinWatermark is not supported with batch DataFrames", True),
        (True, "the query failed for another reason", False),
        (True, "", False),
        (False, "", True),
    ],
)
def test_a_job_as_a_batch_is_refused_if_spark_refuses_its_operator_in_a_batch(
    other: bool, failure: str, is_refused: bool
) -> None:
    def as_batch(*given: Any) -> list[Any]:
        if failure:
            raise StreamproofError(failure)
        return []

    witness: Any = SimpleNamespace(
        name="job", as_batch=as_batch, of=lambda job: SimpleNamespace(name="other", as_batch=as_batch)
    )
    oracle = BatchOracle(nothing if other else None, witness=witness)
    refused = oracle.refuses(Plan(operators=[FORGETS]), RunOptions())
    assert bool(refused) == is_refused
    if refused:
        assert refused.startswith(f"{'other' if other else 'job'} calls dropDuplicatesWithinWatermark, which Spark")


def test_the_first_three_rows_are_named_where_the_expected_rows_cannot_be_computed() -> None:
    users = [{**ROW.row, "user": str(number)} for number in range(5)]
    given = JobHistory((tuple(Arrival(ROW.input, row) for row in users),))
    with pytest.raises(BadInput, match="for the rows") as raised:
        oracle_of(leaves).expected([given], [SOURCE], RunOptions())  # type: ignore[attr-defined]
    assert f"for the rows {users[:3]}," in raised.value.message


def test_a_job_as_an_oracle_is_code_of_the_user_s_and_the_check_s_own_job_is_not() -> None:
    assert [*JobOracle().written] == []
    assert [*JobOracle(nothing).written] == [nothing]
