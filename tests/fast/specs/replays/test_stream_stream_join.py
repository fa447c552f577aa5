"""Behaviours of `StreamStreamJoin.tla`, replayed on the reference action by action."""

from __future__ import annotations

import pytest
from replayed_modules import STREAMS
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Dropped
from streamproof.specs.pytla import TlaValue
from streamproof.specs.replay import ReplayResult


def sequence(*members: str) -> str:
    return f"<<{', '.join(members)}>>"


def came(what: str, timestamp: int, now: int) -> str:
    key = "1" if what in ("left", "right") else "None"
    return f'[input |-> "{what}", key |-> {key}, timestamp |-> {timestamp}, now |-> {now}]'


def row(number: int, timestamp: int, matched: bool = False) -> str:
    return f"[number |-> {number}, key |-> 1, timestamp |-> {timestamp}, matched |-> {str(matched).upper()}]"


def buffer(left: str = "<<>>", right: str = "<<>>") -> str:
    return f"[left |-> {left}, right |-> {right}]"


def emitted(left: int | None, right: int | None) -> str:
    return f"[left |-> {left}, right |-> {right}]"


# A pair; a clock advance, by which both rows are out of reach; a record alone, which closes; a late one.
COME = [came("left", 0, 0), came("right", 1, 1), came("heartbeat", 3, 3), came("right", 3, 3), came("left", 0, 3)]
STEPS = [
    ("Arrive", {"arrived": sequence(*COME[:1]), "buffer": buffer(sequence(row(1, 0)))}),
    (
        "Arrive",
        {
            "arrived": sequence(*COME[:2]),
            "clock": "1",
            "buffer": buffer(sequence(row(1, 0, True)), sequence(row(2, 1, True))),
            "emitted": sequence(emitted(1, 2)),
        },
    ),
    ("Heartbeat", {"arrived": sequence(*COME[:3]), "clock": "3", "buffer": buffer()}),
    ("Arrive", {"arrived": sequence(*COME[:4]), "buffer": buffer(right=sequence(row(4, 3)))}),
    ("Arrive", {"arrived": sequence(*COME)}),
    (
        "Heartbeat",
        {
            "arrived": sequence(*COME, came("heartbeat", 5, 5)),
            "clock": "5",
            "buffer": buffer(),
            "emitted": sequence(emitted(1, 2), emitted(None, 4)),
        },
    ),
]


def test_a_behaviour_that_the_reference_shares_is_replayed_and_becomes_a_history_of_its_actions() -> None:
    assert STREAMS.replayed(*STEPS) == ReplayResult(1, len(STEPS), ())
    text = STREAMS.history(*STEPS).to_text()
    assert text.splitlines() == [
        '{"operator": "stream_stream_join", "options": {"before_ms": 0, "after_ms": 1, "grace_ms": 1, '
        '"join": "outer", "emit": "close"}}',
        '{"input": "left", "key": "1", "value": 1, "timestamp": 0}',
        '{"input": "right", "key": "1", "value": 2, "timestamp": 1}',
        '{"heartbeat": 3}',
        '{"input": "right", "key": "1", "value": 4, "timestamp": 3}',
        '{"input": "left", "key": "1", "value": 5, "timestamp": 0}',
        '{"heartbeat": 5}',
    ]
    assert [entry.output for entry in play(parse_history(text)).entries] == [
        Change("1", None, [1, 2], 1),
        Dropped("1", "late"),
        Change("1", None, [None, 4], 3),
    ]


def test_a_cut_is_a_line_of_a_history_on_the_batch_clock() -> None:
    steps = [
        ("Arrive", {"arrived": sequence(came("left", 2, 0)), "buffer": buffer(sequence(row(1, 2)))}),
        ("Cut", {"arrived": sequence(came("left", 2, 0), came("cut", 0, 2)), "clock": "2"}),
    ]
    constants: dict[str, TlaValue] = {"Clock": "batch"}
    assert STREAMS.replayed(*steps, **constants) == ReplayResult(1, 2, ())
    header, _, cut = STREAMS.history(*steps, **constants).to_text().splitlines()
    assert header.endswith('"clock": "batch"}')
    assert cut == '{"cut": true}'


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("clock", {"clock": "2"}),
        ("emitted", {"emitted": sequence(emitted(1, None))}),
        ("emitted", {"emitted": sequence(emitted(1, 2), emitted(1, 2))}),
        ("on the left 1", {"buffer": buffer(right=sequence(row(2, 1, True)))}),
        ("on the left 1", {"buffer": buffer(sequence(row(1, 0)), sequence(row(2, 1, True)))}),
        ("on the right 2", {"buffer": buffer(sequence(row(1, 0, True)))}),
    ],
)
def test_whatever_the_model_has_otherwise_is_found(what: str, changed: dict[str, str]) -> None:
    action, right = STEPS[1]
    found = STREAMS.disagreement(STEPS[0], (action, {**right, **changed}))
    assert (found.step, found.what) == (3, what)


def test_what_is_emitted_is_compared_in_its_order() -> None:
    come = [came("left", 2, 2), came("right", 1, 2), came("heartbeat", 9, 9)]
    lines = [
        ("Arrive", {"arrived": sequence(*come[:1]), "clock": "2", "buffer": buffer(sequence(row(1, 2)))}),
        ("Arrive", {"arrived": sequence(*come[:2]), "buffer": buffer(sequence(row(1, 2)), sequence(row(2, 1)))}),
    ]
    closed = {"arrived": sequence(*come), "clock": "9", "buffer": buffer()}
    in_order = {**closed, "emitted": sequence(emitted(None, 2), emitted(1, None))}
    assert STREAMS.replayed(*lines, ("Heartbeat", in_order)).disagreements == ()
    swapped = {**closed, "emitted": sequence(emitted(1, None), emitted(None, 2))}
    assert STREAMS.disagreement(*lines, ("Heartbeat", swapped)).what == "emitted"
