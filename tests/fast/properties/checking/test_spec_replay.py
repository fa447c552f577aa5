"""Behaviours of TLA+ specifications, replayed on the reference action by action."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from foreign_key_models import MODULE
from replayed_modules import FOREIGN_KEYS
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Key, Record
from streamproof.reference.foreign_key_protocol import Protocol
from streamproof.specs.pytla import TlaValue, Trace
from streamproof.specs.replay import ReplayResult, history_of, replay
from streamproof.specs.replays import foreign_key_mutants
from streamproof.specs.replays.common import steps_of
from streamproof.specs.replays.foreign_key_join import ForeignKeyJoinReplay, contrast

L1, L2 = (f'[version |-> {number}, foreign_key |-> "r1"]' for number in (1, 2))
X = '[version |-> 1, key |-> "r1"]'
SILENT = '"PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"'
CONSTANTS = FOREIGN_KEYS.constants
trace_of = FOREIGN_KEYS.trace


def asks(row: str, instruction: str = SILENT, key: str = "l") -> str:
    return f'[key |-> "{key}", hash |-> {row}, instruction |-> {instruction}]'


def brings(row: str, value: str) -> str:
    return f"[hash |-> {row}, value |-> {value}]"


# A row is updated while its right row goes away: what was shown is stale for ever (docs/facts.md).
RACE = [
    ("UpdateRight", {"right": f"[r1 |-> {X}, r2 |-> None]", "right_changes": "1"}),
    (
        "UpdateLeft",
        {"left": f"[l |-> {L1}]", "left_changes": "1", "subscriptions": f"[r1 |-> <<{asks(L1)}>>, r2 |-> <<>>]"},
    ),
    (
        "DeliverSubscription",
        {
            "subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]",
            "subscribed": f"[r1 |-> [l |-> {L1}], r2 |-> [l |-> None]]",
            "responses": f"[r1 |-> [l |-> <<{brings(L1, X)}>>], r2 |-> [l |-> <<>>]]",
        },
    ),
    (
        "DeliverResponse",
        {
            "responses": "[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<>>]]",
            "result": f"[l |-> [left |-> {L1}, right |-> {X}]]",
        },
    ),
    (
        "ChangeRight",
        {
            "right": "[r1 |-> None, r2 |-> None]",
            "right_changes": "2",
            "responses": f"[r1 |-> [l |-> <<{brings(L1, 'None')}>>], r2 |-> [l |-> <<>>]]",
        },
    ),
    (
        "UpdateLeft",
        {"left": f"[l |-> {L2}]", "left_changes": "2", "subscriptions": f"[r1 |-> <<{asks(L2)}>>, r2 |-> <<>>]"},
    ),
    ("DeliverResponse", {"responses": "[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<>>]]"}),
    (
        "DeliverSubscription",
        {
            "subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]",
            "subscribed": f"[r1 |-> [l |-> {L2}], r2 |-> [l |-> None]]",
        },
    ),
]
STALE = {"subscribed": f"[r1 |-> [l |-> {L1}], r2 |-> [l |-> None]]"}


def test_a_behaviour_that_the_reference_shares_is_replayed_without_a_disagreement() -> None:
    assert replay([trace_of(*RACE), trace_of(*RACE)], CONSTANTS, MODULE) == ReplayResult(2, 16, ())


def test_what_behaviours_have_in_common_is_replayed_once_and_counts_for_each() -> None:
    race = trace_of(*RACE)
    wrong = race.steps[8]._replace(state=trace_of(*RACE[:-1], (RACE[-1][0], {**RACE[-1][1], **STALE})).steps[8].state)
    other = Trace((*race.steps[:8], wrong))
    replayed = replay([race, other, race, Trace(race.steps[:3]), other], CONSTANTS, MODULE)
    assert (replayed.behaviours, replayed.actions) == (5, 8 + 1 + 1 + 0 + 6)
    assert [(found.behaviour, found.step) for found in replayed.disagreements] == [(2, 9), (5, 9)]


def test_a_behaviour_becomes_a_history_whose_lines_are_its_actions() -> None:
    text = history_of(trace_of(*RACE), CONSTANTS, MODULE).to_text()
    assert text.splitlines() == [
        '{"operator": "foreign_key_join", "options": {"foreign_key": "foreign_key", "join": "inner", '
        '"protocol": "kip", "null_foreign_key": "ignore", "delivery": "manual"}}',
        '{"input": "right", "key": "r1", "value": {"version": 1, "key": "r1"}, "timestamp": 1}',
        '{"input": "left", "key": "l", "value": {"version": 1, "foreign_key": "r1"}, "timestamp": 2}',
        '{"deliver": "subscription", "foreign_key": "r1"}',
        '{"deliver": "response", "foreign_key": "r1", "key": "l"}',
        '{"input": "right", "key": "r1", "value": null, "timestamp": 3}',
        '{"input": "left", "key": "l", "value": {"version": 2, "foreign_key": "r1"}, "timestamp": 4}',
        '{"deliver": "response", "foreign_key": "r1", "key": "l"}',
        '{"deliver": "subscription", "foreign_key": "r1"}',
    ]
    (stale,) = play(parse_history(text)).result.values()  # type: ignore[union-attr]
    assert stale == ([{"version": 1, "foreign_key": "r1"}, {"version": 1, "key": "r1"}], 2)


def test_a_race_of_kip_ends_stale_and_the_same_history_ends_right_where_every_change_is_answered() -> None:
    found = contrast(trace_of(*RACE), CONSTANTS)
    assert found.broken == (("QuietIsJoined", 7),)
    assert found.right.options["protocol"] == "answer"
    assert found.broken_on_right == ()
    assert play(found.right).result == {}


ALTERED = {
    "left table l": ("left", f"[l |-> {L1}]"),
    "right table r1": ("right", f"[r1 |-> {X}, r2 |-> None]"),
    "subscribed r1 l": ("subscribed", f"[r1 |-> [l |-> {L1}], r2 |-> [l |-> None]]"),
    "waiting subscription r1": ("subscriptions", f"[r1 |-> <<{asks('None')}>>, r2 |-> <<>>]"),
    "waiting response r1 l": ("responses", f"[r1 |-> [l |-> <<{brings(L2, 'None')}>>], r2 |-> [l |-> <<>>]]"),
    "result l": ("result", f"[l |-> [left |-> {L1}, right |-> None]]"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_what_the_model_has_and_the_reference_not_is_found_wherever_it_is(what: str) -> None:
    variable, text = ALTERED[what]
    found = replace(FOREIGN_KEYS, changed={variable: text}).disagreement()
    assert (found.step, found.what, found.ours) == (1, what, None)
    assert found.model is not None


@pytest.mark.parametrize(
    ("variable", "right", "wrong", "what"),
    [
        ("subscriptions", "hash |-> [version |-> 1", "hash |-> [version |-> 2", "waiting subscription r1"),
        ("subscriptions", "_ONLY_IF_FK_VAL", "_NULL_IF_NO_FK_VAL", "waiting subscription r1"),
        ("responses", "hash |-> [version |-> 1", "hash |-> [version |-> 2", "waiting response r1 l"),
        ("responses", "value |-> [version |-> 1", "value |-> [version |-> 2", "waiting response r1 l"),
        ("subscribed", "version |-> 1", "version |-> 2", "subscribed r1 l"),
    ],
)
def test_another_hash_instruction_or_value_is_a_disagreement(variable: str, right: str, wrong: str, what: str) -> None:
    steps = RACE[:3] if variable != "subscriptions" else RACE[:2]
    action, changed = steps[-1]
    altered = {**changed, variable: changed[variable].replace(right, wrong)}
    found = FOREIGN_KEYS.disagreement(*steps[:-1], (action, altered))
    assert (found.step, found.what) == (len(steps) + 1, what)


def test_a_protocol_that_forgets_what_it_has_shown_is_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgets(Protocol):
        def deliver(self, channel: str, foreign_key: Key, key: Key | None) -> list[Change]:
            emitted = super().deliver(channel, foreign_key, key)
            self.left.shown.clear()
            return emitted

    monkeypatch.setitem(foreign_key_mutants.MUTANTS, "none", Forgets)  # type: ignore[arg-type]
    assert FOREIGN_KEYS.disagreement(*RACE).what == "shown l"


def test_a_disagreement_names_the_behaviour_the_step_the_action_and_both_values() -> None:
    wrong = [*RACE[:3], (RACE[3][0], {"responses": RACE[3][1]["responses"]})]
    found = FOREIGN_KEYS.disagreement(*wrong)
    assert str(found) == (
        'behaviour 1, step 5 (DeliverResponse): result l: the replay has [{"version": 1, "foreign_key": "r1"}, '
        '{"version": 1, "key": "r1"}], the model nothing'
    )


def line_of(before: dict[str, str], after: dict[str, str], action: str = "Next", **constants: TlaValue) -> Any:
    """What is read of one step, without a replay."""
    read = ForeignKeyJoinReplay({**CONSTANTS, **constants})
    trace = replace(FOREIGN_KEYS, changed=before).trace((action, after))
    ((_, found),) = steps_of(trace, read)
    return found.line


def test_a_row_that_is_written_again_is_known_by_what_it_asks() -> None:
    two = {"left": f"[k |-> {L1}, l |-> {L1}]", "result": "[k |-> None, l |-> None]"}
    after = {"left_changes": "1", "subscriptions": f"[r1 |-> <<{asks(L1)}>>, r2 |-> <<>>]"}
    assert line_of(two, after) == Record("left", "l", {"version": 1, "foreign_key": "r1"}, 1)


def test_a_row_that_is_written_again_without_foreign_key_is_known_by_its_result() -> None:
    row = "[version |-> 1, foreign_key |-> None]"
    stale = f"[left |-> {L1}, right |-> {X}]"
    two = {"left": f"[k |-> None, l |-> {row}]", "result": f"[k |-> None, l |-> {stale}]"}
    after = {"left_changes": "1", "result": "[k |-> None, l |-> None]"}
    assert line_of(two, after, Join="left") == Record("left", "l", {"version": 1, "foreign_key": None}, 1)


def test_of_a_delete_of_nothing_any_row_is_taken_that_has_nothing_to_emit() -> None:
    row = "[version |-> 1, foreign_key |-> None]"
    stale = f"[left |-> {L1}, right |-> {X}]"
    two = {"left": f"[k |-> {row}, l |-> None]", "result": f"[k |-> {stale}, l |-> None]"}
    assert line_of(two, {"left_changes": "1"}, Join="left") == Record("left", "l", None, 1)


def test_a_right_row_that_is_written_again_is_known_by_its_answers() -> None:
    r2 = '[version |-> 1, key |-> "r2"]'
    both = {
        "right": f"[r1 |-> {X}, r2 |-> {r2}]",
        "subscribed": f"[r1 |-> [l |-> {L1}], r2 |-> [l |-> {L1}]]",
    }
    after = {"right_changes": "1", "responses": f"[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<{brings(L1, r2)}>>]]"}
    assert line_of(both, after) == Record("right", "r2", {"version": 1, "key": "r2"}, 1)
    gone = {"subscribed": both["subscribed"]}
    after = {"right_changes": "1", "responses": f"[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<{brings(L1, 'None')}>>]]"}
    assert line_of(gone, after) == Record("right", "r2", None, 1)


def test_a_right_row_that_is_sent_to_no_one_is_one_that_no_one_is_subscribed_to() -> None:
    before = {"subscribed": f"[r1 |-> [l |-> {L1}], r2 |-> [l |-> None]]"}
    assert line_of(before, {"right_changes": "1"}) == Record("right", "r2", None, 1)


def test_without_the_length_of_the_prefix_it_is_sent_to_those_who_name_another_key() -> None:
    r10 = '[version |-> 1, key |-> "r10"]'
    before = {
        "right": f"[r1 |-> None, r10 |-> {r10}]",
        "subscribed": f"[r1 |-> [l |-> None], r10 |-> [l |-> {L1}]]",
        "subscriptions": "[r1 |-> <<>>, r10 |-> <<>>]",
        "responses": "[r1 |-> [l |-> <<>>], r10 |-> [l |-> <<>>]]",
    }
    after = {"right_changes": "1", "responses": f"[r1 |-> [l |-> <<>>], r10 |-> [l |-> <<{brings(L1, 'None')}>>]]"}
    assert line_of(before, after, Mutant="no prefix length") == Record("right", "r1", None, 1)


def test_keys_may_be_model_values() -> None:
    before = {"left": "(l1 :> None)", "result": "(l1 :> None)"}
    row = "[version |-> 1, foreign_key |-> None]"
    assert line_of(before, {"left_changes": "1", "left": f"(l1 :> {row})"}) == Record(
        "left", "l1", {"version": 1, "foreign_key": None}, 1
    )


def test_the_end_of_a_behaviour_that_goes_on_doing_nothing_is_no_action() -> None:
    assert replay([trace_of(*RACE, ("Finished", {}), ("Finished", {}))], CONSTANTS, MODULE) == ReplayResult(1, 8, ())


TWO_ROWS = {"left": "[k |-> None, l |-> None]", "result": "[k |-> None, l |-> None]"}
QUEUED = {"subscriptions": f"[r1 |-> <<{asks(L1)}, {asks(L2)}>>, r2 |-> <<{asks(L1)}>>]"}


@pytest.mark.parametrize(
    ("before", "action", "after", "why"),
    [
        (
            TWO_ROWS,
            "UpdateLeft",
            {"left": f"[k |-> {L1}, l |-> {L1}]", "left_changes": "1"},
            "several rows of the left table change",
        ),
        (
            {},
            "UpdateLeft",
            {"left_changes": "1", "right_changes": "1"},
            "several actions happen at once, left change and right change",
        ),
        (
            QUEUED,
            "DeliverSubscription",
            {"subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]"},
            "several actions happen at once, a delivery on subscription r1 and a delivery on subscription r2",
        ),
        (
            QUEUED,
            "DeliverSubscription",
            {"subscriptions": f"[r1 |-> <<>>, r2 |-> <<{asks(L1)}>>]"},
            "more than one subscription leaves its queue",
        ),
        (
            QUEUED,
            "DeliverSubscription",
            {"subscriptions": f"[r1 |-> <<{asks(L1)}>>, r2 |-> <<{asks(L1)}>>]"},
            "a delivery on subscription r1: a message overtakes another",
        ),
        (
            {},
            "UpdateLeft",
            {"left_changes": "1", "left": f"[l |-> {L1}]", "right": f"[r1 |-> {X}, r2 |-> None]"},
            "a left change changes right",
        ),
        ({}, "UpdateLeft", {"right_changes": "1"}, "it has the effect of a right change"),
        ({}, "UpdateLeft", {"left": f"[l |-> {L1}]"}, "no action has this effect"),
        ({}, "UpdateLeft", {"left": "<<1>>"}, r"\(1,\) isn't a function of keys"),
        ({}, "UpdateLeft", {"left": "[l |-> 7]"}, "7 isn't a record of version, foreign_key"),
        (
            {},
            "UpdateLeft",
            {"left": "[l |-> [version |-> TRUE, foreign_key |-> None]]"},
            "the version True isn't a number",
        ),
        ({}, "UpdateLeft", {"left": "(7 :> None)"}, "the key 7 is neither a string nor a model value"),
        ({}, "DeliverResponse", {"responses": "[r1 |-> [l |-> 1], r2 |-> [l |-> <<>>]]"}, "1 is no queue"),
    ],
)
def test_a_step_that_no_action_makes_is_refused_by_its_number(
    before: dict[str, str], action: str, after: dict[str, str], why: str
) -> None:
    with pytest.raises(BadInput, match=rf"^step 2 \({action}\): {why}: replay only behaviours of ForeignKeyJoin"):
        line_of(before, after, action)


def test_a_module_without_a_replay_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^the behaviours of Life can't be replayed: use one of ForeignKeyJoin"):
        replay([], CONSTANTS, "Life")


def test_a_message_that_overtakes_another_is_replayed_and_is_no_line_of_a_history() -> None:
    one, two = (f'[version |-> {number}, foreign_key |-> "r1"]' for number in (1, 2))
    steps = [
        RACE[1],
        (
            "UpdateLeft",
            {
                "left": f"[l |-> {two}]",
                "left_changes": "2",
                "subscriptions": f"[r1 |-> <<{asks(one)}, {asks(two)}>>, r2 |-> <<>>]",
            },
        ),
        (
            "DeliverSubscription",
            {
                "subscriptions": f"[r1 |-> <<{asks(one)}>>, r2 |-> <<>>]",
                "subscribed": f"[r1 |-> [l |-> {two}], r2 |-> [l |-> None]]",
            },
        ),
        (
            "DeliverSubscription",
            {
                "subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]",
                "subscribed": f"[r1 |-> [l |-> {one}], r2 |-> [l |-> None]]",
            },
        ),
    ]
    constants = {**CONSTANTS, "Mutant": "routes out of order"}
    assert replay([trace_of(*steps)], constants, MODULE) == ReplayResult(1, 4, ())
    assert contrast(trace_of(*steps), constants).broken == (("QuietIsSubscribed", 3),)
    with pytest.raises(
        BadInput, match=r"^step 4: a message overtakes another on its route, which no history can express"
    ):
        history_of(trace_of(*steps), constants, MODULE)
