"""Behaviours of `SessionWindows.tla`, replayed on the reference action by action."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
import tla_models
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.specs.pytla import Step, Trace, Value
from streamproof.specs.replay import Disagreement, Replayed, history_of, replay

MODULE = "SessionWindows"
CONSTANTS: Mapping[str, Value] = {
    "Gap": 1,
    "Grace": 1,
    "Retention": 2,
    "Clock": "stream_time",
    "Emit": "update",
    "Late": "merged",
    "Closed": "final",
    "Mutant": "none",
}
INITIAL = {
    "store": "[a |-> {}]",
    "emitted": "[a |-> {}]",
    "clock": "0",
    "largest": "0",
    "emissions": "0",
    "accepted": "{}",
    "dropped": "{}",
}
trace_of = partial(tla_models.trace_of, initial=INITIAL)


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


def first_disagreement(trace: Trace, **constants: Value) -> Disagreement:
    replayed = replay([trace], {**CONSTANTS, **constants}, MODULE)
    assert replayed.behaviours == 1
    (found,) = replayed.disagreements
    return found


def test_a_behaviour_that_the_reference_shares_is_replayed_without_a_disagreement() -> None:
    assert replay([trace_of(*STEPS)] * 2, CONSTANTS, MODULE)[::2] == (2, ())


def test_a_behaviour_becomes_a_history_whose_lines_are_its_actions() -> None:
    text = history_of(trace_of(*STEPS), CONSTANTS, MODULE).to_text()
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
        (
            "Arrive",
            {"store": sessions(session(3, 3, 1)), "largest": "3", "accepted": sets(record(3, 0))},
        ),
        ("Cut", {"clock": "3"}),
    ]
    constants = {**CONSTANTS, "Clock": "batch", "Emit": "close"}
    assert replay([trace_of(*steps)], constants, MODULE) == Replayed(1, 2, ())
    header, _, cut = history_of(trace_of(*steps), constants, MODULE).to_text().splitlines()
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
    found = first_disagreement(trace_of(initial={**INITIAL, **changed}))
    assert (found.step, found.what, found.ours) == (1, what, 0 if what in INITIAL else None)
    assert found.model


def test_another_count_is_a_disagreement() -> None:
    action, changed = STEPS[0]
    for variable, what in [("store", "stored"), ("emitted", "emitted")]:
        found = first_disagreement(trace_of((action, {**changed, variable: sessions(session(0, 0, 2))})))
        assert str(found) == (f"behaviour 1, step 2 (Arrive): {what} session a [0, 0]: the replay has 1, the model 2")


def test_what_a_store_may_forget_is_not_compared() -> None:
    kept = [*STEPS[:2], *STEPS[3:5]]
    assert replay([trace_of(*kept)], CONSTANTS, MODULE).disagreements == ()
    assert first_disagreement(trace_of(*STEPS), Retention=3).what == "stored session a [0, 0]"


@pytest.mark.parametrize(
    ("action", "changed", "why"),
    [
        ("Arrive", {"accepted": sets(record(0, 0), record(1, 0))}, "several records come at once"),
        ("Arrive", {"emitted": sessions(session(0, 0, 1))}, "no action of the module makes this step"),
        ("UpdateLeft", {"clock": "1"}, "the module has no such action"),
        ("Arrive", {"clock": "None"}, "the clock is None, which is no number"),
        ("Arrive", {"store": "{}"}, "a value is none of the module's"),
        ("Arrive", {"emitted": '[a |-> {"b"}]'}, "a value is none of the module's"),
    ],
)
def test_a_step_that_no_action_makes_is_refused_by_its_number(action: str, changed: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=rf"^step 2 \({action}\): {why}.*: replay the behaviours of SessionWindows"):
        replay([trace_of((action, changed))], CONSTANTS, MODULE)


def test_the_behaviour_of_another_module_is_refused() -> None:
    other = Trace((Step(1, "Initial", {"left": 1}),))
    with pytest.raises(BadInput, match=r"^step 1 \(Initial\): it has no variable accepted"):
        replay([other], CONSTANTS, MODULE)


def test_constants_that_are_missing_or_unknown_are_refused() -> None:
    with pytest.raises(BadInput, match=r"^the constant Gap of SessionWindows is missing: give all constants"):
        replay([], {name: value for name, value in CONSTANTS.items() if name != "Gap"}, MODULE)
    with pytest.raises(BadInput, match=r"^no mutant of SessionWindows is 'typo': use one of none, gap exclusive"):
        replay([], {**CONSTANTS, "Mutant": "typo"}, MODULE)
    with pytest.raises(BadInput, match="unknown clock 'sundial'"):
        replay([trace_of()], {**CONSTANTS, "Clock": "sundial"}, MODULE)
