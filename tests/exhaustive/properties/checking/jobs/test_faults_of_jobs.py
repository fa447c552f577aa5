"""Jobs, oracles, sinks, files and machines that are not as they should be, as a table: what is called, how it must end.

Whatever the fault, there is one message whose first line says what it is, no traceback, no false verdict, and nothing
is left: no query, no process, no file but a counterexample.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from check_job_setup import CLICKS
from faults import Fault, Running, end_processes, listing, processes_left, streamproof
from faults import assert_ends_as_it_must as assert_command_ends_as_it_must
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof import (
    BadInput,
    Input,
    Sink,
    StreamproofError,
    Violated,
    as_batch,
    check_job,
)
from streamproof.properties.checking.jobs.arguments import oracle_of
from streamproof.properties.counterexamples.of_jobs import saved_histories
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve, resolve_all
from streamproof.properties.witnesses.run_options import RunOptions

SOURCE = resolve(CLICKS).source
ROW = {"user": "a", "at": from_microseconds(0), "amount": 1}
HISTORY = JobHistory(((Arrival("clicks", ROW),),))
HEADER = '{"job": "h", "inputs": {"clicks": "user string, at timestamp, amount bigint"}}'
CLICK = '{"input": "clicks", "row": {"user": "a", "at": "2024-01-15T12:00:00Z", "amount": 1}}'
EXAMPLE = f"{HEADER}\n{CLICK}\n"
HERE = r"tests/exhaustive/properties/checking/jobs/test_faults_of_jobs\.py:\d+"
RIGHT = 'SELECT "user", amount FROM clicks'


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: The case in a few words; the test's id.
        call: What is called, with an empty folder.
        says: A regular expression that the first line of the message matches in full.
        outcome: What must be raised.
        left: What is in the folder afterwards: regular expressions of names, sorted; folders end in `/`.
    """

    name: str
    call: Callable[[Path], object]
    says: str
    outcome: type[Exception] = BadInput
    left: Sequence[str] = ()


def assert_ends_as_it_must(case: Case, folder: Path) -> None:
    process = os.getpid()
    with pytest.raises(case.outcome) as raised:
        case.call(folder)
    assert os.getpid() == process
    assert type(raised.value) is case.outcome or case.outcome is StreamproofError, repr(raised.value)
    said = str(raised.value)
    assert "Traceback" not in said
    assert said.replace("\n", "").isprintable()
    assert re.fullmatch(case.says, said.splitlines()[0]), said
    left = listing(folder)
    assert len(left) == len(case.left), left
    for name, pattern in zip(left, case.left, strict=True):
        assert re.fullmatch(pattern, name), left


# Without Spark: what is given, said by an oracle, or saved.


def checking(**given: Any) -> Callable[[Path], object]:
    return lambda folder: (
        check_job(**{"job": right, "expect": RIGHT, **given})
        if "job" in given
        else check_job(right, CLICKS, **{"expect": RIGHT, **given})
    )


def right(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", "amount")


def said_by(expect: Any) -> Callable[[Path], object]:
    return lambda folder: oracle_of(expect).expected([HISTORY], [SOURCE], RunOptions())


def read(content: bytes) -> Callable[[Path], object]:
    def call(folder: Path) -> object:
        saved = folder / "job-1" / "history.jsonl"
        saved.parent.mkdir()
        saved.write_bytes(content)
        try:
            return saved_histories((), folder, [SOURCE])
        finally:
            saved.unlink()
            saved.parent.rmdir()

    return call


def example(text: Any) -> Callable[[Path], object]:
    return lambda folder: saved_histories([text], None, [SOURCE])


def given(*inputs: Any, **named: Any) -> Callable[[Path], object]:
    return lambda folder: resolve_all([*inputs, *([Input(**named)] if named else [])])


def raises(clicks: Any) -> Any:
    raise KeyError("amount")


def leaves(clicks: Any) -> Any:
    sys.exit(0)


def forks_and_leaves(clicks: Any) -> Any:
    if os.fork() == 0:
        return clicks
    os.wait()
    raise RuntimeError("of the parent")


def says_none(clicks: Any) -> None: ...


def says_numbers(clicks: Any) -> Any:
    return [1]


def yields_and_raises(clicks: Any) -> Any:
    yield {"user": "a"}
    raise ZeroDivisionError("half way")


SAID = "the expected rows can't be computed: "
SAVED = r"/.*/job-1/history\.jsonl"
REMOVE = r"; or remove /.*/job-1, if the job's inputs have changed since"
WITHOUT_SPARK = [
    # What is given.
    Case(
        "disorder that is a month", checking(out_of_order="1 month"), ".+a month has no fixed length: write it in days"
    ),
    Case(
        "a setting steers a terminal",
        checking(settings={"a": "\x1b[2J"}),
        r"settings has 'a': '\\x1b\[2J', which contains .+",
    ),
    Case(
        "a static table named as the input",
        checking(static={"CLICKS": [{"a": 1}]}),
        r"two inputs or static tables have the name 'clicks' and 'CLICKS' \(SQL ignores case\): .+",
    ),
    Case(
        "a sink as a batch",
        lambda folder: check_job(Sink(right, raises), CLICKS, expect=as_batch()),
        "a Sink can't be run as a batch: give the job without its sink .+",
    ),
    # What is expected.
    Case("an oracle raises", said_by(raises), rf"{SAID}raises \({HERE}\) raised KeyError: 'amount', for the rows .+"),
    Case("an oracle forks", said_by(forks_and_leaves), rf"{SAID}forks_and_leaves \(.+ raised RuntimeError: of the .+"),
    Case("an oracle stops half way", said_by(yields_and_raises), rf"{SAID}.+ raised ZeroDivisionError: half way, .+"),
    Case("a statement with an error", said_by("SELEKT 1"), r"DuckDB refuses the SQL statement: Parser Error: .+"),
    Case(
        "a statement without rows",
        said_by("CREATE TABLE t (a int)"),
        "the SQL statement ends in CREATE, which returns no rows: .+",
    ),
    Case(
        "a statement with two columns of one name", said_by("SELECT 1 a, 2 a"), "the SQL statement: two columns are .+"
    ),
    # Saved histories, and examples.
    Case("a saved history is gzipped", read(gzip.compress(EXAMPLE.encode())), rf"{SAVED}: a gzip file, .+{REMOVE}"),
    Case(
        "an example has a number that is too large", example(EXAMPLE.replace(": 1}", ": 1e400}")), "example 0, line 2.+"
    ),
]


@pytest.mark.parametrize("case", WITHOUT_SPARK, ids=attrgetter("name"))
def test_a_fault_that_needs_no_spark_ends_as_it_must(case: Case, tmp_path: Path) -> None:
    assert_ends_as_it_must(case, tmp_path)


# On Spark, in one session.


def sunk(
    start: Callable[..., Any], read: Callable[[Path], Any] | None = None, seconds: float = 20
) -> Callable[[Path], object]:
    """A check of a sink on one row."""
    return lambda folder: check_job(
        Sink(start, read or (lambda own: [])),
        CLICKS,
        expect="SELECT 1 AS one",
        examples=[EXAMPLE],
        histories=1,
        seconds=seconds,
    )


def written(write: Callable[[DataFrame, int], None], checkpoint: str = "checkpoint") -> Callable[..., Any]:
    def start(clicks: DataFrame, folder: Path) -> Any:
        query = clicks.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / checkpoint))
        return query.trigger(availableNow=True).start()

    return start


def of(job: Callable[..., Any], **more: Any) -> Callable[[Path], object]:
    """A check of a job on one row."""
    common: dict[str, Any] = {"expect": RIGHT, "examples": [EXAMPLE], "histories": 1, "seconds": 20}
    return lambda folder: check_job(job, CLICKS, **{**common, **more})


def applied(function: Callable[[int], int]) -> Callable[[DataFrame], DataFrame]:
    return lambda clicks: clicks.select("user", F.udf(function, "int")("amount").alias("amount"))


def fails(amount: int) -> int:
    return 1 // 0


def waits(amount: int) -> int:
    time.sleep(600)
    return amount


def waits_in_driver(clicks: Any) -> Any:
    time.sleep(600)


def starts_two(clicks: DataFrame, folder: Path) -> Any:
    written(ignore, "other")(clicks, folder)
    return written(ignore)(clicks, folder)


def starts_two_in_turn(clicks: DataFrame, folder: Path) -> Any:
    written(ignore, "other")(clicks, folder).awaitTermination()
    return written(ignore)(clicks, folder)


def ignore(rows: DataFrame, batch: int) -> None: ...


def write_and_raise(rows: DataFrame, batch: int) -> None:
    raise KeyError("ledger")


def write_and_wait(rows: DataFrame, batch: int) -> None:
    time.sleep(5)


def write_and_never_return(rows: DataFrame, batch: int) -> None:
    threading.Event().wait()


def write_and_interrupt(rows: DataFrame, batch: int) -> None:
    raise KeyboardInterrupt


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def raises_unprintable(clicks: DataFrame) -> DataFrame:
    raise Unprintable


def wrong(clicks: DataFrame) -> DataFrame:
    return clicks.select("user", (F.col("amount") + 1).alias("amount"))


WROTE = r"violated: in batch 0 .+ expects .*amount 1.*, and wrong \(.+\) emits .*amount 2.*|violated: at the end .+"
SAVED_FOLDERS = (
    r"job-\w+/",
    *(rf"job-\w+/{name}" for name in (r"counterexample\.json", r"counterexample\.txt", r"history\.jsonl")),
)
ON_SPARK = [
    Case("a job raises", of(raises), rf"raises \({HERE}\) raised KeyError: 'amount', in line \d+: `.+`"),
    Case(
        "a job raises what can't be shown",
        of(raises_unprintable),
        rf"raises_unprintable \({HERE}\) raised Unprintable: its message can't be shown: ZeroDivisionError, in line.+",
    ),
    Case("a job leaves", of(leaves), rf"leaves \({HERE}\) ended the program with exit\(0\): return instead"),
    Case("a job forks", of(forks_and_leaves), rf"forks_and_leaves \({HERE}\) raised RuntimeError: of the parent, .+"),
    Case(
        "a job that never returns",
        of(waits_in_driver, seconds=2),
        r"the job's function didn't return within 2 s \(it was in line \d+ of .+\): .+",
        StreamproofError,
    ),
    Case(
        "a UDF raises",
        of(applied(fails)),
        r".+: the Spark query failed: ZeroDivisionError: .+, in fails \(.+",
        StreamproofError,
    ),
    Case(
        "a UDF never ends", of(applied(waits), seconds=4), "the job's query took longer than 4 s: .+", StreamproofError
    ),
    Case(
        "a sink's start returns nothing",
        sunk(lambda clicks, folder: None),
        r"<lambda> \(.+\) returned None: return the query.+",
    ),
    Case(
        "a sink starts two queries",
        sunk(starts_two),
        r"starts_two \(.+\) started 2 queries, and the check would see 1: .+",
    ),
    Case(
        "a sink starts two queries in turn",
        sunk(starts_two_in_turn),
        r"starts_two_in_turn \(.+\) started 2 queries, and the check would see 1: .+",
    ),
    Case(
        "a sink without a folder",
        sunk(lambda clicks: None),
        r"<lambda> \(.+\) can't be called with 1 input and a folder: .+",
    ),
    Case(
        "a sink's batch raises",
        sunk(written(write_and_raise)),
        r".+ the Spark query failed: KeyError: 'ledger'.*",
        StreamproofError,
    ),
    Case(
        "a sink's batch takes too long",
        sunk(written(write_and_wait), says_numbers, seconds=2),
        r"the job's query took longer than 2 s \(it was in line \d+ of .+\): .+",
        StreamproofError,
    ),
    Case(
        "a sink's batch never returns",
        lambda folder: check_job(
            Sink(written(write_and_never_return), says_numbers),
            CLICKS,
            expect="SELECT 1",
            examples=[EXAMPLE],
            seconds=4,
        ),
        r"the job's query took longer than 4 s \(it was in line \d+ of .+\): .+",
        StreamproofError,
    ),
    Case(
        "a sink's batch is interrupted",
        sunk(written(write_and_interrupt)),
        r".+ the Spark query failed: write_and_interrupt \(.+\) raised KeyboardInterrupt.*",
        StreamproofError,
    ),
    Case("a sink's read raises", sunk(written(ignore), raises), rf"raises \({HERE}\) raised KeyError: 'amount', .+"),
    Case(
        "a sink's read returns nothing",
        sunk(written(ignore), says_none),
        rf"says_none \({HERE}\): expected rows, and got None.+",
    ),
    Case(
        "a sink's read returns numbers",
        sunk(written(ignore), says_numbers),
        rf"says_numbers \({HERE}\): a row is 1: .+",
    ),
    Case(
        "a sink's checkpoint is elsewhere",
        sunk(written(ignore, "../../elsewhere")),
        r".+ keeps its checkpoint in /.+: put the checkpoint .+",
    ),
    Case("a counterexample", lambda folder: of(wrong, folder=folder)(folder), WROTE, Violated, SAVED_FOLDERS),
    Case("a counterexample of no folder", of(wrong, folder="/proc/nowhere"), WROTE, Violated),
]


@pytest.mark.parametrize("case", ON_SPARK, ids=attrgetter("name"))
def test_a_fault_on_spark_ends_as_it_must(case: Case, tmp_path: Path, spark: SparkSession) -> None:
    assert_ends_as_it_must(case, tmp_path)
    assert not spark.streams.active


# The command, in a process of its own: on Spark 10 to 20 s.

MODULE = """\
from pyspark.sql import functions as F
from streamproof import Input, sql

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
RIGHT = sql('SELECT "user", amount FROM clicks')


def wrong(clicks):
    return clicks.select("user", (F.col("amount") + 1).alias("amount"))
"""
OF_JOB = ("--input", "shop.py:CLICKS", "--histories", "10")


WRONG = ("check", "shop.py:wrong", *OF_JOB, "--expect", "shop.py:RIGHT")
COMMANDS = [
    Fault(
        "a module leaves at once",
        WRONG,
        r"error: shop\.py:wrong: its module ended .+ exit\(0\): .+",
        given={"shop.py": "import os; os._exit(0)"},
        after_steps=True,
    ),
    Fault(
        "a counterexample is saved where standard output is full",
        WRONG,
        r"error: standard output can't be written \(No space left on device\): .+",
        given={"shop.py": MODULE},
        shell='"$@" >/dev/full; code=$?; [ -s .streamproof/jobs/*/*/*.jsonl ] && rm -r .streamproof; exit $code',
        after_steps=True,
    ),
    Fault(
        "a counterexample is printed where it can't be saved",
        WRONG,
        "",
        1,
        given={"shop.py": MODULE, ".streamproof/jobs": "a file"},
        after_steps=True,
        reports=r"The history can't be saved in .+\n(.|\n)+examples=\[r\'\'\'\n(.|\n)+violated",
    ),
]


@pytest.mark.parametrize("fault", COMMANDS, ids=attrgetter("name"))
@pytest.mark.in_ci("a module leaves at once", "a counterexample is printed where it can't be saved")
def test_a_fault_of_the_command_ends_as_it_must(fault: Fault, tmp_path: Path) -> None:
    assert_command_ends_as_it_must(fault, tmp_path)


def pytest_of(*words: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *words]


def histories_of(running: Running) -> list[Path]:
    return [*running.work.glob(".streamproof/jobs/*/job-*/history.jsonl")]


SLOWLY = """

import time
from streamproof.properties.generators.shrinking import Shrinker

shrink = Shrinker.shrink


def slowly(self, *given, **named):
    time.sleep(5)  # so that no signal comes after the end
    return shrink(self, *given, **named)


Shrinker.shrink = slowly
"""
TEST = f"{MODULE}{SLOWLY}\n\ndef test_wrong(check_job):\n    check_job(wrong, CLICKS, expect=RIGHT, histories=20)\n"


@pytest.mark.parametrize(
    ("program", "number"),
    [(streamproof, signal.SIGINT), (pytest_of, signal.SIGINT), (pytest_of, signal.SIGTERM)],
)
@pytest.mark.in_ci("pytest_of-2")
def test_a_signal_while_a_counterexample_is_shrunk_loses_nothing(
    program: Callable[..., list[str]], number: signal.Signals, tmp_path: Path
) -> None:
    of_command = ["check", "test_shop.py:wrong", "--input", "test_shop.py:CLICKS", "--expect", "test_shop.py:RIGHT"]
    words = of_command if program is streamproof else ["test_shop.py::test_wrong"]
    running = Running(words, tmp_path, program=program, given={"test_shop.py": TEST})
    try:
        running.wait_until(histories_of)
        running.process.send_signal(number)
        code, printed = running.ended(), running.printed()
        assert code == (3 if program is streamproof else 2 if number == signal.SIGINT else -signal.SIGTERM), printed
        assert "Traceback" not in printed
        assert "interrupt" in printed.lower() or code == -signal.SIGTERM, printed
        assert [saved_histories([path], None, [SOURCE]) for path in histories_of(running)], printed
        assert not processes_left(running.mark), printed
    finally:
        end_processes(running.mark)


def test_two_checks_at_once_share_a_folder(tmp_path: Path, spark: SparkSession) -> None:
    raised: list[BaseException] = []

    def check() -> None:
        try:
            check_job(wrong, CLICKS, expect=RIGHT, examples=[EXAMPLE], folder=tmp_path)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=check) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(error) for error in raised] == [Violated, Violated], raised
    assert [re.sub(r"job-\w+", "job", name) for name in listing(tmp_path)] == [
        "job/",
        "job/counterexample.json",
        "job/counterexample.txt",
        "job/history.jsonl",
    ]
