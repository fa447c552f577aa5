"""`streamproof check module:job`: what the command line makes of a job, without Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from streamproof import Input
from streamproof.properties.checking.jobs import job as of_job
from streamproof.properties.checking.jobs.reports import JobReport
from streamproof.properties.checking.jobs.verdicts import Inconclusive
from streamproof.properties.cli.app import app
from streamproof.properties.cli.commands.job import (
    JobOptions,
    check_one_job,
    expected,
    inputs_of,
    job_among,
    named,
    static_of,
)
from streamproof.properties.laws.expected.oracles import BatchOracle, SqlOracle
from streamproof.reference.core.errors import BadInput, StreamproofError
from typer.testing import CliRunner

MODULE = """\
from streamproof import Input, session_windows

CLICKS = Input("user string, at timestamp", key="user", name="clicks")
RULE = session_windows("10 minutes", "1 minute")


def visits(clicks):
    return clicks


def test_visits(check_job):
    check_job(visits, CLICKS, expect=RULE)


def test_both(check_job, invariants):
    check_job(visits, CLICKS, expect=RULE)
    invariants(visits, CLICKS)
"""
COLUMNS = "user string, at timestamp"


Called = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Called]:
    """What was checked: a module `shop_jobs` is in the working directory, and no job runs."""
    (tmp_path / "shop_jobs.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("streamproof.properties.witnesses.spark.session.spark_session", lambda **arguments: None)
    called: Called = []

    def noting(name: str) -> Callable[..., str]:
        def note(*arguments: Any, **named: Any) -> Any:
            called.append((name, arguments, named))
            return JobReport("job", f"job conforms to {name} says", {f"{name} says": 9}, "batches", 9)

        return note

    for name in ("check_job", "invariants", "upgrade", "replay"):
        monkeypatch.setattr(of_job, name, noting(name))
    yield called
    for name in ("shop_jobs", "broken", "needy"):
        sys.modules.pop(name, None)


def run(name: str, histories: int | None = None, **options: Any) -> int:
    with pytest.raises(typer.Exit) as left:
        check_one_job(name, JobOptions(**options, histories=histories), 7, Path(".streamproof/jobs"))
    return left.value.exit_code


invoke = partial(CliRunner().invoke, app)


def test_without_an_expectation_the_invariants_are_asked(jobs: Any) -> None:
    assert run("shop_jobs:visits", input=(f"clicks={COLUMNS}",), key=("user",)) == 0
    ((name, (job, given), options),) = jobs
    assert (name, job.__name__) == ("invariants", "visits")
    assert given == Input(COLUMNS, key=("user",), name="clicks")
    assert (options["histories"], options["seed"], options["seconds"]) == (None, 7, 120)
    assert options["folder"].parent == Path(".streamproof/jobs")


@pytest.mark.parametrize("name", ["shop_jobs:visits", "shop_jobs.py:visits"])
def test_a_job_is_checked_against_what_is_expected(jobs: Any, name: str) -> None:
    assert run(name, 50, input=("shop_jobs:CLICKS",), expect="shop_jobs:RULE", mode="update") == 0
    ((called, (_, given), options),) = jobs
    assert (called, given.name, options["mode"], options["histories"]) == ("check_job", "clicks", "update", 50)
    assert options["expect"].name == "session_windows(gap=10 minutes, delay=1 minute)"


def test_a_script_is_checked_as_it_is(jobs: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.py").write_text("spark.readStream.table('clicks').writeStream.start()")
    inputs = {"input": (f"clicks={COLUMNS}",), "key": ("user",)}
    assert run("visits.py", **inputs, query="2", argument=("--delay", "5m"), expect="batch") == 0
    ((called, (script,), options),) = jobs
    assert (called, script.where, script.query, script.args) == ("check_job", "visits.py", 2, ["--delay", "5m"])
    assert script.inputs == [Input(COLUMNS, key=("user",), name="clicks")]
    assert options["mode"] is None
    with pytest.raises(BadInput, match="is a function: --query and --argument are for scripts"):
        run("shop_jobs:visits", **inputs, query="2")
    with pytest.raises(BadInput, match=r"there is no file nothing\.py"):
        run("nothing.py", **inputs)


def test_a_test_is_run_with_its_fixtures(jobs: Any) -> None:
    assert run("shop_jobs:test_both", 9) == 0
    assert [(name, options["histories"], options["seed"]) for name, _, options in jobs] == [
        ("check_job", 9, 7),
        ("invariants", 9, 7),
    ]
    with pytest.raises(BadInput, match="test_visits is a test, and sets its own options: leave out --input"):
        check_one_job("shop_jobs:test_visits", JobOptions((COLUMNS,)), 0, Path())


def test_a_report_is_written_where_it_is_asked_for(jobs: Any, tmp_path: Path) -> None:
    with pytest.raises(typer.Exit):
        check_one_job("shop_jobs:test_visits", JobOptions(), 0, Path("saved"), tmp_path / "report")
    assert "check_job says" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(BadInput):
        check_one_job("shop_jobs:nothing", JobOptions(), 0, Path("saved"), tmp_path / "report")
    assert "has no 'nothing'" in (tmp_path / "report" / "report.txt").read_text(encoding="utf-8")


def test_inconclusive_exits_2(jobs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def inconclusive(*arguments: Any, **named: Any) -> None:
        raise Inconclusive("inconclusive: too few")

    monkeypatch.setattr(of_job, "check_job", inconclusive)
    assert run("shop_jobs:visits", input=(COLUMNS,), expect="batch") == 2
    assert "too few" in capsys.readouterr().out


def test_a_passing_check_is_brief_unless_all_is_asked_for(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = JobReport("job", "job conforms.", {"sql": 9}, "end", 9, not_checked=["one", "two", "three"])
    monkeypatch.setattr(of_job, "check_job", lambda *arguments, **named: report)
    asked = ["check", "shop_jobs:visits", "--input", COLUMNS, "--expect", "batch"]
    brief, whole = (invoke([*asked, *more]).stdout.splitlines() for more in ([], ["-v"]))
    assert len(brief) == 5
    assert (brief[:-1], brief[-1]) == (report.brief.splitlines(), "shop_jobs:visits: conforms")
    assert whole[:-1] == str(report).splitlines()


def test_a_verdict_is_one_line_however_long_its_job_s_name_is(jobs: Any) -> None:
    name = "shop_" + "j" * 200
    Path(f"{name}.py").write_text(MODULE, encoding="utf-8")
    done = invoke(["check", f"{name}:visits", "--input", COLUMNS, "--expect", "batch"])
    assert done.stdout.splitlines()[-1] == f"{name}:visits: conforms"


def test_as_json_nothing_else_is_on_stdout(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["check", "shop_jobs:visits", "--input", COLUMNS, "--expect", "batch", "--format", "json"]
    done = invoke([*asked, "--format", "kafka"])
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (0, "conforms")
    assert "shop_jobs:visits: conforms" in done.stderr
    assert jobs[0][1][1].format == "kafka"

    def failing(*arguments: Any, **named: Any) -> None:
        print("a line of the job's own")
        raise StreamproofError("the JVM was killed")

    monkeypatch.setattr(of_job, "check_job", failing)
    said = json.loads(invoke(asked).stdout)
    assert said["verdict"] == "inconclusive"
    assert said["missing"] == ["the rest: shop_jobs:visits: the JVM was killed"]


def test_the_command_takes_a_job_and_refuses_what_is_of_operators(jobs: Any) -> None:
    done = invoke(["check", "shop_jobs:visits", "--input", COLUMNS, "--histories", "40"])
    assert (done.exit_code, jobs[0][2]["histories"]) == (0, 40)
    for arguments, message in {
        ("shop_jobs:visits", "session_windows"): "is a job: check each job in a separate",
        ("shop_jobs:visits", "--mutant", "x"): "--mutant is for operators",
        ("session_windows", "--key", "user"): "--key is for a job of your own",
        ("--expect", "batch"): "--expect is for a job of your own",
    }.items():
        refused = invoke(["check", *arguments])
        assert message in str(refused.exception), arguments


@pytest.mark.parametrize("words", [("check",), ("mutants",), ("upgrade", "shop_jobs:visits")], ids=" ".join)
def test_each_option_of_a_command_reaches_the_check(jobs: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "prices.csv").write_text("user,price\na,1\n")
    given = {
        "--input": COLUMNS,
        "--key": "user",
        "--time": "at",
        "--static": "prices=prices.csv",
        "--expect": "batch",
        "--mode": "update",
        "--trigger": "available_now",
        "--out-of-order": "5 minutes",
        "--seconds": "9",
    }
    if words[0] == "upgrade":
        given |= {"--old-mode": "append", "--from-pyspark": "4.1.4"}
    more = [word for pair in given.items() for word in pair]
    done = invoke([*words, "shop_jobs:visits", *more, "--timeouts", "30 minutes", "--timeouts", "1 hour"])
    assert done.exit_code == 0
    ((name, (*_, source), options),) = jobs
    assert name == ("upgrade" if words[0] == "upgrade" else "check_job")
    assert source == Input(COLUMNS, key=("user",), time="at")
    assert isinstance(options["expect"], BatchOracle)
    assert options.get("old_mode") == given.get("--old-mode")
    assert options.get("from_pyspark") == given.get("--from-pyspark")
    assert options.get("mutants", False) == (words[0] == "mutants")
    assert (options["mode"], options["trigger"], options["out_of_order"]) == ("update", "available_now", "5 minutes")
    assert (options["seconds"], [*options["timeouts"]], [*options["static"]]) == (
        9,
        ["30 minutes", "1 hour"],
        ["prices"],
    )


def test_one_job_is_an_upgrade_from_another_pyspark(jobs: Any) -> None:
    inputs = ["--input", COLUMNS, "--key", "user"]
    done = invoke(["upgrade", "shop_jobs:visits", *inputs, "--from-pyspark", "3.5"])
    assert done.exit_code == 0
    assert "shop_jobs:visits on PySpark 3.5 to shop_jobs:visits: conforms" in done.stdout
    ((name, (old, new, _), options),) = jobs
    assert (name, options["from_pyspark"]) == ("upgrade", "3.5")
    assert old is new
    refused = invoke(["upgrade", "shop_jobs:visits", *inputs])
    assert "shop_jobs:visits alone is no upgrade: also name the new version" in str(refused.exception)
    refused = invoke(["upgrade", "shop_jobs:visits", *inputs, "--from-pyspark", "99.1"])
    assert "can't continue from the checkpoint of a newer Spark" in str(refused.exception)


def test_a_run_in_production_is_judged_as_the_command_says(jobs: Any) -> None:
    def judge(*words: str) -> Any:
        given = ["replay", "some/checkpoint", "--job", "shop_jobs:visits", "--input", COLUMNS, "--key", "user"]
        return invoke([*given, *words])

    done = judge("--output", "s3a://shop/out", "--read", "events=csv header=true", "--expect", "shop_jobs:RULE")
    assert done.exit_code == 0, done.exception
    ((name, (checkpoint, job, source), options),) = jobs
    assert (name, checkpoint, job.__name__, source) == (
        "replay",
        "some/checkpoint",
        "visits",
        Input(COLUMNS, key=("user",)),
    )
    assert options["output"] == "s3a://shop/out"
    assert options["reads"] == {"events": {"format": "csv", "header": "true"}}
    assert options["expect"].name == "session_windows(gap=10 minutes, delay=1 minute)"
    assert {"histories", "seed"} & {*options} == set()
    jobs.clear()
    assert judge("--output", "shop_jobs:visits").exit_code == 0
    assert (jobs[0][2]["output"].__name__, jobs[0][2]["expect"]) == ("visits", None)
    for words, says in {
        ("--output", "out", "--read", "events"): "write name=format",
        ("--output", "out", "--out-of-order", "1 minute"): "--out-of-order is for drawn histories",
    }.items():
        assert says in str(judge(*words).exception)


def test_mutants_of_a_job_need_something_that_is_expected_of_it(jobs: Any) -> None:
    refused = invoke(["mutants", "shop_jobs:visits", "--input", COLUMNS])
    assert "shop_jobs:visits needs --expect" in str(refused.exception)
    refused = invoke(["mutants", "session_windows", "--key", "user"])
    assert "--key is for a job of your own" in str(refused.exception)


def test_operators_are_no_job() -> None:
    assert job_among(["session_windows", "range_aggregate"], {}) is None
    assert job_among([], {"mutant": "x"}) is None


def test_a_folder_is_refused_with_its_scripts(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    with pytest.raises(BadInput, match=r"is a folder without a .py or .ipynb file that contains writeStream"):
        job_among([str(tmp_path)], {})
    (tmp_path / "notes.txt").write_text("no job")
    with pytest.raises(BadInput, match=r"notes.txt isn't a script: give a file that ends in .py, .ipynb, "):
        job_among([str(tmp_path / "notes.txt")], {})
    (tmp_path / "jobs" / "helper.py").write_text("import pyspark\n", encoding="utf-8")
    (tmp_path / "jobs" / "visits.py").write_text("visits.writeStream.start()\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"is a folder: check its scripts one by one: .*jobs.visits\.py$"):
        job_among([str(tmp_path)], {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:visits", "there is no module nowhere in .* or among the installed packages"),
        ("nowhere.py:visits", "there is no file nowhere.py"),
        ("shop_jobs:visit", "shop_jobs has no 'visit'; it has visits, test_visits, test_both"),
        ("broken:visits", "importing its module raised ZeroDivisionError: division by zero, in line 2 of .*broken.py"),
        ("needy:visits", "its module imports nowhere_at_all, which isn't installed"),
    ],
)
def test_a_job_that_is_not_there_is_named(jobs: Any, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "broken.py").write_text("\n1 / 0\n", encoding="utf-8")
    (tmp_path / "needy.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        named(name)


@pytest.mark.parametrize(
    "leave", ["sys.exit(0)", "raise SystemExit", "os._exit(0)", "os.fork() or os._exit(0); exit(5)"]
)
def test_a_module_that_ends_the_program_is_refused(jobs: Any, tmp_path: Path, leave: str) -> None:
    (tmp_path / "broken.py").write_text(f"import os, sys\n{leave}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"broken:visits: its module ended the program with exit\((0|5|None)\): return"):
        named("broken:visits")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("exit(0)", r"test_own \(broken.py:1\) ended the program with exit\(0\)"),
        (
            "assert 1 == 2, 'no'",
            r"test_own \(broken.py:1\) raised AssertionError: no, in line 2: `assert 1 == 2, 'no'`",
        ),
    ],
)
def test_what_a_test_itself_raises_is_no_fault_of_streamproof(
    jobs: Any, tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "broken.py").write_text(f"def test_own(check_job):\n    {line}\n", encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        run("broken:test_own")


def test_keys_and_times_are_for_all_inputs_or_one_for_each() -> None:
    two = (f"left={COLUMNS}", f"right={COLUMNS}, seen timestamp")
    assert [one.key for one in inputs_of(JobOptions(two, ("user",)))] == [("user",), ("user",)]
    given = inputs_of(JobOptions(two, ("user", "user, at"), ("at", "seen")))
    assert [(one.name, one.key, one.time) for one in given] == [
        ("left", ("user",), "at"),
        ("right", ("user", "at"), "seen"),
    ]
    with pytest.raises(BadInput, match="--key is given 3 times for 2 inputs"):
        inputs_of(JobOptions(two, ("a", "b", "c")))


def test_how_a_source_shapes_its_rows_is_said_of_all_inputs_or_of_each() -> None:
    shapes = {"time_format": ("ms",), "format": ("kafka", "text"), "value": ("csv",)}
    given = inputs_of(
        JobOptions(("left=user string, ts bigint", "right=user string, ts bigint"), time=("ts",), **shapes)
    )
    assert [(one.time_format, one.format, one.value) for one in given] == [
        ("ms", "kafka", "csv"),
        ("ms", "text", "csv"),
    ]
    (plain,) = inputs_of(JobOptions((COLUMNS,)))
    assert (plain.time_format, plain.format, plain.value) == (None, None, "json")


def test_a_file_is_a_sample() -> None:
    (given,) = inputs_of(JobOptions(("clicks=data/clicks.parquet",), ("user",)))
    assert (given.sample, given.schema, given.name) == ("data/clicks.parquet", None, "clicks")


def test_what_is_expected(tmp_path: Path) -> None:
    assert isinstance(expected("batch"), BatchOracle)
    (tmp_path / "total.sql").write_text("SELECT 1", encoding="utf-8")
    assert isinstance(expected(str(tmp_path / "total.sql")), SqlOracle)
    with pytest.raises(BadInput, match=r"--expect streaming: use batch, a file that ends in \.sql, or the module:name"):
        expected("streaming")
    with pytest.raises(BadInput, match=r"nothing\.sql"):
        expected(str(tmp_path / "nothing.sql"))


def test_static_tables_are_files(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("id,name\n1,one\n", encoding="utf-8")
    assert static_of([f"names={file}"])["names"].to_pylist() == [{"id": 1, "name": "one"}]
    with pytest.raises(BadInput, match=r"--static names: write it as name=file\.parquet"):
        static_of(["names"])
    with pytest.raises(BadInput, match="it can't be read"):
        static_of([f"names={tmp_path / 'none.csv'}"])


def test_a_job_without_inputs_is_told_how_to_say_them(jobs: Any) -> None:
    with pytest.raises(BadInput, match="visits has no input: give the columns"):
        check_one_job("shop_jobs:visits", JobOptions(), 0, Path())
