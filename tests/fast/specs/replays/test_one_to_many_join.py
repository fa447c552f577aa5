"""Behaviours of `OneToManyJoin.tla`, whose changes are replayed on the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replayed_modules import ONE_TO_MANY
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.replay import ReplayResult

ROW = '[version |-> 1, foreign_key |-> "r"]'
MESSAGE = f'[key |-> "l", row |-> {ROW}, age |-> 0]'
STEPS = [
    ("DeleteRight", {"right_changes": "1"}),
    ("UpdateLeft", {"left": f"[l |-> {ROW}]", "left_changes": "1", "rows": f'(None :> <<>> @@ "r" :> <<{MESSAGE}>>)'}),
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


def test_a_behaviour_that_the_reference_shares_is_replayed_and_becomes_a_history_of_its_changes() -> None:
    assert ONE_TO_MANY.replayed(*STEPS) == ReplayResult(1, 4, ())
    text = ONE_TO_MANY.history(*STEPS).to_text()
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
    assert ONE_TO_MANY.replayed(*STEPS[:2]).disagreements == ()
    found = ONE_TO_MANY.disagreement(*STEPS, Join="inner")
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
    found = replace(ONE_TO_MANY, changed={variable: text}).disagreement()
    assert (found.step, found.what, found.ours) == (1, what, None)
