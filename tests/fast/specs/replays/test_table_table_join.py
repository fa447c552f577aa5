"""Behaviours of `TableTableJoin.tla`, replayed on the reference action by action."""

from __future__ import annotations

import pytest
from replayed_modules import TABLES
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.replay import ReplayResult


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


# Both tables change; the right change overtakes; then the left row is deleted.
STEPS = [
    ("Make", {"log": queues(change(1)), "queue": queues(change(1))}),
    ("Make", {"log": queues(change(1), change(1)), "queue": queues(change(1), change(1))}),
    ("Take", {"queue": queues(change(1)), "tables": tables(None, 1)}),
    ("Take", {"queue": queues(), "tables": tables(1, 1), **emits(row(1, 1))}),
    (
        "Make",
        {"log": queues(f"{change(1)}, {change(None)}", change(1)), "queue": queues(change(None)), "emitted": "<<>>"},
    ),
    ("Take", {"queue": queues(), "tables": tables(None, 1), **emits("None")}),
]


def test_a_behaviour_that_the_reference_shares_is_replayed_and_becomes_a_history_as_changes_are_taken() -> None:
    assert TABLES.replayed(*STEPS) == ReplayResult(1, len(STEPS), ())
    text = TABLES.history(*STEPS).to_text()
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
    found = TABLES.disagreement(*STEPS[:3], (action, {**right, **changed}))
    assert (found.step, found.what) == (5, what)


def test_a_tombstone_that_is_emitted_again_is_a_disagreement_where_it_is_emitted_once() -> None:
    makes = {"log": queues(change(None), change(1)), "queue": queues(change(None), change(1))}
    again = [("Make", makes), STEPS[2], ("Take", {"queue": queues(), **emits("None")})]
    again[1] = ("Take", {**STEPS[2][1], "queue": queues(change(None))})
    assert TABLES.replayed(*again).disagreements == ()
    assert TABLES.disagreement(*again, Tombstones="once").what == "emitted"
