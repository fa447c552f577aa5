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
from msgspec import Raw
from shared_player import share_nothing
from streamproof.properties.checking import confirm, findings, mutation
from streamproof.properties.checking.check import Check, check_reference
from streamproof.properties.checking.mutation import witness_of
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import plan_on_spark
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.counterexamples.text import counterexample_text
from streamproof.properties.counterexamples.text import test_to_paste as to_paste
from streamproof.properties.generators.cohorts import Cohort
from streamproof.properties.laws.all import OF_REFERENCE as REFERENCE_LAWS
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.base import OWN, CannotRecheck
from streamproof.properties.laws.on_spark import retention
from streamproof.properties.laws.on_spark.columns import expected
from streamproof.properties.laws.runs import Kind
from streamproof.properties.operators.range_aggregate import _with_retention as with_retention
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.key_space import prefixed_key
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.testing.recheck import assert_holds, recheck
from streamproof.properties.witnesses.messages import Staged, staged_by_protocol
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark import staged as staged_player
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.typed import TypedAnswer, TypedSparkWitness
from streamproof.properties.witnesses.spark.witness import (
    JobWitness,
    NativeSparkWitness,
    QueryWitness,
    SparkWitness,
)
from streamproof.reference import foreign_key_protocol, table_table_join
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.pages import Pages, Stored
from wrong_sessions import plant

Entries = list[Entry]
Bug = Callable[["Run", History, Entries], Entries]


@dataclass
class Run:
    """What stands in for a run on Spark: who runs, how, and what else there is to see."""

    witness: QueryWitness
    options: RunOptions
    cohort: Cohort


def right(run: Run, history: History, entries: Entries) -> Entries:
    return entries


def without_last(entries: Entries, key: str | None = None) -> Entries:
    """The entries without the last change (of a key)."""
    changes = [
        index
        for index, entry in enumerate(entries)
        if isinstance(entry.output, Change) and key in (None, entry.output.key)
    ]
    return [entry for index, entry in enumerate(entries) if index not in changes[-1:]]


@dataclass
class StandIn:
    """Answers for Spark as the reference does, but for a bug; what else a query emits may be wrong too."""

    bug: Bug = right
    state_left: bool = False
    replayed_otherwise: bool = False

    def run(
        self, witness: QueryWitness, cohort: Cohort, options: RunOptions = PLAIN
    ) -> tuple[list[Outcome], StreamOutput]:
        outcomes = [self.outcome(Run(witness, options, cohort), history) for history in cohort.histories]
        output = StreamOutput(partitions=options.partitions or 2)
        keys = [
            prefixed_key(index, record.key)
            for index, history in enumerate(cohort.histories)
            for record in history.records[:1]
            if record.key is not None
        ]
        if self.state_left and options.read_state:
            pages = Pages(None)
            for key in map(encode, ((key,) for key in keys)):
                pages.page_of(key)[key] = Stored(Raw(encode([[[1]]])), 0, None)
            packed = pages.packed()
            output.leftover = [] if packed is None else [{"value": {"packed": packed[0]}}]
        if options.crash_in:
            first = pa.table({"key": keys, "value": ["first"] * len(keys)})
            again = pa.table({"key": keys, "value": ["again" if self.replayed_otherwise else "first"] * len(keys)})
            output.replayed = [(first, again)]
        return outcomes, output

    def typed(self, witness: TypedSparkWitness, cohort: Cohort, options: RunOptions = PLAIN) -> list[TypedAnswer]:
        run, answers = Run(witness, options, cohort), []
        for history in cohort.histories:
            ours = expected(witness.layout, history)
            entries = self.bug(run, history, ours.outcome.entries)
            answers.append(replace(ours, outcome=replace(ours.outcome, grain=Grain.BATCH, entries=entries)))
        return answers

    def outcome(self, run: Run, history: History) -> Outcome:
        native = isinstance(run.witness, NativeSparkWitness)
        played = play(registration_of(history.operator).native.accepted(history) if native else history)
        entries = played.entries
        if is_with_retention(run.witness):
            entries = with_retention(history, self.retention_ms).entries
        entries = [entry._replace(arrival=-1) for entry in self.bug(run, history, [*entries])]
        knows, is_stream = isinstance(run.witness, SparkWitness), played.definition.is_stream
        return Outcome(history.name, Grain.BATCH, entries, knows_dropped=knows, is_stream=is_stream)

    retention_ms = 15

    def play_staged(self, histories: Sequence[History], logics: Any = None, strict: bool = True) -> list[Staged]:
        staged = []
        for history in histories:
            one = staged_by_protocol(history)
            run = Run(OWN, PLAIN, Cohort("", {}, (), ()))
            entries = self.bug(run, history, [*one.outcome.entries])
            staged.append(Staged(replace(one.outcome, entries=entries), one.waiting))
        return staged


def is_with_retention(witness: QueryWitness) -> bool:
    return isinstance(witness, JobWitness) and isinstance(witness.job, partial)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Stand in for Spark, and let every law that is broken make a counterexample of its own."""
    standing = StandIn()

    def run(self: QueryWitness, cohort: Cohort, options: RunOptions = PLAIN) -> Any:
        return standing.run(self, cohort, options)

    def run_typed(self: TypedSparkWitness, cohort: Cohort, options: RunOptions = PLAIN) -> Any:
        return standing.typed(self, cohort, options)

    monkeypatch.setattr(QueryWitness, "run", run)
    monkeypatch.setattr(TypedSparkWitness, "typed_answers", run_typed)
    share_nothing(monkeypatch)
    monkeypatch.setattr(staged_player, "play_staged", standing.play_staged)
    monkeypatch.setattr(confirm, "shrink", lambda history, *_: history)  # it is tested elsewhere, and takes long
    for law in ON_SPARK:
        monkeypatch.setattr(type(law), "follows_changelog", False)
    return standing


def checked(
    operator: str,
    folder: Path,
    histories: int,
    kind: Kind,
    witness: QueryWitness = OWN,
    report: Report | None = None,
) -> Report:
    """Check an operator on its first sample of a kind."""
    registration, report = registration_of(operator), report or Report(operator, [], 0, all_laws=True)
    one = next(one for draw in plan_on_spark(registration, histories, 0) if (one := draw()).kind is kind)
    Check(registration, report, ON_SPARK, "spark", FolderStore(folder), lambda step: None, witness).run([one])
    return report


def found_by(report: Report, law: str) -> tuple[Counterexample, Path]:
    (found,) = [pair for pair in report.found if pair[0].law == law]
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
    return without_last(entries) if run.options.partitions == 7 else entries


def restart_forgets(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if run.options.stop_after else entries


def native_loses(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if isinstance(run.witness, NativeSparkWitness) else entries


def job_loses(run: Run, history: History, entries: Entries) -> Entries:
    return without_last(entries) if is_with_retention(run.witness) else entries


Case = tuple[str, str, Kind, dict[str, Any]]
CASES: list[Case] = [
    ("changelog", "session_windows", Kind.RANDOM, {"bug": last_is_lost}),
    ("table at every cut", "session_windows", Kind.RANDOM, {"bug": last_is_lost}),
    ("duckdb", "session_windows", Kind.RANDOM, {"bug": last_is_lost}),
    ("state", "session_windows", Kind.RANDOM, {"state_left": True}),
    ("keys", "session_windows", Kind.RANDOM, {"bug": other_keys_disturb}),
    ("packing", "session_windows", Kind.RANDOM, {"bug": company_disturbs}),
    ("partitions", "session_windows", Kind.RANDOM, {"bug": seven_partitions_lose}),
    ("restart", "session_windows", Kind.RANDOM, {"bug": restart_forgets}),
    ("replay", "session_windows", Kind.RANDOM, {"replayed_otherwise": True}),
    ("order", "session_windows", Kind.WITHOUT_LATE_DATA, {"bug": order_matters}),
    ("cuts", "session_windows", Kind.WITHOUT_LATE_DATA, {"bug": cuts_matter}),
    ("repeats", "session_windows", Kind.WITHOUT_LATE_DATA, {"bug": repeats_lose}),
    ("native", "session_windows", Kind.NATIVE, {"bug": native_loses}),
    ("keys", "table_table_join", Kind.RANDOM, {"bug": other_keys_disturb}),
    ("keys", "table_aggregate", Kind.RANDOM, {"bug": other_keys_disturb}),
    ("keys", "foreign_key_join", Kind.RANDOM, {"bug": other_keys_disturb}),
    ("order", "table_table_join", Kind.RANDOM, {"bug": order_matters}),
    ("cuts", "table_table_join", Kind.RANDOM, {"bug": cuts_matter}),
    ("repeats", "table_aggregate", Kind.RANDOM, {"bug": repeats_lose}),
    ("state", "stream_stream_join", Kind.RANDOM, {"state_left": True}),
    ("state", "table_table_join", Kind.RANDOM, {"state_left": True}),
    ("retention", "range_aggregate", Kind.RETENTION, {"bug": job_loses}),
    ("retention", "range_aggregate", Kind.RETENTION, {"state_left": True}),
    ("schedules", "foreign_key_join", Kind.SCHEDULED, {"bug": last_is_lost}),
    ("columns", "session_windows", Kind.COLUMNS, {"bug": last_is_lost}),
    ("columns", "foreign_key_join", Kind.COLUMNS, {"bug": last_is_lost}),
]


@pytest.mark.parametrize(
    ("law", "operator", "kind", "wrong"),
    CASES,
    ids=[f"{case[0]} of {case[1]}, {next(iter(case[3]))}" for case in CASES],
)
def test_the_pasted_test_fails_on_its_counterexample_and_passes_once_the_bug_is_gone(
    stand_in: StandIn, tmp_path: Path, law: str, operator: str, kind: Kind, wrong: Any
) -> None:
    for name, value in wrong.items():
        setattr(stand_in, name, value)
    counterexample, folder = found_by(checked(operator, tmp_path, 96, kind), law)
    assert counterexample.confirmed
    again = recheck(law, counterexample.history, original=counterexample.original, way=counterexample.way)
    assert again.differences == counterexample.differences
    with pytest.raises(AssertionError, match=r"^violated: ") as failed:
        run_pasted(folder)
    assert str(failed.value).startswith(counterexample.sentence)
    for name in wrong:
        setattr(stand_in, name, getattr(StandIn(), name))
    run_pasted(folder)


def test_every_law_on_spark_has_such_a_test() -> None:
    # Labels are known of shared queries alone, for which nothing stands in here.
    assert {case[0] for case in CASES} == {law.name for law in ON_SPARK} - {"labels"}


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
        return self._emit(response.key, response.value, response.timestamp)  # type: ignore[no-any-return]

    monkeypatch.setattr(foreign_key_protocol.Left, "receive", receive)


def wrong_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol answers from the rows of every foreign key that begins alike."""
    monkeypatch.setattr(foreign_key_protocol, "prefix_of", lambda foreign_key: foreign_key.encode())


def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka Streams keeps its last change to itself."""
    monkeypatch.setattr(
        "streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate",
        lambda witness, histories: kafka(histories, 1),
    )


def kafka(histories: Sequence[History], lost: int) -> list[Outcome]:
    outcomes = [Outcome.of_play(history.name, play(history)) for history in histories]
    return [replace(outcome, entries=outcome.entries[: len(outcome.entries) - lost]) for outcome in outcomes]


def mute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka Streams keeps its last change to itself, under a schedule too."""
    monkeypatch.setattr(
        "streamproof.properties.witnesses.kafka.witness.KafkaWitness.stage",
        lambda witness, histories, strict: staged_kafka(histories, 1),
    )


def staged_kafka(histories: Sequence[History], lost: int) -> list[Staged]:
    return [
        Staged(outcome, staged_by_protocol(history).waiting)
        for history, outcome in zip(histories, kafka(histories, lost), strict=True)
    ]


OF_REFERENCE = [
    ("fold is meaning", "table_table_join", forgetful),
    ("duckdb", "table_table_join", forgetful),
    ("cuts", "session_windows", partial(plant, name="forgets_between_batches")),
    ("order", "session_windows", partial(plant, name="forward_only")),
    ("keys", "session_windows", partial(plant, name="shared_across_keys")),
    ("repeats", "session_windows", partial(plant, name="repeats_dropped")),
    ("protocol", "foreign_key_join", wrong_rows),
    ("schedules", "foreign_key_join", unchecked),
    ("kafka", "table_aggregate", silent),
    ("schedules on kafka", "foreign_key_join", mute),
]


@pytest.mark.parametrize(("law", "operator", "plant"), OF_REFERENCE, ids=[case[0] for case in OF_REFERENCE])
def test_the_pasted_test_of_the_reference_fails_too(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    law: str,
    operator: str,
    plant: Callable[[pytest.MonkeyPatch], None],
) -> None:
    monkeypatch.setattr(
        "streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate",
        lambda witness, histories: kafka(histories, 0),
    )
    monkeypatch.setattr(
        "streamproof.properties.witnesses.kafka.witness.KafkaWitness.stage",
        lambda witness, histories, strict: staged_kafka(histories, 0),
    )
    with pytest.MonkeyPatch.context() as planted:
        plant(planted)
        report = check_reference(operator, FolderStore(tmp_path), 100)
        counterexample, folder = next(pair for pair in report.found if pair[0].law == law)
        assert (counterexample.confirmed, counterexample.subject) == (True, "reference")
        assert counterexample.history.has_schedule == law.startswith("schedules")
        with pytest.raises(AssertionError, match=r"^violated: ") as failed:
            run_pasted(folder)
        assert str(failed.value).startswith(counterexample.sentence)
    run_pasted(folder)


def test_every_law_of_the_reference_has_such_a_test() -> None:
    assert {case[0] for case in OF_REFERENCE} == {law.name for law in REFERENCE_LAWS}


# What isn't confirmed.


def test_a_violation_that_the_history_alone_does_not_show_is_not_confirmed_and_has_no_test(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.bug = company_disturbs
    report = checked("table_table_join", tmp_path, 24, Kind.RANDOM)
    for law in ("changelog", "table at every cut", "duckdb"):
        counterexample, folder = found_by(report, law)
        assert not counterexample.confirmed
        assert "\nnot confirmed: outside its cohort, the history conforms" in counterexample_text(counterexample)
        assert (folder / "counterexample.txt").read_text(encoding="utf-8") == counterexample_text(counterexample)
        assert not [*folder.glob("test_*.py")]
    assert found_by(report, "packing")[0].confirmed


def test_a_violation_of_a_law_that_cannot_be_asked_again_is_not_confirmed_and_says_why(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def forgotten(cohort: Cohort) -> int:
        raise CannotRecheck("with which retention it ran isn't known any more")

    stand_in.bug = job_loses
    monkeypatch.setattr(retention, "retention_of", forgotten)
    counterexample, folder = found_by(checked("range_aggregate", tmp_path, 240, Kind.RETENTION), "retention")
    assert not counterexample.confirmed
    assert "\nnot confirmed: with which retention it ran isn't known any more" in counterexample_text(counterexample)
    assert not [*folder.glob("test_*.py")]


def test_a_violation_is_on_disk_as_not_confirmed_before_it_is_asked_again(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dies(*arguments: Any, **named: Any) -> None:
        raise StreamproofError("the JVM is gone")

    stand_in.bug = restart_forgets
    monkeypatch.setattr(findings, "confirmed", dies)
    report = Report("table_table_join", [], 0)
    with pytest.raises(StreamproofError, match="the JVM is gone"):
        checked("table_table_join", tmp_path, 24, Kind.RANDOM, report=report)
    ((counterexample, folder),) = report.found
    assert (counterexample.law, counterexample.confirmed) == ("restart", False)
    assert "Spark without a restart emits" in counterexample.sentence
    assert "\nnot confirmed: the check ended before it rechecked the law" in counterexample_text(counterexample)
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
        ("gravity", {}, "there is no law 'gravity' on Spark: there are changelog, labels, table at every cut,"),
        ("packing", {"subject": "reference"}, "there is no law 'packing' of the reference: there are fold is meaning,"),
        ("order", {}, "the law 'order' compares a variant with its original, which wasn't saved: run the check again"),
        ("keys", {}, "the law 'keys' compares a variant with its original"),
        ("keys", {"original": HISTORY}, "the history isn't its original reduced to the records of a key: the"),
        ("order", {"original": HISTORY.replace("5", "6")}, "the history and its original can't share a query: the"),
        ("retention", {}, "the law 'retention' isn't checked for session_windows: its registration has no retention"),
        ("changelog", {"mutant": "x"}, "unknown mutant 'x': use one of gap_exclusive"),
    ],
)
def test_what_cannot_be_asked_again_is_refused_with_the_reason(
    stand_in: StandIn, law: str, named: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as refused:
        assert_holds(law, HISTORY, **named)
    assert str(refused.value).startswith(message)
    assert isinstance(refused.value, CannotRecheck) == ("mutant" not in named)


def test_a_variant_that_is_none_of_its_original_is_refused(stand_in: StandIn) -> None:
    with pytest.raises(CannotRecheck, match="the history isn't its original reduced to the records of a key"):
        assert_holds("keys", JOIN, original=JOIN.replace('"value": 1', '"value": 2'))


def test_a_history_with_a_null_key_has_no_cohort_to_be_packed_in(stand_in: StandIn) -> None:
    with pytest.raises(CannotRecheck, match="a history with a null key can't share a query"):
        assert_holds("packing", HISTORY.replace('"a"', "null"))


# Mutants.


def test_a_mutants_counterexample_is_asked_again_of_the_mutant(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = registration_of("table_table_join")
    mutant = Mutant("table_table_join", "loses", object, object, "outer", "The last change is lost")
    monkeypatch.setattr(mutation, "registration_of", lambda name: replace(own, mutants={"loses": mutant}))
    stand_in.bug = lambda run, history, entries: without_last(entries) if run.witness.logic is object else entries
    report = checked("table_table_join", tmp_path, 24, Kind.RANDOM, witness_of("table_table_join", "loses"))
    counterexample, folder = found_by(report, "changelog")
    assert (counterexample.mutant, counterexample.confirmed) == ("loses", True)
    with pytest.raises(AssertionError, match=r"^violated: ") as failed:
        run_pasted(folder)
    assert any(line.startswith("  ≠ ") for line in str(failed.value).splitlines())
    assert not recheck("changelog", counterexample.history).differences
    assert recheck("changelog", counterexample.history, mutant="loses").differences


# Any text survives in a pasted test.

TEXTS = ['"""', "'''", "\\", "\n", "\x00\x1b[2J", "\u2028", "é", "𝄞", '\\"""\\', "{}", "%s"]


@pytest.mark.parametrize("text", TEXTS, ids=map(ascii, TEXTS))
def test_keys_and_values_survive_in_the_pasted_test(stand_in: StandIn, text: str) -> None:
    written = json.dumps(text)
    history = parse_history(HISTORY.replace('"a"', written).replace('"value": 0', f'"value": {written}'))
    found = recheck("changelog", history)
    counterexample = Counterexample(
        law="keys",
        sentence="no",
        history=history,
        expected=found.expected,
        actual=found.actual,
        differences=[],
        seed=0,
        subject="reference",
        mutant=text,
        original=history,
    )
    names: dict[str, Any] = {}
    code = to_paste(counterexample)
    assert code is not None
    exec(compile(code, "test_pasted.py", "exec"), names)
    asked: list[Any] = []
    names["assert_holds"] = lambda *arguments, **named: asked.append((arguments, named))
    names["test_" + counterexample.name.replace("-", "_")]()
    (((law, pasted), named),) = asked
    assert (law, parse_history(pasted), parse_history(named["original"])) == ("keys", history, history)
    assert (named["mutant"], named["subject"]) == (text, "reference")
