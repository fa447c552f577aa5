"""What a reader sees of a step of a behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from streamproof.specs.pytla import Function, ModelValue, Step, TlaValue, Trace, parse_state
from streamproof.specs.steps import called, changes, ending, read_module, readable_steps

MODULE = r"""---- MODULE Queues ----
EXTENDS Naturals, Shared

VARIABLES waiting, table, count

(* What ought to hold,
   at the end. *)
\* Nothing waits.
Quiet == waiting = [k |-> <<>>]

(* A row is changed. *)
Change(key, new) ==
    /\ table' = [table EXCEPT ![key] = new] \* as it is
    /\ Count(key)

Count(of) == count' = [count EXCEPT ![of] = @ + 1]
Delete(key) == Change(key, None)
Swap(one, other) == table' = [table EXCEPT ![one] = table[other], ![other] = table[one]]
Tick == count' = count
-----------------------------------------------------------------------------
Other == TRUE
====
"""


def differences(before: str, after: str) -> list[str]:
    return [change.text for change in changes(parse_state(before), parse_state(after))]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "Queues.tla").write_text(MODULE)
    (tmp_path / "Shared.tla").write_text("---- MODULE Shared ----\nSend(to) == sent' = [sent EXCEPT ![to] = 1]\n====\n")
    return tmp_path / "Queues.tla"


def name_of(module: Path, action: str, before: str, after: str) -> str:
    step = Step(2, action, parse_state(after), None)
    return called(step, changes(parse_state(before), step.state), read_module(module))


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ("x = 1", "x = 1", []),
        ("x = 1", "x = -2", ["x: 1 → -2"]),
        ("x = TRUE", "x = 1", ["x: TRUE → 1"]),
        ("x = <<TRUE>>", "x = <<1>>", ["x: <<TRUE>> → <<1>>"]),
        ("x = None", 'x = "None"', ['x: None → "None"']),
        ("x = <<>>", 'x = <<"a">>', ['x: + "a"']),
        ("x = <<1, 1>>", "x = <<1>>", ["x: - 1"]),
        ("x = <<1, 2>>", "x = <<2, 3>>", ["x: - 1", "x: + 3"]),
        ("x = <<1, 2, 3>>", "x = <<1, 3>>", ["x: - 2 (not the head)"]),
        ("x = <<1, 2, 1>>", "x = <<2, 1>>", ["x: - 1"]),
        ("x = <<1, 2, 1>>", "x = <<1, 2>>", ["x: - 1 (not the head)"]),
        ("x = <<1, 1, 1>>", "x = <<1>>", ["x: - 1", "x: - 1"]),
        ("x = <<1, 2>>", "x = <<3>>", ["x: <<1, 2>> → <<3>>"]),
        ("x = <<1, 2, 3>>", "x = <<2, 3, 1>>", ["x: - 1", "x: + 1"]),
        ("x = <<1, 2, 3>>", "x = <<1, 5, 3>>", ["x[2]: 2 → 5"]),
        ("x = <<1>>", "x = <<>>", ["x: - 1"]),
        ("x = {1, 2}", "x = {2, 3}", ["x: - 1", "x: + 3"]),
        ("x = [l |-> None]", "x = [l |-> [v |-> 1, k |-> 2]]", ['x["l"]: None → [v |-> 1, k |-> 2]']),
        (
            "x = [l |-> [v |-> 1, k |-> 2]]",
            "x = [l |-> [v |-> 3, k |-> 2]]",
            ['x["l"]: [v |-> 1, k |-> 2] → [v |-> 3, k |-> 2]'],
        ),
        ("x = [a |-> [b |-> <<>>], c |-> 1]", "x = [a |-> [b |-> <<7>>], c |-> 1]", ['x["a"]["b"]: + 7']),
        ("x = (r1 :> 1 @@ r2 :> 2)", "x = (r1 :> 1 @@ r2 :> 3)", ["x[r2]: 2 → 3"]),
        ("x = (1 :> 5 @@ 3 :> 6)", "x = (1 :> 5 @@ 4 :> 7)", ["x[3]: - 6", "x[4]: + 7"]),
        ("x = [a |-> 1]", "x = [b |-> 1]", ["x: [a |-> 1] → [b |-> 1]"]),
    ],
)
def test_only_what_changed_is_shown_and_of_a_queue_the_least(before: str, after: str, difference: list[str]) -> None:
    assert differences(before, after) == difference


def test_variables_are_shown_in_the_order_of_the_state() -> None:
    assert differences("/\\ b = 1\n/\\ a = 1\n/\\ c = 1", "/\\ b = 2\n/\\ a = 2\n/\\ c = 1") == ["b: 1 → 2", "a: 1 → 2"]


def test_an_action_is_called_with_the_keys_that_changed(module: Path) -> None:
    before, after = "/\\ table = [k |-> 1, l |-> 1]", "/\\ table = [k |-> 1, l |-> 2]"
    assert name_of(module, "Change", before, after) == 'Change("l", 2)'


def test_the_keys_are_found_in_the_definitions_that_an_action_calls(module: Path) -> None:
    before = "/\\ table = [k |-> 1]\n/\\ count = [k |-> 1]"
    assert name_of(module, "Delete", before, "/\\ table = [k |-> None]\n/\\ count = [k |-> 2]") == 'Delete("k")'
    assert name_of(module, "Delete", before, "/\\ table = [k |-> 1]\n/\\ count = [k |-> 2]") == 'Delete("k")'


def test_a_parameter_that_nothing_shows_is_left_open(module: Path) -> None:
    before, after = "table = [k |-> 1, l |-> 2]", "table = [k |-> 2, l |-> 1]"
    assert name_of(module, "Swap", before, after) == "Swap"
    assert name_of(module, "Change", "count = [k |-> 1]", "count = [k |-> 2]") == 'Change("k", _)'


@pytest.mark.parametrize("action", ["Tick", "Next", "Unheard"])
def test_an_action_without_known_parameters_is_called_by_its_name(module: Path, action: str) -> None:
    assert name_of(module, action, "count = 1", "count = 2") == action


def test_a_module_that_is_extended_has_its_definitions_too(module: Path) -> None:
    assert name_of(module, "Send", "sent = [a |-> 0, b |-> 0]", "sent = [a |-> 0, b |-> 1]") == 'Send("b")'


def test_a_definition_has_the_comment_before_it_and_its_line(module: Path) -> None:
    definitions = read_module(module).definitions
    assert definitions["Quiet"].comment == "What ought to hold, at the end. Nothing waits."
    assert definitions["Quiet"].line == MODULE[: MODULE.index("Quiet ==")].count("\n") + 1
    assert definitions["Tick"].comment == ""
    assert "as it is" not in definitions["Change"].body
    assert "---" not in definitions["Tick"].body


def test_variables_are_shown_as_they_are_declared(module: Path) -> None:
    text = read_module(module)
    assert text.variables == ("waiting", "table", "count")
    states = [parse_state(f"/\\ count = {at}\n/\\ table = {at}\n/\\ waiting = {at}") for at in (1, 2)]
    trace = Trace(tuple(Step(at, "Tick", state, None) for at, state in enumerate(states, 1)))
    assert [change.variable for change in readable_steps(trace, text)[0].changes] == ["waiting", "table", "count"]


def test_a_module_that_is_not_there_has_no_definitions(tmp_path: Path) -> None:
    assert read_module(tmp_path / "Nowhere.tla").definitions == {}


def test_steps_are_shown_from_the_second_state_on(module: Path) -> None:
    states: list[Mapping[str, TlaValue]] = [{"table": Function({"k": number})} for number in (0, 1, 1)]
    trace = Trace(tuple(Step(at, "Change", state, None) for at, state in enumerate(states, 1)))
    steps = readable_steps(trace, read_module(module))
    assert [(step.number, step.action, len(step.changes)) for step in steps] == [
        (2, 'Change("k", 1)', 1),
        (3, "Change", 0),
    ]


def test_an_endless_counterexample_says_how_it_goes_on() -> None:
    steps = (Step(1, "Initial", {"x": ModelValue("None")}, None), Step(2, "Next", {"x": 1}, None))
    assert ending(Trace(steps)) == ""
    assert ending(Trace(steps, stutters=True)) == "then nothing more happens, for ever (stuttering)"
    assert ending(Trace(steps, loop=1)) == "then back to step 1, and so on for ever"
