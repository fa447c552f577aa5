"""A counterexample is asked again alone by the law that found it, and its pasted test fails as long as it stands.

What stands in for Spark here answers as the reference does, but for one planted bug: a check finds it, writes the test,
and the test is run. `test_recheck_on_spark` does the same with mutants on Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties import (
    check,
    decoupled_witness,
    examinations,
    hunting,
    oracle,
    partitions,
    recheck,
    shape_check,
    spark_witness,
)
from streamproof.properties.check import Report, SessionCheck
from streamproof.properties.cohorts import Cohort, prefixed_key
from streamproof.properties.decoupled_witness import Staged, play_protocol
from streamproof.properties.findings import Finding, account
from streamproof.properties.findings import test_to_paste as to_paste
from streamproof.properties.laws import LAWS, LawResult
from streamproof.properties.mutants.common import Mutant
from streamproof.properties.native_check import taken_by_spark
from streamproof.properties.oracle import check_reference
from streamproof.properties.outcomes import Grain, Outcome
from streamproof.properties.recheck import CannotAsk, assert_holds, retention_of_history
from streamproof.properties.retention import _answered
from streamproof.properties.shape_check import ShapeCheck, laws_of
from streamproof.properties.spark_witness import PLAIN, Plan
from streamproof.properties.streams import StreamOutput
from streamproof.reference import foreign_key_protocol, session_windows, table_table_join
from streamproof.reference.errors import BadInput, StreamproofError
from streamproof.reference.histories import History, parse_history
from streamproof.reference.play import Entry, play
from streamproof.reference.records import Change

pytestmark = pytest.mark.exhaustive

Entries = list[Entry]
Bug = Callable[["Run", History, Entries], Entries]


@dataclass
class Run:
    """What stands in for a run on Spark: the plan, and what else there is to see."""

    plan: Plan
    cohort: Cohort


def right(run: Run, history: History, entries: Entries) -> Entries:
    return entries


def without_last(entries: Entries, key: str | None = None) -> Entries:
    """The entries without the last change (of a key)."""
    places = [
        place
        for place, entry in enumerate(entries)
        if isinstance(entry.output, Change) and key in (None, entry.output.key)
    ]
    return [entry for place, entry in enumerate(entries) if place not in places[-1:]]


@dataclass
class StandIn:
    """Answers for Spark as the reference does, but for a bug; what else a query tells may be wrong too."""

    bug: Bug = right
    state_left: bool = False
    replayed_otherwise: bool = False

    def run_cohort(self, cohort: Cohort, plan: Plan = PLAIN) -> tuple[list[Outcome], StreamOutput]:
        outcomes = [self.outcome(Run(plan, cohort), history) for history in cohort.histories]
        output = StreamOutput(partitions=plan.partitions or 2)
        keys = [
            prefixed_key(place, record.key)
            for place, history in enumerate(cohort.histories)
            for record in history.records[:1]
            if record.key is not None
        ]
        if self.state_left and plan.read_state:
            output.leftover = [{"value": {"keys": [{"key_0": key, "rows": [1]} for key in keys]}}]
        if plan.crash_in is not None:
            first = pa.table({"key": keys, "value": ["first"] * len(keys)})
            again = pa.table({"key": keys, "value": ["again" if self.replayed_otherwise else "first"] * len(keys)})
            output.replayed = [(first, again)]
        return outcomes, output

    def outcome(self, run: Run, history: History) -> Outcome:
        played = play(taken_by_spark(history) if run.plan.native else history)
        entries = played.entries
        if isinstance(run.plan.job, partial):  # with a retention
            entries = _answered(history, self.retention_ms(history)).entries
        entries = [entry._replace(arrival=-1) for entry in self.bug(run, history, [*entries])]
        knows = not run.plan.native and run.plan.job is None
        is_stream = played.definition.is_stream
        return Outcome(history.name, Grain.BATCH, entries, knows_dropped=knows, is_stream=is_stream)

    def retention_ms(self, history: History) -> int:
        return retention_of_history(history)

    def play_decoupled(self, histories: Sequence[History], logics: Any = None, strict: bool = True) -> list[Staged]:
        staged = []
        for history in histories:
            played, waiting = play_protocol(history)
            outcome = Outcome.of_play(history.name, played)
            run = Run(Plan(), Cohort("", {}, (), ()))
            staged.append(Staged(replace(outcome, entries=self.bug(run, history, [*outcome.entries])), waiting))
        return staged


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Stand in for Spark, and let every law that is broken make a finding of its own."""
    standing = StandIn()
    for module in (check, examinations, partitions, recheck, shape_check, spark_witness):
        if hasattr(module, "run_cohort"):
            monkeypatch.setattr(module, "run_cohort", standing.run_cohort)
    for module in (decoupled_witness, recheck, shape_check):
        monkeypatch.setattr(module, "play_decoupled", standing.play_decoupled)
    monkeypatch.setattr(examinations, "shrink", lambda history, fails: history)  # it is tested elsewhere, and long
    monkeypatch.setattr(SessionCheck, "following", ())
    monkeypatch.setattr(ShapeCheck, "following", ())
    return standing


def checker(operator: str, folder: Path, histories: int, plan: Plan = PLAIN) -> SessionCheck:
    is_session = operator == "session_windows"
    laws = {law.name: LawResult(law) for law in (LAWS.values() if is_session else laws_of(operator))}
    kind = SessionCheck if is_session else ShapeCheck
    return kind(Report(operator, [*laws.values()], 0), laws, histories, 0, folder, lambda step: None, plan)


def found_by(checking: SessionCheck, law: str) -> tuple[Finding, Path]:
    (found,) = [pair for pair in checking.report.found if pair[0].law == law]
    return found


def run_pasted(folder: Path) -> None:
    """Run the test that was written into a folder."""
    (file,) = folder.glob("test_*.py")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


# Bugs, each of which breaks a law.


def last_is_lost(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries)


def order_matters(run: Run, history: History, entries: Entries) -> Entries:
    """How many changes are lost depends on the order in which the timestamps come."""
    lost = sum(number * record.timestamp for number, record in enumerate(history.records)) % 7
    return entries[: len(entries) - lost]


def cuts_matter(run: Run, history: History, entries: Entries) -> Entries:
    """How many changes are lost depends on where the cuts fall."""
    lost = sum(number * len(batch) for number, batch in enumerate(history.batches)) % 7
    return entries[: len(entries) - lost]


def repeats_lose(run: Run, history: History, entries: Entries) -> Entries:
    """Of more records than are drawn nothing comes."""
    return [] if len(history.records) > 20 else entries


def other_keys_disturb(run: Run, history: History, entries: Entries) -> Entries:
    """Of so many records (all that are drawn) each key's last change is lost; those of one key are fewer."""
    for key in sorted({str(entry.output.key) for entry in entries}) if len(history.records) == 20 else ():
        entries = without_last(entries, key)
    return entries


def company_disturbs(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if len(run.cohort.histories) > 1 else entries


def seven_partitions_lose(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.plan.partitions == 7 else entries


def restart_forgets(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.plan.stop_after is not None else entries


def native_loses(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.plan.native and not run.plan.merge_in_partition else entries


def merge_loses(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.plan.merge_in_partition else entries


def job_loses(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.plan.job is not None else entries


def of_update(checking: SessionCheck) -> None:
    checking.cohort("update")


def of_patient(checking: SessionCheck) -> None:
    checking.patient()


def of_native(checking: SessionCheck) -> None:
    checking.native()


def of_first_shape(checking: SessionCheck) -> None:
    assert isinstance(checking, ShapeCheck)
    operator = checking.report.operator
    name, options = next(iter(shape_check.SHAPES[operator].items()))
    checking.shape(name, options)


def of_retention(checking: SessionCheck) -> None:
    assert isinstance(checking, ShapeCheck)
    checking.retention()


def of_schedules(checking: SessionCheck) -> None:
    assert isinstance(checking, ShapeCheck)
    checking.schedules()


Case = tuple[str, str, Callable[[SessionCheck], None], dict[str, Any]]
CASES: list[Case] = [
    ("changelog", "session_windows", of_update, {"bug": last_is_lost}),
    ("table at every cut", "session_windows", of_update, {"bug": last_is_lost}),
    ("state", "session_windows", of_update, {"state_left": True}),
    ("keys", "session_windows", of_update, {"bug": other_keys_disturb}),
    ("packing", "session_windows", of_update, {"bug": company_disturbs}),
    ("partitions", "session_windows", of_update, {"bug": seven_partitions_lose}),
    ("restart", "session_windows", of_update, {"bug": restart_forgets}),
    ("replay", "session_windows", of_update, {"replayed_otherwise": True}),
    ("order", "session_windows", of_patient, {"bug": order_matters}),
    ("cuts", "session_windows", of_patient, {"bug": cuts_matter}),
    ("repeats", "session_windows", of_patient, {"bug": repeats_lose}),
    ("native", "session_windows", of_native, {"bug": native_loses}),
    ("native partial merge", "session_windows", of_native, {"bug": merge_loses}),
    ("changelog", "table_table_join", of_first_shape, {"bug": last_is_lost}),
    ("table at every cut", "table_table_join", of_first_shape, {"bug": last_is_lost}),
    ("duckdb", "table_table_join", of_first_shape, {"bug": last_is_lost}),
    ("keys", "table_table_join", of_first_shape, {"bug": other_keys_disturb}),
    ("keys", "table_aggregate", of_first_shape, {"bug": other_keys_disturb}),
    ("keys", "foreign_key_join", of_first_shape, {"bug": other_keys_disturb}),
    ("order", "table_table_join", of_first_shape, {"bug": order_matters}),
    ("cuts", "table_table_join", of_first_shape, {"bug": cuts_matter}),
    ("repeats", "table_aggregate", of_first_shape, {"bug": repeats_lose}),
    ("packing", "table_table_join", of_first_shape, {"bug": company_disturbs}),
    ("partitions", "table_table_join", of_first_shape, {"bug": seven_partitions_lose}),
    ("restart", "table_table_join", of_first_shape, {"bug": restart_forgets}),
    ("replay", "table_table_join", of_first_shape, {"replayed_otherwise": True}),
    ("state", "stream_stream_join", of_first_shape, {"state_left": True}),
    ("native", "stream_stream_join", of_native, {"bug": native_loses}),
    ("retention", "range_aggregate", of_retention, {"bug": job_loses}),
    ("retention", "range_aggregate", of_retention, {"state_left": True}),
    ("schedules", "foreign_key_join", of_schedules, {"bug": last_is_lost}),
]


@pytest.mark.parametrize(
    ("law", "operator", "part", "wrong"),
    CASES,
    ids=[f"{case[0]} of {case[1]}, {next(iter(case[3]))}" for case in CASES],
)
def test_the_pasted_test_fails_on_its_counterexample_and_passes_once_the_bug_is_gone(
    stand_in: StandIn, tmp_path: Path, law: str, operator: str, part: Callable[[SessionCheck], None], wrong: Any
) -> None:
    checking = checker(operator, tmp_path, 24 if part is of_update else 80)
    for name, value in wrong.items():
        setattr(stand_in, name, value)
    part(checking)
    finding, folder = found_by(checking, law)
    assert finding.confirmed
    assert recheck.recheck(law, finding.history, original=finding.original) == finding.differences
    with pytest.raises(AssertionError, match=r"^violated: ") as failed:
        run_pasted(folder)
    assert str(failed.value).startswith(finding.sentence)
    for name in wrong:
        setattr(stand_in, name, getattr(StandIn(), name))
    run_pasted(folder)


def test_every_law_on_spark_has_such_a_test() -> None:
    operators = [operator for operator in spark_witness.ON_SPARK if operator != "session_windows"]
    of_all = {*LAWS, *(law.name for operator in operators for law in laws_of(operator))}
    by_reference = {"fold is meaning", "duckdb"}  # those below, of session windows' check
    assert {case[0] for case in CASES} | by_reference == of_all


# The laws that judge the reference.


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's joins of tables don't answer a deletion on the right."""
    whole = table_table_join.TableJoin.change

    def change(self: Any, side: str, row: Any, value: Any, timestamp: int) -> list[Change]:
        return [] if side == "right" and value is None else whole(self, side, row, value, timestamp)

    monkeypatch.setattr(table_table_join.TableJoin, "change", change)


def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol takes an answer for the present value's, whatever value it answers."""

    def receive(self: Any, response: foreign_key_protocol.Response) -> list[Change]:
        return self._tell(response.key, response.value, response.timestamp)  # type: ignore[no-any-return]

    monkeypatch.setattr(foreign_key_protocol.Left, "receive", receive)


def wrong_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol answers from the rows of every foreign key that begins alike."""
    monkeypatch.setattr(foreign_key_protocol, "prefix_of", lambda foreign_key: foreign_key.encode())


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka Streams keeps its last change to itself."""
    monkeypatch.setattr("streamproof.properties.kafka_witness.answer", lambda histories: kafka(histories, 1))


def kafka(histories: Sequence[History], lost: int) -> list[Outcome]:
    outcomes = [Outcome.of_play(history.name, play(history)) for history in histories]
    return [replace(outcome, entries=outcome.entries[: len(outcome.entries) - lost]) for outcome in outcomes]


OF_REFERENCE = [
    ("fold is meaning", "table_table_join", forgetful),
    ("duckdb", "table_table_join", forgetful),
    ("protocol", "foreign_key_join", wrong_rows),
    ("schedules", "foreign_key_join", unchecked),
    ("kafka", "table_aggregate", silent),
]


@pytest.mark.parametrize(("law", "operator", "plant"), OF_REFERENCE, ids=[case[0] for case in OF_REFERENCE])
def test_the_pasted_test_of_the_reference_fails_too(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    law: str,
    operator: str,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    monkeypatch.setattr("streamproof.properties.kafka_witness.answer", lambda histories: kafka(histories, 0))
    with pytest.MonkeyPatch.context() as planted:
        plant(planted)
        report = check_reference(operator, 100, 0, tmp_path)
        finding, folder = next(pair for pair in report.found if pair[0].law == law)
        assert (finding.confirmed, finding.subject) == (True, "reference")
        assert finding.history.has_schedule == (law == "schedules")
        with pytest.raises(AssertionError, match=r"^violated: ") as failed:
            run_pasted(folder)
        assert str(failed.value).startswith(finding.sentence)
    run_pasted(folder)


def test_every_law_of_the_reference_has_such_a_test() -> None:
    assert {case[0] for case in OF_REFERENCE} == {*oracle.SENTENCES} == {*oracle.JUDGES}


@pytest.mark.parametrize("law", ["fold is meaning", "duckdb"])
def test_what_the_check_of_session_windows_on_spark_finds_in_the_reference_is_asked_again_of_it(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, law: str
) -> None:
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(session_windows.Behaviour, "near", lambda self, key, timestamp, edge: [])  # nothing merges
        checking = checker("session_windows", tmp_path, 24)
        checking.cohort("own")
        finding, folder = found_by(checking, law)
        assert finding.confirmed
        with pytest.raises(AssertionError, match=r"^violated: "):
            run_pasted(folder)
    run_pasted(folder)


# What isn't confirmed.


def test_a_violation_that_the_history_alone_does_not_show_is_not_confirmed_and_has_no_test(
    stand_in: StandIn, tmp_path: Path
) -> None:
    checking = checker("table_table_join", tmp_path, 24)
    stand_in.bug = company_disturbs
    of_first_shape(checking)
    for law in ("changelog", "table at every cut", "duckdb"):
        finding, folder = found_by(checking, law)
        assert not finding.confirmed
        assert "\nnot confirmed: alone, outside its cohort, the history doesn't show it" in account(finding)
        assert (folder / "finding.txt").read_text(encoding="utf-8") == account(finding)
        assert not [*folder.glob("test_*.py")]
    assert found_by(checking, "packing")[0].confirmed


def test_a_violation_of_a_law_that_cannot_be_asked_again_is_not_confirmed_and_says_why(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checking = checker("range_aggregate", tmp_path, 24)
    stand_in.bug = job_loses
    monkeypatch.setattr(recheck, "SHAPES", shape_check.SHAPES | {"range_aggregate": {"list": {"preceding_ms": 1}}})
    monkeypatch.setattr(StandIn, "retention_ms", lambda self, history: 15)
    of_retention(checking)
    finding, folder = found_by(checking, "retention")
    assert not finding.confirmed
    assert "\nnot confirmed: with which retention range_aggregate ran under {" in account(finding)
    assert not [*folder.glob("test_*.py")]


def test_a_violation_is_on_disk_as_not_confirmed_before_it_is_asked_again(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dies(*arguments: Any, **named: Any) -> None:
        raise StreamproofError("the JVM is gone")

    checking = checker("table_table_join", tmp_path, 24)
    stand_in.bug = restart_forgets
    monkeypatch.setattr(check, "answer_again", dies)
    with pytest.raises(StreamproofError, match="the JVM is gone"):
        of_first_shape(checking)
    ((finding, folder),) = checking.report.found
    assert (finding.law, finding.confirmed) == ("restart", False)
    assert "Spark without a restart tells" in finding.sentence
    assert "\nnot confirmed: the law wasn't asked again before the check ended" in account(finding)
    assert (folder / "history.jsonl").exists()


# What can't be asked.


HISTORY = """\
{"operator": "session_windows", "options": {"gap_ms": 10, "aggregate": "list"}, "clock": "batch"}
{"input": "events", "key": "a", "value": 0, "timestamp": 0}
{"heartbeat": 5}
{"cut": true}
{"input": "events", "key": "b", "value": 0, "timestamp": 9}
"""
JOIN = '{"operator": "table_table_join", "clock": "batch"}\n{"input": "left", "key": "a", "value": 1, "timestamp": 0}\n'


@pytest.mark.parametrize(
    ("law", "named", "message"),
    [
        ("gravity", {}, "there is no law 'gravity' of session_windows on Spark that can be asked again"),
        ("packing", {"subject": "reference"}, "there is no law 'packing' of the reference: there are fold is meaning,"),
        ("order", {}, "the law 'order' relates a variant to its original, which wasn't saved: check once more"),
        ("keys", {}, "the law 'keys' relates a variant to its original"),
        ("keys", {"original": HISTORY}, "the history has 2 keys: the law 'keys' is about the only one of a history"),
        ("order", {"original": HISTORY.replace("5", "6")}, "the history and its original don't travel together: one"),
        ("retention", {}, "with which retention session_windows ran under {'gap_ms': 10, 'aggregate': 'list'} isn't"),
        ("changelog", {"mutant": "x"}, "unknown mutant 'x': use one of exclusive_gap"),
    ],
)
def test_what_cannot_be_asked_again_is_refused_with_the_reason(
    stand_in: StandIn, law: str, named: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        assert_holds(law, HISTORY, **named)
    assert str(refused.value).startswith(message)
    assert isinstance(refused.value, CannotAsk) == ("mutant" not in named)


def test_a_variant_that_is_none_of_its_original_is_refused(stand_in: StandIn) -> None:
    with pytest.raises(CannotAsk, match="the history isn't its original without what doesn't concern a key"):
        assert_holds("keys", JOIN, original=JOIN.replace('"value": 1', '"value": 2'))


def test_a_history_with_a_null_key_has_no_cohort_to_be_packed_in(stand_in: StandIn) -> None:
    with pytest.raises(CannotAsk, match="a history with a null key travels in no cohort"):
        assert_holds("packing", HISTORY.replace('"a"', "null"))


# Mutants.


def test_a_mutants_counterexample_is_asked_again_of_the_mutant(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mutant = Mutant("table_table_join", "loses", object, object, "outer", "The last change is lost")
    monkeypatch.setitem(hunting.MUTANTS, "table_table_join", {"loses": mutant})  # type: ignore[arg-type]
    stand_in.bug = lambda run, history, entries: without_last(entries) if run.plan.logic is object else entries
    checking = checker("table_table_join", tmp_path, 24, recheck.plan_of("table_table_join", "loses"))
    of_first_shape(checking)
    finding, folder = found_by(checking, "changelog")
    assert (finding.mutant, finding.confirmed) == ("loses", True)
    with pytest.raises(AssertionError, match=r"^violated: "):
        run_pasted(folder)
    assert recheck.recheck("changelog", finding.history) == []
    assert recheck.recheck("changelog", finding.history, mutant="loses") != []


# A user's own job.


def test_a_jobs_counterexample_is_asked_again_of_the_job_that_is_given(stand_in: StandIn) -> None:
    def job(events: Any) -> Any:
        raise NotImplementedError  # the stand-in answers for it

    stand_in.bug = lambda run, history, entries: without_last(entries) if run.plan.job is job else entries
    history = parse_history(HISTORY)
    assert recheck.recheck("changelog", history) == []
    differences = recheck.recheck("changelog", history, subject="job", job=job)
    assert differences
    answer = recheck.answer_again("changelog", history, Plan(job=job), "job")
    assert (
        answer.account("changelog", history, "job").split("tells ")[1].startswith("b@[9,9]=[0], and the job nothing.")
    )
    with pytest.raises(CannotAsk, match="the law was asked of a job of yours, which wasn't given: give it as job"):
        recheck.recheck("changelog", history, subject="job")

    finding = Finding("changelog", "no", history, answer.left, answer.right, differences, True, 0, "job")
    code = to_paste(finding)
    assert code is not None
    names: dict[str, Any] = {"job": job}
    imported = "from your_module import job  # the job that was given to conforms\n"
    assert imported in code
    exec(compile(code.replace(imported, ""), "test_pasted.py", "exec"), names)
    with pytest.raises(AssertionError, match=r"^violated: "):
        names["test_" + finding.name.replace("-", "_")]()


# Any text survives in a pasted test.

TEXTS = ['"""', "'''", "\\", "\n", "\x00\x1b[2J", "\u2028", "é", "𝄞", '\\"""\\', "{}", "%s"]


@pytest.mark.parametrize("text", TEXTS, ids=map(ascii, TEXTS))
def test_keys_and_values_survive_in_the_pasted_test(stand_in: StandIn, text: str) -> None:
    told = json.dumps(text)
    history = parse_history(HISTORY.replace('"a"', told).replace('"value": 0', f'"value": {told}'))
    answer = recheck.answer_again("changelog", history)
    finding = Finding("keys", "no", history, answer.left, answer.right, [], True, 0, "reference", text, history)
    names: dict[str, Any] = {}
    code = to_paste(finding)
    assert code is not None
    exec(compile(code, "test_pasted.py", "exec"), names)
    asked: list[Any] = []
    names["assert_holds"] = lambda *arguments, **named: asked.append((arguments, named))
    names["test_" + finding.name.replace("-", "_")]()
    (((law, pasted), named),) = asked
    assert (law, parse_history(pasted), parse_history(named["original"])) == ("keys", history, history)
    assert (named["mutant"], named["subject"]) == (text, "reference")
