"""Behaviours of `TableTableJoin.tla`, replayed on the reference action by action."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import pytest
import tla_models
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.pytla import Step, Trace, Value
from streamproof.specs.replay import Disagreement, Replayed, history_of, replay
from streamproof.specs.replays.table_table_join_mutants import MUTANTS

MODULE = "TableTableJoin"
CONSTANTS: Mapping[str, Value] = {"Join": "left", "Tombstones": "again", "Mutant": "none"}


def tables(left: int | None = None, right: int | None = None) -> str:
    return f"[left |-> [k |-> {left}], right |-> [k |-> {right}]]"


def queues(left: str = "", right: str = "") -> str:
    return f"[left |-> <<{left}>>, right |-> <<{right}>>]"


def change(value: int | None) -> str:
    return f'[key |-> "k", value |-> {value}]'


def row(left: int | None, right: int | None) -> str:
    return f"[left |-> {left}, right |-> {right}]"


def emits(shown: str) -> dict[str, str]:
    return {"emitted": f'<<[key |-> "k", row |-> {shown}]>>', "result": f"[k |-> {shown}]"}


INITIAL = {"log": queues(), "queue": queues(), "tables": tables(), "result": "[k |-> None]", "emitted": "<<>>"}
# Both tables change; the right change overtakes; then the left row is deleted.
STEPS = [
    ("Make", {"log": queues(change(1)), "queue": queues(change(1))}),
    ("Make", {"log": queues(change(1), change(1)), "queue": queues(change(1), change(1))}),
    ("Take", {"queue": queues(change(1)), "tables": tables(None, 1)}),
    ("Take", {"queue": queues(), "tables": tables(1, 1), **emits(row(1, 1))}),
    (
        "Make",
        {
            "log": queues(f"{change(1)}, {change(None)}", change(1)),
            "queue": queues(change(None)),
            "emitted": "<<>>",
        },
    ),
    ("Take", {"queue": queues(), "tables": tables(None, 1), **emits("None")}),
]
trace_of = partial(tla_models.trace_of, initial=INITIAL)


def first_disagreement(trace: Trace, **constants: Value) -> Disagreement:
    replayed = replay([trace], {**CONSTANTS, **constants}, MODULE)
    assert replayed.behaviours == 1
    (found,) = replayed.disagreements
    return found


def test_a_behaviour_that_the_reference_shares_is_replayed_without_a_disagreement() -> None:
    assert replay([trace_of(*STEPS)], CONSTANTS, MODULE) == Replayed(1, len(STEPS), ())


def test_a_behaviour_becomes_a_history_of_the_changes_as_they_are_taken() -> None:
    text = history_of(trace_of(*STEPS), CONSTANTS, MODULE).to_text()
    assert text.splitlines() == [
        '{"operator": "table_table_join", "options": {"join": "left"}}',
        '{"heartbeat": 0}',
        '{"heartbeat": 0}',
        '{"input": "right", "key": "k", "value": 1, "timestamp": 1}',
        '{"input": "left", "key": "k", "value": 1, "timestamp": 2}',
        '{"heartbeat": 0}',
        '{"input": "left", "key": "k", "value": null, "timestamp": 3}',
    ]
    assert play(parse_history(text)).result == {}


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("left row k", {"tables": tables(2, 1)}),
        ("right row k", {"tables": tables(1, None)}),
        ("result k", {"result": f"[k |-> {row(1, None)}]"}),
        ("emitted", {"emitted": "<<>>"}),
        ("emitted", {"emitted": f'<<[key |-> "k", row |-> {row(1, None)}]>>'}),
    ],
)
def test_whatever_the_model_has_otherwise_is_found(what: str, changed: dict[str, str]) -> None:
    action, right = STEPS[3]
    found = first_disagreement(trace_of(*STEPS[:3], (action, {**right, **changed})))
    assert (found.step, found.what) == (5, what)


def test_a_tombstone_that_is_emitted_again_is_a_disagreement_where_it_is_emitted_once() -> None:
    makes = {"log": queues(change(None), change(1)), "queue": queues(change(None), change(1))}
    again = [("Make", makes), STEPS[2], ("Take", {"queue": queues(), **emits("None")})]
    again[1] = ("Take", {**STEPS[2][1], "queue": queues(change(None))})
    assert replay([trace_of(*again)], CONSTANTS, MODULE).disagreements == ()
    assert first_disagreement(trace_of(*again), Tombstones="once").what == "emitted"


@pytest.mark.parametrize(
    ("action", "changed", "why"),
    [
        ("Take", {"tables": tables(1)}, "no action of the module makes this step"),
        ("Arrive", {"tables": tables(1)}, "the module has no such action"),
        ("Take", {"tables": "{}"}, "a value is none of the module's"),
        ("Take", {"result": "[k |-> 1]"}, "a value is none of the module's"),
    ],
)
def test_a_step_that_no_action_makes_is_refused_by_its_number(action: str, changed: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=rf"^step 2 \({action}\): {why}.*: replay the behaviours of {MODULE}"):
        replay([trace_of((action, changed))], CONSTANTS, MODULE)


def test_the_behaviour_of_another_module_is_refused() -> None:
    other = Trace((Step(1, "Initial", {"left": 1}),))
    with pytest.raises(BadInput, match=r"^step 1 \(Initial\): it has no variable emitted"):
        replay([other], CONSTANTS, MODULE)


def test_constants_that_are_missing_or_unknown_are_refused() -> None:
    with pytest.raises(BadInput, match=rf"^the constant Join of {MODULE} is missing: give all constants"):
        replay([], {name: value for name, value in CONSTANTS.items() if name != "Join"}, MODULE)
    with pytest.raises(BadInput, match=rf"^no mutant of {MODULE} is 'typo': use one of none, left tombstone ignored"):
        replay([], {**CONSTANTS, "Mutant": "typo"}, MODULE)
    with pytest.raises(BadInput, match=rf"^Tombstones of {MODULE} is 'never': use again or once"):
        replay([], {**CONSTANTS, "Tombstones": "never"}, MODULE)


def test_every_mutant_of_the_module_is_a_bug_of_the_reference_and_has_a_model() -> None:
    named = re.search(r"Mutants == \{(.*?)\n\n", (tla_models.FOLDER / MODULE / f"{MODULE}.tla").read_text(), re.DOTALL)
    assert named is not None
    assert re.findall(r'^    "(.*?)"', named[1], re.MULTILINE) == [*MUTANTS]
    for mutant in set(MUTANTS) - {"none"}:
        assert (tla_models.FOLDER / MODULE / f"{MODULE}_mutant_{mutant.replace(' ', '_')}.cfg").exists()
