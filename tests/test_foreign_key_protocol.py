from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from foreign_key_schedules import BUG_SCHEDULES, EXAMPLE, GOOD, RACES, SHOWN, STALE
from notation import Machine, changelog, history_of, lines_of, shown, shown_value, steps
from streamproof.reference import foreign_key_protocol
from streamproof.reference.clocks import StreamTime
from streamproof.reference.errors import BadInput
from streamproof.reference.foreign_key_join import meaning
from streamproof.reference.foreign_key_protocol import (
    Instruction,
    Left,
    Protocol,
    Response,
    Right,
    Route,
    Subscription,
    digest_of,
    prefix_of,
)
from streamproof.reference.histories import Delivery
from streamproof.reference.joins import ForeignKeyJoin
from streamproof.reference.play import play
from streamproof.reference.records import Accepted, Change, Key, Record, Value
from streamproof.specs.replays.foreign_key_mutants import AsksTheOldKey, UnsubscribeNotSent

JOIN = "foreign_key_join"
DELETE = "DELETE_KEY_NO_PROPAGATE"
DELETE_AND_ANSWER = "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NONE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
ONLY_IF_ANY = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


def manual(text: str, machine: Machine | None = None, **options: Any) -> list[str]:
    return steps(text, JOIN, machine, delivery="manual", **options)


class Schedule:
    """A protocol of which one sees the messages; a hash is shown as the value that it is of."""

    def __init__(self, machine: type[Protocol] = Protocol, **options: Any) -> None:
        self.protocol = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
        self.values: dict[bytes | None, str] = {None: "∅"}
        self.at = 0

    def then(self, text: str) -> list[str]:
        """Play records (all at 0 ms unless they say otherwise) and deliveries; give what comes out."""
        told: list[Any] = []
        for line in lines_of(text, "left"):
            if isinstance(line, Delivery):
                told += self.protocol.deliver(*line)
            else:
                assert isinstance(line, Record)
                self.values[digest_of(line.value)] = shown_value(line.value) if line.value else "∅"
                told += self.protocol.arrive(line)
        return list(map(shown, told))

    def drain(self) -> list[str]:
        told: list[Change] = []
        while self.protocol.waiting:
            told += self.protocol.deliver(*next(iter(self.protocol.waiting)))
        return list(map(shown, told))

    @property
    def waiting(self) -> list[str]:
        return [self.written(one) for messages in self.protocol.waiting.values() for one in messages]

    def written(self, message: Subscription | Response) -> str:
        told = message.instruction if isinstance(message, Subscription) else message.value
        arrow = ">" if isinstance(message, Subscription) else "<"
        return f"{arrow}{message.foreign_key}/{message.key} {told} #{self.values[message.digest]}"

    @property
    def subscribed(self) -> dict[bytes, str]:
        stored = self.protocol.right.subscriptions
        return {combined: self.values[digest] for combined, (_, digest) in stored.items()}

    @property
    def right_rows(self) -> dict[Key, Value]:
        return {key: value for key, (value, _) in self.protocol.right.table.items()}


# "Original Value Hash": the worked example.


class Unchecked(Left):
    """Skips the check of the hash."""

    def receive(self, response: Response) -> list[Change]:
        return self._tell(response.key, response.value, response.timestamp)


class Unsubscribing(Left):
    """Unsubscribes before it subscribes again under the same key, as the worked example does."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        before = self.join.foreign_key_of(self.table.get(key))
        subscriptions, told = super().change(key, new, timestamp)
        if before is not None and before == self.join.foreign_key_of(new):
            unsubscribe = Subscription(before, key, None, Instruction.DELETE_KEY_NO_PROPAGATE, timestamp)
            subscriptions = [unsubscribe, *subscriptions]
        return subscriptions, told


class UnsubscribingUnchecked(Unchecked, Unsubscribing):
    """Both."""


def with_left(left: type[Left]) -> type[Protocol]:
    class Machine(Protocol):
        def __init__(self, join: ForeignKeyJoin, clock: Any) -> None:
            super().__init__(join, clock)
            self.left = left(join)

    Machine.__name__ = left.__name__
    return Machine


def with_right(right: type[Right], left: type[Left] = Left) -> type[Protocol]:
    class Machine(Protocol):
        def __init__(self, join: ForeignKeyJoin, clock: Any) -> None:
            super().__init__(join, clock)
            self.left = left(join)
            self.right = right(join)

    Machine.__name__ = right.__name__
    return Machine


@pytest.mark.parametrize("join", ["inner", "left"])
@pytest.mark.parametrize(("left", "fifth"), [(Unsubscribing, []), (UnsubscribingUnchecked, ["A=(2|Y,bar)@2"])])
def test_the_worked_example_of_the_hash_step_by_step(left: type[Left], fifth: list[str], join: str) -> None:
    schedule = Schedule(with_left(left), join=join)
    wish = ONLY_IF_ANY if join == "inner" else NULL_IF_NONE
    # 1- RHS is updated to Y|bar; 2- LHS is updated to A|Y,1
    assert schedule.then("R Y=bar@0 L A=1|Y@1") == []
    assert schedule.waiting == [f">Y/A {wish} #1|Y"]
    # 3- LHS is updated to A|Y,2: an unsubscribe, then a subscription
    assert schedule.then("L A=2|Y@2") == []
    assert schedule.waiting == [f">Y/A {wish} #1|Y", f">Y/A {DELETE} #∅", f">Y/A {wish} #2|Y"]
    # 4- RHS processes first Y|A+ message -> sends A|Y,bar back
    assert schedule.then(">Y") == []
    assert schedule.waiting[-1] == "<Y/A bar #1|Y"
    # 5- LHS processes A|Y,bar: it is stale, unless nobody looks
    fifth = [told.replace("@2", "@1") for told in fifth]
    assert schedule.then("<Y/A") == fifth
    # 6- RHS processes Y|A- unsubscribe message (update store only)
    assert schedule.subscribed == {prefix_of("Y") + b"A": "1|Y"}
    assert schedule.then(">Y") == []
    assert (schedule.subscribed, len(schedule.waiting)) == ({}, 1)
    # 7- RHS processes second Y|A+ subscribe message -> sends A|Y,bar back
    assert schedule.then(">Y") == []
    assert schedule.waiting == ["<Y/A bar #2|Y"]
    # 8- LHS processes A|Y,bar and produces result record A|Y,2,bar
    assert schedule.then("<Y/A") == ["A=(2|Y,bar)@2"]
    assert schedule.waiting == []


def test_the_worked_example_gives_one_output_on_the_reference() -> None:
    assert manual(EXAMPLE) == ["-", "-", "-", "-", "-", "-", "A=(2|Y,bar)@2"]


def test_without_the_check_of_the_hash_the_worked_example_gives_its_output_twice() -> None:
    told = manual(EXAMPLE, with_left(Unchecked))
    assert told == ["-", "-", "-", "-", "A=(2|Y,bar)@1", "-", "A=(2|Y,bar)@2"]


# "Workflow": the table of changes of the left side, row by row.


class Step(NamedTuple):
    arrival: str
    inner_sends: list[str]
    left_sends: list[str]
    inner: str | None
    left: str | None
    right_rows: dict[str, str]


FOO, BAR, BAZ = {"1": "foo"}, {"3": "bar"}, {"10": "baz"}
WORKFLOW = [
    # Publish new event (k,1): normal fk-join induced by LHS event
    Step("k=a|1", [f">1/k {ONLY_IF_ANY}"], [f">1/k {NULL_IF_NONE}"], "k=(a|1,foo)", "k=(a|1,foo)", FOO),
    # (k,1) -> (k,2): must indicate a delete, (k,1,foo) is no longer valid output
    Step(
        "k=a|2",
        [f">1/k {DELETE}", f">2/k {NULL_IF_NONE}"],
        [f">1/k {DELETE}", f">2/k {NULL_IF_NONE}"],
        "k=∅",
        "k=(a|2,null)",
        FOO,
    ),
    # (k,2) -> (k,3): ideally would not publish a delete with inner join
    Step(
        "k=a|3",
        [f">2/k {DELETE}", f">3/k {NULL_IF_NONE}"],
        [f">2/k {DELETE}", f">3/k {NULL_IF_NONE}"],
        "k=∅",
        "k=(a|3,null)",
        FOO,
    ),
    # Publish a value to RHS-0: performs prefix scan join
    Step("R 3=bar", ["<3/k bar"], ["<3/k bar"], "k=(a|3,bar)", "k=(a|3,bar)", FOO | BAR),
    # Delete k: propagate null/delete through the sub-topology
    Step("k=∅", [f">3/k {DELETE_AND_ANSWER}"], [f">3/k {DELETE_AND_ANSWER}"], "k=∅", "k=∅", FOO | BAR),
    # Publish original event again (k,null) -> (k,1)
    Step("k=a|1", [f">1/k {ONLY_IF_ANY}"], [f">1/k {NULL_IF_NONE}"], "k=(a|1,foo)", "k=(a|1,foo)", FOO | BAR),
    # Publish to LHS (q,10): significant difference between inner and outer
    Step("q=a|10", [f">10/q {ONLY_IF_ANY}"], [f">10/q {NULL_IF_NONE}"], None, "q=(a|10,null)", FOO | BAR),
    # Publish a value to RHS-1
    Step("R 10=baz", ["<10/q baz"], ["<10/q baz"], "q=(a|10,baz)", "q=(a|10,baz)", FOO | BAR | BAZ),
]


@pytest.mark.parametrize("join", ["inner", "left"])
def test_the_workflow_table_row_by_row(join: str) -> None:
    schedule = Schedule(join=join)
    schedule.then("R 1=foo@0")
    for step in WORKFLOW:
        schedule.then(f"L {step.arrival}@0")
        sent = [written.partition(" #")[0] for written in schedule.waiting]
        assert sent == (step.inner_sends if join == "inner" else step.left_sends), step.arrival
        expected = step.inner if join == "inner" else step.left
        assert schedule.drain() == ([] if expected is None else [f"{expected}@0"]), step.arrival
        assert schedule.right_rows == step.right_rows, step.arrival


# "Changing LHS (Key, FK-1) to (Key, FK-2)": its eight steps.


def moving(rows: str, **options: Any) -> Schedule:
    """A row k of which the result with FK-1 is shown, and that has just been changed to FK-2."""
    schedule = Schedule(**options)
    assert schedule.then(f"{rows} L k=a|1@0 >1 <1/k") == ["k=(a|1,foo)@0"]
    assert schedule.then("L k=b|2@0") == []
    return schedule


@pytest.mark.parametrize("join", ["inner", "left"])
def test_steps_1_and_2_a_changed_key_unsubscribes_from_the_old_and_subscribes_to_the_new(join: str) -> None:
    sent = moving("R 1=foo@0", join=join).waiting
    assert [one.partition(" #")[0] for one in sent] == [f">1/k {DELETE}", f">2/k {NULL_IF_NONE}"]
    assert sent[1] == f">2/k {NULL_IF_NONE} #b|2"


def test_step_1_an_unsubscribe_carries_null() -> None:
    assert moving("R 1=foo@0").waiting[0] == f">1/k {DELETE} #∅"


def test_step_3_the_old_key_forgets_the_row_and_says_nothing() -> None:
    schedule = moving("R 1=foo@0")
    assert schedule.subscribed == {prefix_of("1") + b"k": "a|1"}
    assert schedule.then(">1") == []
    assert (schedule.subscribed, schedule.waiting) == ({}, [f">2/k {NULL_IF_NONE} #b|2"])


def test_step_4_the_new_key_keeps_the_row_under_the_combined_key_with_its_hash() -> None:
    schedule = moving("R 1=foo@0")
    schedule.then(">2")
    assert schedule.subscribed[prefix_of("2") + b"k"] == "b|2"


@pytest.mark.parametrize(("rows", "answer"), [("R 1=foo@0 2=bar", "bar"), ("R 1=foo@0", "None")], ids=["5a", "5b"])
@pytest.mark.parametrize("join", ["inner", "left"])
def test_step_5_the_new_key_answers_with_its_row_or_with_null(rows: str, answer: str, join: str) -> None:
    schedule = moving(rows, join=join)
    schedule.then(">2")
    assert schedule.waiting[-1] == f"<2/k {answer} #b|2"


@pytest.mark.parametrize("change", ["k=c|2", "k=∅", "k=c|null", "k=c|1"])
@pytest.mark.parametrize("join", ["inner", "left"])
def test_step_6a_an_answer_whose_hash_does_not_match_is_discarded(change: str, join: str) -> None:
    schedule = moving("R 1=foo@0 2=bar", join=join)
    assert schedule.then(f">2 L {change}@0 <2/k") == []


@pytest.mark.parametrize(("join", "told"), [("inner", "k=∅@0"), ("left", "k=(b|2,null)@0")])
def test_step_7_an_answer_without_row_wipes_the_old_result_out(join: str, told: str) -> None:
    assert moving("R 1=foo@0", join=join).then(">2 <2/k") == [told]


@pytest.mark.parametrize("join", ["inner", "left"])
def test_step_8_an_answer_with_a_row_is_joined_with_the_left_row_as_it_is_now(join: str) -> None:
    assert moving("R 1=foo@0 2=bar@5", join=join).then(">2 <2/k") == ["k=(b|2,bar)@5"]


# "In the event of a deletion on the LHS": its four steps.


@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_delete_goes_to_the_right_side_and_back(join: str) -> None:
    schedule = Schedule(join=join)
    schedule.then("R 1=foo@0 L k=a|1@0 >1 <1/k")
    assert schedule.then("L k=∅@0") == []
    assert schedule.waiting == [f">1/k {DELETE_AND_ANSWER} #∅"]  # 1) LHS sends (FK-Key, null) to RHS
    assert schedule.then(">1") == []
    assert schedule.subscribed == {}  # 2) RHS deletes Key from state store
    assert schedule.waiting == ["<1/k None #∅"]  # 3) RHS sends (Key, null) back to LHS
    assert schedule.then("<1/k") == ["k=∅@0"]  # 4) LHS validates Key is still null, propagates tombstone


@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_deletes_answer_is_discarded_where_the_key_is_back(join: str) -> None:
    assert "k=∅@0" not in Schedule(join=join).then("R 1=foo@0 L k=a|1@0 >1 <1/k k=∅@0 >1 k=a|1@0 <1/k")


def test_a_null_key_sends_a_delete_that_is_answered() -> None:
    schedule = Schedule()
    schedule.then("R 1=foo@0 L k=a|1@0 >1 <1/k k=b|null@0")
    assert schedule.waiting == [f">1/k {DELETE_AND_ANSWER} #b|null"]


def test_with_answer_the_inner_join_asks_for_an_answer_in_any_case() -> None:
    schedule = Schedule(protocol="answer")
    schedule.then("L k=a|1@0 k=b|1@0")
    assert schedule.waiting == [f">1/k {NULL_IF_NONE} #a|1", f">1/k {NULL_IF_NONE} #b|1"]


# The combined key.


@pytest.mark.parametrize(
    ("foreign_key", "written"),
    [("", b"\0\0\0\0"), ("r", b"\0\0\0\x01r"), ("r1", b"\0\0\0\x02r1"), ("é", b"\0\0\0\x02\xc3\xa9")],
)
def test_a_combined_key_begins_with_the_foreign_key_and_its_length_in_four_bytes(
    foreign_key: str, written: bytes
) -> None:
    assert prefix_of(foreign_key) == written


def test_a_subscription_is_kept_under_length_foreign_key_and_primary_key() -> None:
    schedule = Schedule()
    schedule.then("L k1=a|r1@0 >r1")
    assert list(schedule.subscribed) == [b"\0\0\0\x02r1k1"]


PREFIXES = [
    ("L a=v|fk1@0 b=v|fk@0 >fk1 >fk", "R fk=X@0", ["<fk/b X #v|fk"]),
    ("L 1x=v|r@0 x=v|r1@0 >r >r1", "R r=X@0", ["<r/1x X #v|r"]),
    ("L 1x=v|r@0 x=v|r1@0 >r1 >r", "R r1=X@0", ["<r1/x X #v|r1"]),
]


@pytest.mark.parametrize(("subscriptions", "change", "responses"), PREFIXES)
def test_a_scan_finds_no_key_of_which_its_own_is_a_prefix(
    subscriptions: str, change: str, responses: list[str]
) -> None:
    schedule = Schedule()
    schedule.then(f"{subscriptions} {change}")
    assert schedule.waiting == responses


@pytest.mark.parametrize(("subscriptions", "change", "responses"), PREFIXES)
def test_a_combined_key_without_the_length_finds_another_keys_row(
    subscriptions: str, change: str, responses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_key_protocol, "prefix_of", lambda foreign_key: foreign_key.encode())
    schedule = Schedule()
    schedule.then(f"{subscriptions} {change}")
    assert schedule.waiting != responses


def test_a_right_change_is_answered_in_the_order_of_combined_keys() -> None:
    schedule = Schedule()
    schedule.then("L b=1|r@0 a=2|r@0 é=3|r@0 B=4|r@0 >r >r >r >r R r=x@0")
    assert [one.split()[0] for one in schedule.waiting] == ["<r/B", "<r/a", "<r/b", "<r/é"]


# The hash.


def test_equal_values_have_equal_hashes_however_they_are_written() -> None:
    # KAFKA-15303: bytes that differ when a value is written a second time
    assert digest_of({"fk": "r", "v": [1, {"a": 1, "b": 2}]}) == digest_of({"v": [1, {"b": 2, "a": 1}], "fk": "r"})


@pytest.mark.parametrize("other", [{"fk": "r", "v": 2}, {"fk": "r"}, {"fk": "s", "v": 1}, {"fk": "r", "v": "1"}, None])
def test_other_values_have_other_hashes(other: Any) -> None:
    assert digest_of({"fk": "r", "v": 1}) != digest_of(other)


# Bugs that shipped (facts/bug_museum), as schedules.


class Hashed(Left):
    """An unsubscribe carries the new value's hash, as in Kafka."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, told = super().change(key, new, timestamp)
        return [one._replace(digest=digest_of(new)) for one in subscriptions], told


class Resubscribe(Right):
    """KAFKA-9244 with the new hash: an unsubscribe stores it instead of forgetting the row."""

    def receive(self, subscription: Subscription) -> list[Response]:
        foreign_key, key, digest, instruction, _ = subscription
        told = super().receive(subscription)
        if instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
            self.subscriptions[prefix_of(foreign_key) + key.encode()] = (key, digest)
        return told


class SilentMove(Left):
    """KAFKA-3705: a change to a key without row emits nothing."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, told = super().change(key, new, timestamp)
        if len(subscriptions) == 2:
            asked = subscriptions[1]._replace(instruction=Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)
            subscriptions = [subscriptions[0], asked]
        return subscriptions, told


class SilentDelete(Left):
    """A delete asks for no answer."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, told = super().change(key, new, timestamp)
        if new is None:
            subscriptions = [one._replace(instruction=Instruction.DELETE_KEY_NO_PROPAGATE) for one in subscriptions]
        return subscriptions, told


class SilentNull(Left):
    """KAFKA-16434: a row whose key becomes null sends nothing."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, told = super().change(key, new, timestamp)
        return ([], []) if new is not None and self.join.foreign_key_of(new) is None else (subscriptions, told)


class DeafToInserts(Left):
    """KAFKA-16407: a row whose key was null is ignored."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        old = self.table.get(key)
        subscriptions, told = super().change(key, new, timestamp)
        return ([], []) if old is not None and self.join.foreign_key_of(old) is None else (subscriptions, told)


class WrittenAgain(Left):
    """KAFKA-15303: the hash of an answer is compared with one over other bytes of the same value."""

    def receive(self, response: Response) -> list[Change]:
        left = self.table.get(response.key)
        return super().receive(response) if left is None else []


class Unordered(Protocol):
    """Messages on one route overtake each other."""

    def _send(self, *messages: Subscription | Response) -> None:
        super()._send(*messages)
        for waiting in self.waiting.values():
            waiting.reverse()


class TellsTwice(Right):
    """KAFKA-16394: a delete is answered twice."""

    def receive(self, subscription: Subscription) -> list[Response]:
        told = super().receive(subscription)
        return told * 2 if subscription.digest is None else told


BUGS: dict[str, type[Protocol]] = {
    "1 KAFKA-9244": with_right(Resubscribe, Hashed),
    "2 KAFKA-3705": with_left(SilentMove),
    "2 KAFKA-3705, left": with_left(SilentMove),
    "3 KAFKA-16434": with_left(SilentNull),
    "4 KAFKA-16407": with_left(DeafToInserts),
    "5 KAFKA-18713": with_left(AsksTheOldKey),
    "6 KAFKA-16394": with_right(TellsTwice),
    "8 no hash check": with_left(Unchecked),
    "8 no hash check, deleted": with_left(Unchecked),
    "9 KAFKA-15303": with_left(WrittenAgain),
}


def told_by(text: str, machine: type[Protocol], options: dict[str, Any]) -> str:
    """What comes out of a schedule, of which the deliveries are left out where nothing waits."""
    protocol = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
    told: list[Any] = []
    for line in lines_of(text):
        if isinstance(line, Record):
            told += protocol.arrive(line)
        elif isinstance(line, Delivery) and tuple(line) in protocol.waiting:
            told += protocol.deliver(*line)
    return " ".join(map(shown, told))


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_that_shipped_shows_on_its_schedule_and_the_reference_is_right(name: str) -> None:
    machine, (text, options) = BUGS[name], BUG_SCHEDULES[name]
    assert told_by(text, Protocol, options) == GOOD[name]
    assert told_by(text, machine, options) != GOOD[name]


def test_kafka_18713_ends_without_the_row_that_is_there() -> None:
    text, options = BUG_SCHEDULES["5 KAFKA-18713"]
    assert told_by(text, BUGS["5 KAFKA-18713"], options).endswith("l=(v|r2,null)@3")


# The races (facts/foreign_key_races), as schedules.


def quiet(text: str, **options: Any) -> Protocol:
    """Plays a schedule, then delivers whatever still waits, in any order."""
    schedule = Schedule(**options)
    schedule.then(text)
    schedule.drain()
    return schedule.protocol


@pytest.mark.parametrize("text", RACES.values(), ids=RACES)
def test_the_inner_join_of_kip_can_end_stale_for_ever(text: str) -> None:
    history = history_of(text, JOIN, delivery="manual")
    played = play(history)
    assert played.result == STALE
    assert not quiet(text).waiting  # it played to the last message: nothing will ever mend it
    assert meaning(played.definition, played.accepted, played.clock) == {}


@pytest.mark.parametrize("text", RACES.values(), ids=RACES)
def test_with_answer_the_same_schedule_ends_right(text: str) -> None:
    schedule = Schedule(protocol="answer")
    told = [*schedule.then(text), *schedule.drain()]
    assert told[0] == "l=(a|r1,x)@1"
    assert told[-1].startswith("l=∅")


@pytest.mark.parametrize("text", RACES.values(), ids=RACES)
@pytest.mark.parametrize("null_foreign_key", ["ignore", "keep"])
def test_the_left_join_ends_right_on_the_same_schedule(text: str, null_foreign_key: str) -> None:
    schedule = Schedule(join="left", null_foreign_key=null_foreign_key)
    told = [*schedule.then(text), *schedule.drain()]
    accepted = [Accepted(line, 0) for line in lines_of(text) if isinstance(line, Record)]
    meant = meaning(schedule.protocol.join, accepted, 0)
    left = [shown(Change(*row, value, 0)).partition("@")[0] for row, (value, _) in meant.items()] or ["l=∅"]
    assert told[-1].partition("@")[0] == left[0]


def test_a_value_that_repeats_may_show_a_pair_that_never_was_until_a_later_answer_mends_it() -> None:
    # 4: the answer with y is computed while the row is away, and accepted when it is back
    text = f"{SHOWN} l=∅ R r1=y r1=z L l=a|r1 <r1/l <r1/l"
    told = manual(text, join="left")
    assert told[-2:] == ["l=(a|r1,y)@3", "l=(a|r1,z)@4"]


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
        (">r", r"nothing waits to be delivered on subscription r: .*\(none\)"),
        ("L k=a|r >s", r"nothing waits .* on subscription s: deliver from a route with messages \(subscription r\)"),
        ("L k=a|r <r/k", r"nothing waits .* on response r k: .* \(subscription r\)"),
        ("R r=x L k=a|r >r <r/j", r"nothing waits .* on response r j: .* \(response r k\)"),
        ("L k=a|r j=b|s >r >r", r"nothing waits .* on subscription r: .* \(subscription s\)"),
    ],
)
def test_a_delivery_from_an_empty_channel_is_refused_with_the_routes_that_wait(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"^history: arrival \d: {message}"):
        manual(text)


def test_the_refused_delivery_is_named_by_its_arrival() -> None:
    with pytest.raises(BadInput, match=r"^history: arrival 3: nothing waits"):
        manual("R r=x L k=a|r >r >r")


def test_an_immediate_delivery_leaves_nothing_to_deliver() -> None:
    with pytest.raises(BadInput, match="arrival 1: no message waits, for delivery is immediate: use the option"):
        steps("L k=a|r >r", JOIN)


# Every schedule of small histories, by breadth first, so that the first bad ending has the shortest schedule.


class Row(dict[str, Any]):
    """A left value that can stand in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


digest_once = cache(digest_of)
LEFT_CHOICES = ("r1", "r2", None, "gone")
RIGHT_CHOICES = (("r1", "x"), ("r1", None), ("r2", "y"), ("r2", None))


class State(NamedTuple):
    protocol: Protocol
    result: tuple[Any, Any] | None
    left: Row | None
    lefts: int
    rights: int
    answered: bool
    named: bool
    path: tuple[str, ...]


class Ending(NamedTuple):
    """A state in which no message waits."""

    result: tuple[Any, Any] | None
    meant: tuple[Any, Any] | None
    subscribed_right: bool
    answered: bool
    path: tuple[str, ...]


def copied(thing: Any) -> Any:
    other = object.__new__(type(thing))
    for name, value in vars(thing).items():
        other.__dict__[name] = value.copy() if isinstance(value, (dict, set, list)) else value
    return other


def clone(protocol: Protocol, side: str) -> Protocol:
    """A copy with a side of its own, for a move that changes that side and what waits."""
    other: Protocol = copied(protocol)
    setattr(other, side, copied(getattr(protocol, side)))
    other.waiting = {route: messages.copy() for route, messages in protocol.waiting.items()}
    return other


def key_of(state: State) -> Any:
    protocol = state.protocol
    return (
        state[1:7],
        tuple(protocol.left.table.items()),
        len(protocol.left.shown),
        frozenset(protocol.right.table.items()),
        frozenset(protocol.right.subscriptions.items()),
        frozenset((route, tuple(messages)) for route, messages in protocol.waiting.items()),
    )


def folded(result: tuple[Any, Any] | None, told: list[Any]) -> tuple[Any, Any] | None:
    for change in told:
        result = None if change.value is None else tuple(change.value)
    return result


def moves(state: State, lefts: int, rights: int, unique: bool) -> Iterator[State]:
    """Every next state; r2 is named only after r1, for the two are alike."""
    protocol, result, left, done_left, done_right, answered, named, path = state
    for choice in LEFT_CHOICES if done_left < lefts else ():
        if choice == "r2" and not named:
            continue
        value = None if choice == "gone" else Row(v=done_left if unique else 0, fk=choice)
        other = clone(protocol, "left")
        result_then = folded(result, other.arrive(Record("left", "l", value, 0)))
        then = (*path, "l=∅" if value is None else f"l={value['v']}|{choice or 'null'}")
        yield State(other, result_then, value, done_left + 1, done_right, False, named or choice == "r1", then)
    for key, right in RIGHT_CHOICES if done_right < rights else ():
        if key == "r2" and not named:
            continue
        other = clone(protocol, "right")
        result_then = folded(result, other.arrive(Record("right", key, right and f"{right}{done_right}", 0)))
        then = (*path, f"{key}={right or '∅'}")
        yield State(other, result_then, left, done_left, done_right + 1, answered, True, then)
    for route, (message, *_) in protocol.waiting.items():
        other = clone(protocol, "left" if isinstance(message, Response) else "right")
        own = isinstance(message, Response) and message.digest == digest_once(left)
        result_then = folded(result, other.deliver(*route))
        yield State(other, result_then, left, done_left, done_right, answered or own, named, (*path, written(route)))


def written(route: Route) -> str:
    channel, foreign_key, key = route
    return f">{foreign_key}" if channel == "subscription" else f"<{foreign_key}/{key}"


def ending(state: State) -> Ending:
    protocol = state.protocol
    rows = [Accepted(Record("right", key, value, 0), 0) for key, (value, _) in protocol.right.table.items()]
    table = meaning(protocol.join, [*rows, Accepted(Record("left", "l", state.left, 0), 0)], 0)
    meant = tuple(table["l", None][0]) if table else None
    named = None if state.left is None else state.left["fk"]
    wanted = {} if named is None else {prefix_of(named) + b"l": ("l", digest_once(state.left))}
    return Ending(state.result, meant, protocol.right.subscriptions == wanted, state.answered, state.path)


def endings(machine: type[Protocol], lefts: int, rights: int, unique: bool = True, **options: Any) -> Iterator[Ending]:
    start = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
    states = [State(start, None, None, 0, 0, True, False, ())]
    seen = {key_of(states[0])}
    for state in states:
        if not state.protocol.waiting:
            yield ending(state)
        for then in moves(state, lefts, rights, unique):
            key = key_of(then)
            if key not in seen:
                seen.add(key)
                states.append(then)


@pytest.fixture(autouse=True, scope="module")
def _hashes_are_computed_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            foreign_key_protocol,
            "digest_of",
            lambda value: digest_once(value) if isinstance(value, Row) else digest_of(value),
        )
        yield


ANSWERED: dict[str, dict[str, Any]] = {
    "left": {"join": "left"},
    "left, keep": {"join": "left", "null_foreign_key": "keep"},
    "inner, answer": {"protocol": "answer"},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", ANSWERED.values(), ids=ANSWERED)
@pytest.mark.parametrize(("lefts", "rights", "unique"), [(3, 2, True), (3, 1, False)], ids=["unique", "repeated"])
def test_every_schedule_of_a_join_that_answers_ends_in_the_meaning(
    lefts: int, rights: int, unique: bool, options: dict[str, Any]
) -> None:
    ends = list(endings(Protocol, lefts, rights, unique, **options))
    assert [end.path for end in ends if end.result != end.meant] == []
    assert [end.path for end in ends if not end.subscribed_right] == []
    assert len(ends) > 20


@pytest.fixture(scope="module")
def ends_of_kip() -> list[Ending]:
    return list(endings(Protocol, 3, 2))


def test_the_inner_join_of_kip_has_endings_that_are_stale(ends_of_kip: list[Ending]) -> None:
    stale = [end for end in ends_of_kip if end.result != end.meant]
    assert len(stale) > 10
    assert len(stale) < len(ends_of_kip) / 2


def test_every_stale_ending_had_no_answer_that_carries_the_hash_of_the_last_left_change(
    ends_of_kip: list[Ending],
) -> None:
    assert [end.path for end in ends_of_kip if end.result != end.meant and end.answered] == []


def test_the_subscriptions_of_kip_are_those_of_the_current_rows_in_every_ending(ends_of_kip: list[Ending]) -> None:
    assert [end.path for end in ends_of_kip if not end.subscribed_right] == []


def test_the_shortest_stale_ending_is_an_update_under_the_same_key_while_the_row_goes_away(
    ends_of_kip: list[Ending],
) -> None:
    shortest = next(end for end in ends_of_kip if end.result != end.meant)
    assert shortest.path == ("l=0|r1", "r1=x", ">r1", "r1=∅", "<r1/l", "l=1|r1", "<r1/l", ">r1")


def test_an_ending_whose_last_left_change_was_answered_is_right_and_some_are(ends_of_kip: list[Ending]) -> None:
    answered = [end for end in ends_of_kip if end.answered and end.path]
    assert answered
    assert all(end.result == end.meant for end in answered)


# The same search finds the bugs: a search that nothing breaks would show nothing.

MUTANTS: dict[str, tuple[type[Protocol], dict[str, Any]]] = {
    "no hash check": (with_left(Unchecked), {"join": "left"}),
    "routes without order": (Unordered, {"join": "left"}),
    "KAFKA-18713": (with_left(AsksTheOldKey), {"join": "left"}),
    "KAFKA-9244, new hash": (with_right(Resubscribe, Hashed), {"join": "left"}),
    "a silent move, left": (with_left(SilentMove), {"join": "left"}),
    "a silent move, inner": (with_left(SilentMove), {"protocol": "answer"}),
    "a silent delete": (with_left(SilentDelete), {"join": "left"}),
    "a silent null key": (with_left(SilentNull), {"join": "left"}),
    "deaf to inserts": (with_left(DeafToInserts), {"join": "left"}),
    "KAFKA-15303": (with_left(WrittenAgain), {"join": "left"}),
}


def first_wrong(machine: type[Protocol], **options: Any) -> Ending:
    return next(end for end in endings(machine, 2, 1, **options) if end.result != end.meant)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_search_finds_a_seeded_bug_in_the_result(name: str) -> None:
    machine, options = MUTANTS[name]
    assert first_wrong(machine, **options).path


def test_a_missing_unsubscribe_shows_in_the_subscriptions_alone() -> None:
    # KAFKA-9244: the hash check hides it
    ends = list(endings(with_left(UnsubscribeNotSent), 2, 2, join="left"))
    assert [end.path for end in ends if end.result != end.meant] == []
    shortest = next(end.path for end in ends if not end.subscribed_right)
    assert shortest == ("l=0|r1", "l=1|r2", ">r1", ">r2", "<r1/l", "<r2/l")
