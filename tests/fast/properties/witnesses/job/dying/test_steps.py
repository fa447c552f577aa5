"""Where a user's own code dies in the middle of its work: between its lines, or between the rows that it writes."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.witnesses.job.dying import Steps, dying_writer
from streamproof.properties.witnesses.run_options import BETWEEN, MIDDLE, WITHIN, Crash, crash_of
from streamproof.properties.witnesses.spark.failures import PlannedCrash


def helper(done: list[str]) -> None:
    done.append("helper")
    done.append("helped")


def write(done: list[str], count: int) -> None:
    done.append("first")
    for _ in range(count):
        done.append("row")
    try:
        helper(done)
    except Exception:
        done.append("caught")


def until(step: int, count: int = 0) -> tuple[list[str], Steps]:
    done: list[str] = []
    steps = Steps(step)
    before = sys.gettrace()
    try:
        steps.run(write, done, count)
    except PlannedCrash:
        done.append("dead")
    assert sys.gettrace() is before
    return done, steps


def test_a_function_dies_before_each_of_its_lines_in_turn_and_before_those_that_it_calls() -> None:
    whole = ["first", "helper", "helped"]
    died = [[*whole[:1], "dead"]] * 4 + [[*whole[:2], "dead"], whole]
    assert [until(step)[0] for step in range(1, 7)] == died
    assert 'test_steps.py: `done.append("helped")`' in until(5)[1].place


def test_a_loop_dies_before_its_first_row_and_between_two_rows_and_not_after_each() -> None:
    died = [until(step, 50)[0] for step in range(1, 12)]
    rows = [done.count("row") for done in died]
    assert sorted({*rows}) == [0, 1, 50]
    assert any("came again" in until(step, 50)[1].place for step in range(1, 12))


def test_a_function_that_never_comes_to_the_step_runs_whole_and_says_how_many_it_has() -> None:
    done, steps = until(99)
    assert (done[-1], steps.place) == ("helped", "")
    assert until(steps.reached - 1)[0][-1] == "dead"
    assert until(steps.reached)[0][-1] == "helped"


def test_code_that_python_generates_has_no_line_of_the_function() -> None:
    pair = namedtuple("pair", "left right")
    steps = Steps()
    steps.run(lambda: pair(1, 2))
    assert steps.reached == 1


def test_a_function_that_catches_everything_dies_all_the_same() -> None:
    def stubborn(done: list[str]) -> None:
        try:
            done.append("a")
            done.append("b")
        except BaseException:
            done.append("caught")

    done: list[str] = []
    with pytest.raises(PlannedCrash):
        Steps(2).run(stubborn, done)
    assert done == ["a"]


class Writer:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def open(self, partition: int, number: int) -> bool:
        self.said.append(("open", number))
        return True

    def process(self, row: Any) -> None:
        self.said.append(row)

    def close(self, error: Any) -> None:
        self.said.append("close")


def played(writer: Any, number: int, rows: int) -> str:
    """Call a writer as PySpark does."""
    error = None
    try:
        assert writer.open(0, number)
        for row in range(rows):
            writer.process(row)
    except Exception as failed:
        error = failed
    try:
        writer.close(error)
    except Exception as failed:
        error = failed
    return str(error or "")


@pytest.mark.parametrize(
    ("number", "rows", "said"),
    [
        (3, 5, [("open", 3), 0, 1]),
        (3, 2, [("open", 3), 0, 1]),
        (3, 1, [("open", 3), 0]),
        (3, 0, [("open", 3), "close"]),
        (2, 3, [("open", 2), 0, 1, 2, "close"]),
    ],
)
def test_a_writer_dies_after_two_rows_or_before_its_end_in_one_batch_alone(number: int, rows: int, said: Any) -> None:
    writer = Writer()
    assert played(dying_writer(writer, 3, 2), number, rows) == ("PlannedCrash" if number == 3 and rows else "")
    assert writer.said == said


def test_a_function_for_each_row_dies_too_and_what_spark_refuses_is_left_as_it_is() -> None:
    said: list[Any] = []
    assert played(dying_writer(said.append, 0, 1), 0, 3) == "PlannedCrash"
    assert said == [0]
    assert dying_writer("no writer", 0, 1) == "no writer"


@pytest.mark.parametrize(
    "crash", [Crash(1), Crash(1, False, MIDDLE), Crash(1, True, MIDDLE, 3), Crash(1, True, WITHIN, 2)]
)
def test_a_crash_is_read_as_it_is_written(crash: Crash) -> None:
    assert crash_of(crash.to_json()) == crash == crash_of([*crash])


@pytest.mark.parametrize("given", [[1, True, BETWEEN, 3], [1, True, MIDDLE, -1], [1, True, MIDDLE, 1, 1]])
def test_a_crash_has_steps_while_its_output_is_written_alone(given: Any) -> None:
    assert crash_of(given) is None


def test_a_death_in_a_transaction_leaves_no_lock_and_nothing_of_it(tmp_path: Path) -> None:
    def insert() -> None:
        with sqlite3.connect(tmp_path / "table.db") as database:
            database.execute("CREATE TABLE IF NOT EXISTS rows (row)")
            database.execute("INSERT INTO rows VALUES (1)")

    @contextlib.contextmanager
    def transaction() -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(tmp_path / "table.db", isolation_level=None)
        database.execute("BEGIN")
        try:
            yield database
        finally:
            database.execute("COMMIT")
            database.close()

    def insert_by_another() -> None:
        with transaction() as database:
            database.execute("CREATE TABLE IF NOT EXISTS rows (row)")
            database.execute("INSERT INTO rows VALUES (1)")
            database.execute("INSERT INTO rows VALUES (2)")

    def insert_stubbornly() -> None:
        database = sqlite3.connect(tmp_path / "table.db")
        try:
            database.execute("CREATE TABLE IF NOT EXISTS rows (row)")
            try:
                database.execute("INSERT INTO rows VALUES (1)")
                database.execute("INSERT INTO rows VALUES (2)")
            except BaseException:
                database.commit()
        finally:
            database.commit()

    deaths = [(insert, 4), (insert_by_another, 8), (insert_stubbornly, 6)]
    for function, step in [(function, step) for function, steps in deaths for step in range(steps)]:
        with pytest.raises(PlannedCrash):
            Steps(step).run(function)
        assert sys.getprofile() is None
        with sqlite3.connect(tmp_path / "table.db", timeout=0) as database:
            database.execute("CREATE TABLE IF NOT EXISTS rows (row)")
            database.execute("BEGIN EXCLUSIVE")
            assert database.execute("SELECT * FROM rows").fetchall() == [], (function.__name__, step)


@pytest.mark.parametrize("step", [2, 3])
def test_after_a_death_only_that_runs_which_the_end_of_a_process_does(step: int) -> None:
    done: list[str] = []
    lock, file = threading.Lock(), io.StringIO()

    def work() -> None:
        lock.acquire()
        try:
            done.append("row")
            done.append("another")
        finally:
            lock.release()
            file.close()
            done.append("commit")

    with pytest.raises(PlannedCrash):
        Steps(step).run(work)
    assert (lock.locked(), file.closed) == (False, True)
    assert "commit" not in done
