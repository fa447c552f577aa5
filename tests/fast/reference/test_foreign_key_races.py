"""Schedules of the foreign-key join: bugs that shipped, races, and the order of messages."""

from __future__ import annotations

import pytest
from foreign_key_protocols import JOIN, Schedule, manual, played
from foreign_key_schedules import BUG_SCHEDULES, GOOD, RACES, SHOWN
from notation import changelog, shown, steps
from streamproof.reference.core.errors import BadInput
from streamproof.reference.foreign_key_protocol import Protocol

# Bugs that shipped (docs/facts.md), as schedules.


@pytest.mark.parametrize("name", BUG_SCHEDULES)
def test_on_the_schedule_of_a_bug_that_shipped_the_reference_is_right(name: str) -> None:
    text, options = BUG_SCHEDULES[name]
    assert " ".join(map(shown, played(text, Protocol, **options)[1])) == GOOD[name]


# The races (docs/facts.md), as schedules.


@pytest.mark.parametrize("text", RACES.values(), ids=RACES)
def test_with_answer_the_same_schedule_ends_right(text: str) -> None:
    schedule = Schedule(protocol="answer")
    emitted = [*schedule.then(text), *schedule.drain()]
    assert emitted[0] == "l=(a|r1,x)@1"
    assert emitted[-1].startswith("l=∅")


def test_a_value_that_repeats_may_show_a_pair_that_never_was_until_a_later_answer_corrects_it() -> None:
    # 4: the answer with y is computed while the row is away, and accepted when it is back
    text = f"{SHOWN} l=∅ R r1=y r1=z L l=a|r1 <r1/l <r1/l"
    emitted = manual(text, join="left")
    assert emitted[-2:] == ["l=(a|r1,y)@3", "l=(a|r1,z)@4"]


def test_where_no_value_repeats_that_answer_is_discarded() -> None:
    text = f"{SHOWN} l=∅ R r1=y r1=z L l=b|r1 <r1/l <r1/l"
    assert manual(text, join="left")[-2:] == ["-", "-"]


# Channels.


def test_messages_on_one_route_keep_their_order() -> None:
    schedule = Schedule()
    schedule.then("L k=a|1@0 k=b|1@0 k=c|1@0")
    assert [one.partition("#")[2] for one in schedule.waiting] == ["a|1", "b|1", "c|1"]


def test_routes_overtake_each_other() -> None:
    assert Schedule().then("R 1=x@0 2=y@0 L a=1|1@0 b=2|2@0 >2 <2/b >1 <1/a") == ["b=(2|2,y)@0", "a=(1|1,x)@0"]


def test_answers_to_two_rows_of_one_right_key_overtake_each_other() -> None:
    assert Schedule().then("R 1=x@0 L a=1|1@0 b=2|1@0 >1 >1 <1/b <1/a") == ["b=(2|1,x)@0", "a=(1|1,x)@0"]


def test_a_right_changes_answers_wait_too() -> None:
    schedule = Schedule()
    assert schedule.then("L a=1|1@0 >1 R 1=x@0") == []
    assert schedule.waiting == ["<1/a x #1|1"]


def test_what_waits_when_the_history_ends_stays_there() -> None:
    assert changelog("R r=x L l=a|r >r", JOIN, delivery="manual") == ""


def test_a_deletion_of_what_never_was_sends_nothing() -> None:
    schedule = Schedule(join="left")
    assert (schedule.then("L k=∅@0"), schedule.waiting) == ([], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">r", r"0: no message waits on subscription r: .*\(none\)"),
        ("L k=a|r >s", r"1: no message waits on subscription s: deliver from a route with messages \(subscription r\)"),
        ("L k=a|r <r/k", r"1: no message waits on response r k: .* \(subscription r\)"),
        ("R r=x L k=a|r >r <r/j", r"3: no message waits on response r j: .* \(response r k\)"),
        ("L k=a|r j=b|s >r >r", r"3: no message waits on subscription r: .* \(subscription s\)"),
    ],
)
def test_a_delivery_from_an_empty_channel_is_refused_with_the_routes_that_wait(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"^history: arrival {message}"):
        manual(text)


def test_an_immediate_delivery_leaves_nothing_to_deliver() -> None:
    with pytest.raises(BadInput, match="arrival 1: no message waits, because delivery is immediate: use the option"):
        steps("L k=a|r >r", JOIN)
