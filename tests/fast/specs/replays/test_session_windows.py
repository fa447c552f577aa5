"""Behaviours of `SessionWindows.tla`, replayed on the reference action by action."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replayed_modules import SESSIONS
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.pytla import TlaValue
from streamproof.specs.replay import ReplayResult


def session(start: int, end: int, count: int) -> str:
    return f"[start |-> {start}, end |-> {end}, count |-> {count}]"


def record(timestamp: int, clock: int, number: int = 1) -> str:
    return f'[key |-> "a", timestamp |-> {timestamp}, clock |-> {clock}, number |-> {number}]'


def sets(*members: str) -> str:
    return f"{{{', '.join(members)}}}"


def sessions(*members: str) -> str:
    return f"[a |-> {sets(*members)}]"


def arrives(store: str, clock: int, accepted: str, **more: str) -> tuple[str, dict[str, str]]:
    changed = {"store": store, "emitted": store, "clock": str(clock), "largest": str(clock), "accepted": accepted}
    return "Arrive", {**changed, **more}


# A session is closed and forgotten; then a record is too late for it, and one is not.
STEPS = [
    arrives(sessions(session(0, 0, 1)), 0, sets(record(0, 0))),
    arrives(sessions(session(0, 0, 1), session(3, 3, 1)), 3, sets(record(0, 0), record(3, 3))),
    ("Forget", {"store": sessions(session(3, 3, 1))}),
    ("Arrive", {"dropped": sets(record(0, 3))}),
    ("ArriveWithoutKey", {}),
    arrives(
        sessions(session(2, 3, 2)),
        3,
        sets(record(0, 0), record(3, 3), record(2, 3)),
        emitted=sessions(session(0, 0, 1), session(2, 3, 2)),
    ),
]


def test_a_behaviour_that_the_reference_shares_is_replayed_and_becomes_a_history_of_its_actions() -> None:
    assert SESSIONS.replayed(*STEPS) == ReplayResult(1, len(STEPS), ())
    text = SESSIONS.history(*STEPS).to_text()
    assert text.splitlines() == [
        '{"operator": "session_windows", "options": {"gap_ms": 1, "grace_ms": 1, "retention_ms": 2, '
        '"emit": "update", "late": "merged"}}',
        '{"input": "events", "key": "a", "value": 1, "timestamp": 0}',
        '{"input": "events", "key": "a", "value": 1, "timestamp": 3}',
        '{"heartbeat": 3}',
        '{"input": "events", "key": "a", "value": 1, "timestamp": 0}',
        '{"input": "events", "key": null, "value": 1, "timestamp": 0}',
        '{"input": "events", "key": "a", "value": 1, "timestamp": 2}',
    ]
    assert play(parse_history(text)).result == {("a", (0, 0)): (1, 0), ("a", (2, 3)): (2, 3)}


def test_a_cut_is_a_line_of_a_history_on_the_batch_clock() -> None:
    steps = [
        ("Arrive", {"store": sessions(session(3, 3, 1)), "largest": "3", "accepted": sets(record(3, 0))}),
        ("Cut", {"clock": "3"}),
    ]
    constants: dict[str, TlaValue] = {"Clock": "batch", "Emit": "close"}
    assert SESSIONS.replayed(*steps, **constants) == ReplayResult(1, 2, ())
    header, _, cut = SESSIONS.history(*steps, **constants).to_text().splitlines()
    assert header.endswith('"clock": "batch"}')
    assert cut == '{"cut": true}'


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("clock", {"clock": "1"}),
        ("accepted a@0 at 0", {"accepted": sets(record(0, 0))}),
        ("dropped a@0 at 0", {"dropped": sets(record(0, 0))}),
        ("stored session a [0, 1]", {"store": sessions(session(0, 1, 2))}),
        ("emitted session a [0, 0]", {"emitted": sessions(session(0, 0, 1))}),
        ("emissions", {"emissions": "1"}),
    ],
)
def test_what_the_model_has_and_the_reference_not_is_found_wherever_it_is(what: str, changed: dict[str, str]) -> None:
    found = replace(SESSIONS, changed={**changed}).disagreement()
    assert (found.step, found.what, found.ours) == (1, what, 0 if what in SESSIONS.initial else None)
    assert found.model


def test_another_count_is_a_disagreement() -> None:
    action, changed = STEPS[0]
    for variable, what in [("store", "stored"), ("emitted", "emitted")]:
        found = SESSIONS.disagreement((action, {**changed, variable: sessions(session(0, 0, 2))}))
        assert str(found) == (f"behaviour 1, step 2 (Arrive): {what} session a [0, 0]: the replay has 1, the model 2")


def test_what_a_store_may_forget_is_not_compared() -> None:
    kept = [*STEPS[:2], *STEPS[3:5]]
    assert SESSIONS.replayed(*kept).disagreements == ()
    assert SESSIONS.disagreement(*STEPS, Retention=3).what == "stored session a [0, 0]"
