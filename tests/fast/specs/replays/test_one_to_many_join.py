"""Behaviours of `OneToManyJoin.tla`, whose changes are replayed on the reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
import tla_models
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.pytla import ModelValue, Step, Trace, Value
from streamproof.specs.replay import Disagreement, Replayed, history_of, replay

MODULE = "OneToManyJoin"
CONSTANTS: Mapping[str, Value] = {
    "Join": "left",
    "Protocol": "kip",
    "NullForeignKey": "ignore",
    "Mutant": "none",
    "None": ModelValue("None"),
}
NOTHING = '(None :> [l |-> None] @@ "r" :> [l |-> None])'
INITIAL = {
    "left": "[l |-> None]",
    "right": "[r |-> None]",
    "rows": '(None :> <<>> @@ "r" :> <<>>)',
    "kept": NOTHING,
    "result": NOTHING,
    "results": '(None :> [l |-> <<>>] @@ "r" :> [l |-> <<>>])',
    "collected": '[l |-> (None :> None @@ "r" :> None)]',
    "newest": "[l |-> 0]",
    "left_changes": "0",
    "right_changes": "0",
}
ROW = '[version |-> 1, foreign_key |-> "r"]'
MESSAGE = f'[key |-> "l", row |-> {ROW}, age |-> 0]'
trace_of = partial(tla_models.trace_of, initial=INITIAL)
STEPS = [
    ("DeleteRight", {"right_changes": "1"}),
    (
        "UpdateLeft",
        {"left": f"[l |-> {ROW}]", "left_changes": "1", "rows": f'(None :> <<>> @@ "r" :> <<{MESSAGE}>>)'},
    ),
    (
        "DeliverRow",
        {
            "rows": '(None :> <<>> @@ "r" :> <<>>)',
            "kept": f'(None :> [l |-> None] @@ "r" :> [l |-> {MESSAGE}])',
            "result": f'(None :> [l |-> None] @@ "r" :> [l |-> [left |-> {ROW}, right |-> None]])',
            "results": '(None :> [l |-> <<>>] @@ "r" :> [l |-> <<1>>])',
        },
    ),
    ("DeliverResult", {"results": '(None :> [l |-> <<>>] @@ "r" :> [l |-> <<>>])'}),
]


def first_disagreement(trace: Trace, **constants: Value) -> Disagreement:
    (found,) = replay([trace], {**CONSTANTS, **constants}, MODULE).disagreements
    return found


def test_a_behaviour_that_the_reference_shares_is_replayed_without_a_disagreement() -> None:
    assert replay([trace_of(*STEPS)], CONSTANTS, MODULE) == Replayed(1, 4, ())


def test_a_behaviour_becomes_a_history_of_its_changes() -> None:
    text = history_of(trace_of(*STEPS), CONSTANTS, MODULE).to_text()
    assert text.splitlines() == [
        '{"operator": "one_to_many_join", "options": {"foreign_key": "foreign_key", "join": "left", '
        '"protocol": "kip", "null_foreign_key": "ignore"}}',
        '{"input": "right", "key": "r", "value": null, "timestamp": 1}',
        '{"input": "left", "key": "l", "value": {"version": 1, "foreign_key": "r"}, "timestamp": 2}',
        '{"heartbeat": 0}',
        '{"heartbeat": 0}',
    ]
    assert list(play(parse_history(text)).result) == [('["r", "l"]', None)]


def test_the_result_is_compared_only_where_no_row_waits() -> None:
    assert replay([trace_of(*STEPS[:2])], CONSTANTS, MODULE).disagreements == ()
    found = first_disagreement(trace_of(*STEPS), Join="inner")
    assert (found.step, found.what, found.ours) == (4, 'result ["r", "l"]', None)


@pytest.mark.parametrize(
    ("what", "variable", "text"),
    [
        ("left table l", "left", f"[l |-> {ROW}]"),
        ("right table r", "right", '[r |-> [version |-> 1, key |-> "r"]]'),
        ('kept ["r", "l"]', "kept", STEPS[2][1]["kept"]),
        ('result ["r", "l"]', "result", STEPS[2][1]["result"]),
    ],
)
def test_what_the_model_has_and_the_reference_not_is_found_wherever_it_is(what: str, variable: str, text: str) -> None:
    found = first_disagreement(trace_of(initial={**INITIAL, variable: text}))
    assert (found.step, found.what, found.ours) == (1, what, None)


@pytest.mark.parametrize(
    ("action", "changed", "why"),
    [
        ("UpdateLeft", {"left_changes": "1", "right_changes": "1"}, "both tables change at once"),
        ("DeliverRow", {"left": f"[l |-> {ROW}]"}, "no action of the module makes this step"),
        ("Arrive", {"left_changes": "1"}, "the module has no such action"),
        ("DeliverRow", {"rows": "1"}, "a value is none of the module's"),
    ],
)
def test_a_step_that_no_action_makes_is_refused_by_its_number(action: str, changed: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=rf"^step 2 \({action}\): {why}.*: replay the behaviours of OneToManyJoin"):
        replay([trace_of((action, changed))], CONSTANTS, MODULE)


def test_the_behaviour_of_another_module_a_mutant_and_missing_constants_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^step 1 \(Initial\): it has no variable collected"):
        replay([Trace((Step(1, "Initial", {"sessions": 1}),))], CONSTANTS, MODULE)
    with pytest.raises(BadInput, match=r"^the reference can't be the mutant 'old key kept', for it has no messages"):
        replay([], {**CONSTANTS, "Mutant": "old key kept"}, MODULE)
    with pytest.raises(BadInput, match=r"^the constant Join of OneToManyJoin is missing: give all constants"):
        replay([], {name: value for name, value in CONSTANTS.items() if name != "Join"}, MODULE)
