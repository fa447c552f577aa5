"""The proofs of the catalogue, and what else can come out: each is checked by z3, its module read by SANY."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from streamproof.properties.cli import app
from streamproof.reference.core.errors import BadInput, MissingTool
from streamproof.specs.checking import find_tools
from streamproof.specs.proofs import proving, solving
from streamproof.specs.proofs.entries import FILE, ProofEntry, find_proofs, proofs
from streamproof.specs.proofs.interpreter import Frame, Interpreter
from streamproof.specs.proofs.proving import prove
from streamproof.specs.proofs.reaching import steps_to
from streamproof.specs.proofs.solving import Solver
from streamproof.specs.pytla import Function
from streamproof.specs.pytla.syntax import parse_module

OTHERS = pytest.mark.weekly("ten seconds each: CI proves one of each module, and finds a counterexample of each")
IN_CI = {
    *("ForeignKeyJoin_left", "ForeignKeyJoin_inner", "ForeignKeyJoin_mutant_unsubscribe_not_sent"),
    *("ForeignKeyJoinAgain_mutant_delete_silent", "MicroBatch_mutant_newest_state"),
}
PROVED, NOT_PROVED = (
    [
        pytest.param(one, marks=[OTHERS] * (one.name not in IN_CI), id=one.name)
        for one in proofs()
        if one.result == result
    ]
    for result in ("proved", "not proved")
)


@pytest.mark.parametrize("entry", PROVED)
def test_it_is_proved(entry: ProofEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "QUICK_MS", tuple(10 * ms for ms in solving.QUICK_MS))  # however busy the machine is
    answers = prove(entry, find_tools(), 60_000)
    assert [each.claim for each in answers if each.answer != "proved"] == []
    assert len(answers) > 70


@pytest.mark.parametrize("entry", NOT_PROVED)
def test_it_is_not_proved_and_its_counterexample_is_a_step_that_breaks_the_invariant(entry: ProofEntry) -> None:
    last = prove(entry, find_tools())[-1]
    assert last.answer == "not proved"
    assert last.counterexample is not None
    before, after = (step.state for step in last.counterexample.steps)
    syntax = parse_module(entry.module, find_tools())
    # The same step, taken with known values alone: z3 has no part in it.
    numbers = {name: 10**6 for name in entry.numbers if name not in entry.small}
    interpreter = Interpreter(syntax, {**entry.constants, **entry.sets, **entry.small, **numbers})
    ways = interpreter.branches(syntax.named(entry.step).body, Frame(before))
    assert Function(after) in [Function(way.after) for way in ways if way.condition is True]
    assert interpreter.formula(entry.invariant, Frame(before)) is True
    assert interpreter.formula(entry.invariant, Frame(after)) is False


OF_THE_RACES = {
    "UpdateLeft keeps WithoutKeyIsRight",
    "DeleteLeft keeps WithoutKeyIsRight",
    "DeliverSubscription keeps NewestResponseIsRight",
}
OF_MOVES = {"UpdateLeft keeps SubscriptionsGoWhereTheyBelong"}
OF_3_9 = {"UpdateLeft keeps NewestSubscriptionIsRight", "UpdateLeft keeps NewestResponseIsRight"}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("ForeignKeyJoin_inner", OF_THE_RACES),
        pytest.param("ForeignKeyJoin_kafka_4_3_inner", OF_THE_RACES, marks=OTHERS),
        pytest.param("ForeignKeyJoin_kafka_3_9_inner", OF_THE_RACES | OF_3_9, marks=OTHERS),
        pytest.param("ForeignKeyJoin_kafka_3_9_left", OF_MOVES, marks=OTHERS),
    ],
)
def test_the_conditions_that_are_not_kept_are_those_that_the_page_names(name: str, broken: set[str]) -> None:
    (entry,) = find_proofs([name])
    checked = prove(replace(entry, result="proved"), find_tools(), 60_000)
    assert {each.claim for each in checked if each.answer != "proved"} == broken
    assert len(checked) == 80


def test_tlc_says_whether_it_reaches_the_first_state() -> None:
    (entry,) = find_proofs(["ForeignKeyJoin_mutant_delete_silent"])
    counterexample = prove(entry, find_tools())[-1].counterexample
    assert counterexample is not None
    first = counterexample.steps[0].state
    assert steps_to(entry, first, find_tools())  # there is a left row in it
    assert steps_to(replace(entry, reach=dict.fromkeys(entry.reach, 0)), first, find_tools()) is None


COUNTER = """---- MODULE Counter ----
EXTENDS Naturals, Sequences, FiniteSets
CONSTANT Limit
VARIABLE n
Init == n = 0
Up == n < Limit /\\ n' = n + 1
Next == Up
IsNumber == n \\in Nat
Bounded == n <= Limit \\/ Limit < 0
Inductive == IsNumber /\\ Bounded
FalseAtFirst == IsNumber /\\ n > 0
NotTyped == n > 0
Squares == {each * each : each \\in Nat}
Outside == IsNumber /\\ n \\in Squares
Small == n < 10
Steps == [][n' > n]_n
Always == <>(n > 0)
Unnamed == n \\in Nat /\\ Bounded /\\ n < 10 /\\ n < 1000
TwoWays == \\/ n' = n + 1 \\/ n' = n
TwoInOne == \\E m \\in {1} : \\/ n' = n + m \\/ n' = n
====
"""


@pytest.fixture
def counter(tmp_path: Path) -> ProofEntry:
    module = tmp_path / "Counter.tla"
    module.write_text(COUNTER, encoding="utf-8")
    return ProofEntry(
        "Counter", module, "It counts.", {}, ("Limit",), {}, {}, (), {}, "Inductive", (), "Init", "Next", "proved"
    )


def answers_of(entry: ProofEntry, **changed: object) -> dict[str, str]:
    return {each.claim: each.answer for each in prove(replace(entry, **changed), find_tools())}  # type: ignore[arg-type]


def test_a_counter_never_passes_its_limit_and_each_condition_has_a_line(counter: ProofEntry) -> None:
    assert answers_of(counter, properties=("Bounded", "Steps")) == {
        "IsNumber at first": "proved",
        "Bounded at first": "proved",
        "Up keeps IsNumber": "proved",
        "Up keeps Bounded": "proved",
        "the invariant implies Bounded": "proved",
        "Up keeps Steps": "proved",
    }


def test_no_conjunct_and_no_disjunct_is_left_out_because_it_has_no_name(counter: ProofEntry) -> None:
    answers = answers_of(counter, invariant="Unnamed")
    assert answers["Up keeps Unnamed (2)"] == "not proved"
    for step, action in (("TwoWays", "Next"), ("TwoInOne", "Next")):
        answers = answers_of(counter, step=step)
        assert (answers[f"{action} keeps Bounded"], answers[f"{action} (2) keeps Bounded"]) == ("not proved", "proved")


def test_an_invariant_that_is_false_at_first_is_not_proved(counter: ProofEntry) -> None:
    assert answers_of(counter, invariant="FalseAtFirst")["FalseAtFirst at first"] == "not proved"


def test_an_invariant_that_does_not_imply_the_property_is_not_proved(counter: ProofEntry) -> None:
    assert answers_of(counter, properties=("Small",))["the invariant implies Small"] == "not proved"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"invariant": "Outside"}, r"Counter\.tla: line 13, col \d+ .*: the elements of a set of any size"),
        ({"invariant": "NotTyped"}, r"doesn't define the values of n: add a conjunct `n \\in"),
        ({"invariant": "Nowhere"}, "it lacks 'Nowhere', which the proof Counter names"),
        ({"properties": ("Always",)}, "line 17, .*: the operator <> isn't supported"),
        ({"numbers": ()}, "the constant Limit has no value"),
    ],
)
def test_what_is_outside_of_the_subset_is_named_with_its_line(
    counter: ProofEntry, changed: dict[str, object], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        answers_of(counter, **changed)


def test_what_the_solver_does_not_know_is_not_proved(counter: ProofEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Solver, "_ask", lambda *asked: ("unknown", "timeout"))
    monkeypatch.setattr(proving, "LONGEST", ())
    last = prove(counter, find_tools())[-1]
    assert (last.answer, last.why) == ("unknown", "timeout")


def test_without_z3_the_remedy_is_named(counter: ProofEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(MissingTool, match=r"streamproof\[proofs\]"):
        prove(counter, find_tools())


def test_the_command_prints_each_condition_and_the_counterexample(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["streamproof", "spec", "prove", "ForeignKeyJoin_mutant_delete_silent"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert "not proved, as it should be: not “UpdateLeft keeps WithoutKeyIsRight”" in printed
    assert "a state that the invariant allows" in printed
    assert "TLC reaches the first state in" in printed


def test_a_counterexample_that_begins_in_an_initial_state_is_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Counter.tla").write_text(COUNTER.replace("n < Limit /", "n <= Limit /"), encoding="utf-8")
    shared = {"module": "Counter.tla", "init": "Init", "next": "Next", "invariant": "Inductive", "properties": []}
    known = {"sets": {}, "numbers": ["Limit"], "small": {}, "reach": {"Limit": "3"}, "counters": [], "constants": {}}
    entry = {"name": "Counter", "says": "It passes its limit.", "constants": {}, "result": "not proved"}
    catalogue = tmp_path / "proofs.json"
    catalogue.write_text(json.dumps({"modules": [{**shared, **known, "proofs": [entry]}]}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["streamproof", "spec", "prove", "--proofs", str(catalogue)])
    with pytest.raises(SystemExit):
        app.main()
    assert "TLC reaches the first state in 0 steps, with Limit = 3" in capsys.readouterr().out


def test_a_proof_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match="did you mean ForeignKeyJoin_left"):
        find_proofs(["ForeignKeyJoin_lefd"])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"numbers": "Limit"}, r"module 1, proof 1 \(\w+\): 'numbers' is \"Limit\", but must be a list"),
        ({"numbers": [1]}, r"'numbers' is \[1\], but must be a list of names"),
        ({"sets": []}, r"'sets' is \[\], but must be an object with named fields"),
        ({"sets": {"LeftKeys": "{}"}}, "'LeftKeys' is not a set with elements"),
        ({"constants": {"Join": 5}}, "constants: 'Join' is 5, but must be a text"),
        ({"constants": {"Join": "[a"}}, "a constant in 'constants' isn't a value of TLA"),
        ({"result": "maybe"}, "its result is 'maybe', but must be one of: proved, not proved"),
        ({"module": "Nowhere.tla"}, "the file .* is missing"),
        ({"name": 7}, "proof 1: 'name' is 7, but must be a text"),
    ],
)
def test_a_wrong_field_of_a_catalogue_is_named_with_its_entry(
    tmp_path: Path, changed: dict[str, object], says: str
) -> None:
    group = json.loads(FILE.read_text(encoding="utf-8"))["modules"][0]
    group["module"] = str(FILE.parent / group["module"])
    catalogue = tmp_path / "proofs.json"
    entry = {**group["proofs"][0], **changed}
    catalogue.write_text(json.dumps({"modules": [{**group, "proofs": [entry]}]}), encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        proofs(catalogue)


@pytest.mark.parametrize("text", ["[", "[]", '{"modules": 1}', '{"modules": [{}]}'])
def test_a_file_that_is_no_catalogue_is_named(tmp_path: Path, text: str) -> None:
    catalogue = tmp_path / "proofs.json"
    catalogue.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"proofs\.json"):
        proofs(catalogue)
