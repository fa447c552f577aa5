"""Kafka's instructions of the foreign-key join: what TLC finds of them, and the same on the protocol in Python."""

from __future__ import annotations

import pytest
from foreign_key_protocols import played
from foreign_key_schedules import SHOWN
from notation import lines_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record
from streamproof.reference.foreign_key_protocol import Protocol
from streamproof.specs import races
from streamproof.specs.catalogue import catalogue
from streamproof.specs.pytla import TlaValue
from streamproof.specs.replays.foreign_key_join import MODULE, ForeignKeyJoinReplay
from streamproof.specs.replays.foreign_key_kafka import KAFKA, WITHOUT_KEY

OF_KAFKA = [
    model
    for specification in catalogue()
    if specification.name == MODULE
    for model in specification.models
    if "_kafka_4_3_" in model.name or "_kafka_3_9_" in model.name
]
RACES = ["delete_insert", "delete_insert_same_key", "delete_insert_without_key", "lose_update", "lose_delete"]
RACES += ["lose_gain", "move_update", "update"]


def kafka_after(text: str, protocol: str, **options: str) -> Protocol:
    return played(text, KAFKA[protocol][1], **options)[0]


def asked(text: str, protocol: str, **options: str) -> list[str]:
    """What waits after a schedule, as `r1 DELETE_KEY_NO_PROPAGATE`; without a key as `- …`."""
    return [
        f"{'-' if message.foreign_key == WITHOUT_KEY else message.foreign_key} {message.instruction}"
        for messages in kafka_after(text, protocol, **options).waiting.values()
        for message in messages
        if hasattr(message, "instruction")
    ]


LEAVE, DELETE = "DELETE_KEY_NO_PROPAGATE", "DELETE_KEY_AND_PROPAGATE"
ALWAYS, ONLY = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE", "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


@pytest.mark.parametrize(
    ("change", "of_4_3", "of_3_9"),
    [
        ("L l=b|r1", [f"r1 {ONLY}"], [f"r1 {ALWAYS}"]),
        ("L l=b|r2", [f"r1 {LEAVE}", f"r2 {ALWAYS}"], [f"r1 {LEAVE}", f"r2 {ALWAYS}"]),
        ("L l=b|null", [f"r1 {DELETE}"], []),
        ("L l=∅", [f"r1 {DELETE}"], [f"r1 {DELETE}"]),
        ("L k=b|r2", [f"r2 {ONLY}"], [f"r2 {ONLY}"]),
        ("L k=b|null", [], []),
        ("L k=b|null k=b|r2", [f"r2 {ONLY}"], []),
        ("L k=∅", [], []),
        ("L k=b|null k=∅", [], []),
    ],
)
def test_an_inner_join_asks_what_kafkas_asks(change: str, of_4_3: list[str], of_3_9: list[str]) -> None:
    assert asked(f"{SHOWN} {change}", "kafka 4.3") == of_4_3
    assert asked(f"{SHOWN} {change}", "kafka 3.9") == of_3_9


@pytest.mark.parametrize(
    ("change", "leaves", "asks"),
    [
        ("L l=b|r1", False, f"r1 {ALWAYS}"),
        ("L l=b|r2", True, f"r2 {ALWAYS}"),
        ("L l=b|null", True, f"- {ALWAYS}"),
        ("L l=∅", True, f"- {ALWAYS}"),
        ("L k=b|r2", False, f"r2 {ALWAYS}"),
        ("L k=b|null", False, f"- {ALWAYS}"),
        ("L k=∅", False, None),
    ],
)
def test_a_left_join_asks_always_and_before_4_3_the_key_that_is_left_too(
    change: str, leaves: bool, asks: str | None
) -> None:
    expected = [] if asks is None else [asks]
    options = {"join": "left", "null_foreign_key": "keep"}
    assert asked(f"{SHOWN} {change}", "kafka 4.3", **options) == [*[f"r1 {LEAVE}"][: leaves or 0], *expected]
    assert asked(f"{SHOWN} {change}", "kafka 3.9", **options) == [*[f"r1 {DELETE}"][: leaves or 0], *expected]
    assert asked(f"{SHOWN} {change}", "kafka 4.3 answer") == [*[f"r1 {LEAVE}"][: leaves or 0], *expected]


def test_a_message_without_a_key_is_answered_with_null_and_stored_nowhere() -> None:
    machine = kafka_after(f"{SHOWN} L l=∅", "kafka 4.3", join="left", null_foreign_key="keep")
    assert machine.deliver("subscription", WITHOUT_KEY, None) == []
    (change,) = machine.deliver("response", WITHOUT_KEY, "l")
    assert change.value is None
    assert len(machine.right.subscriptions) == 1  # that of r1, which has yet to learn of the delete


def stale(first: str, lefts: str, protocol: str = "kafka 4.3") -> tuple[int, set[tuple[str, ...]]]:
    """How many interleavings a history has in which r1 is deleted at some time, and those that end with a row shown."""
    known: set[tuple[str, ...]] = set()
    count = 0
    changes = [f"L {text}" for text in lefts.split()]
    for place in range(len(changes) + 1):
        lines = lines_of(" ".join([*changes[:place], "R r1=∅", *changes[place:]]))
        history = History("foreign_key_join", {"foreign_key": "fk", "delivery": "manual"}, tuple(lines))
        for one in races.interleavings(history, lambda *_: kafka_after(first, protocol)):
            count += 1
            machine = kafka_after(first, protocol)
            for line in one.lines:
                machine.arrive(line) if isinstance(line, Record) else machine.deliver(*line)  # type: ignore[misc]
            if machine.left.shown:
                # Without the values, so that schedules which differ in them alone are the same.
                known.add(tuple(line.input if isinstance(line, Record) else f"{line}" for line in one.lines))
    return count, known


def test_equal_hashes_help_where_the_pair_was_shown_before_and_not_always() -> None:
    count, same = stale(SHOWN, "l=∅ l=a|r1")
    count_of_new, new = stale(SHOWN, "l=∅ l=b|r1")
    assert (count, len(same), count_of_new, len(new)) == (65, 20, 65, 41)
    assert same < new
    assert stale(SHOWN, "l=∅ l=a|r1", "kafka 4.3 answer")[1] == set()


def test_equal_hashes_do_harm_where_an_answer_to_an_older_row_is_accepted() -> None:
    count, same = stale("R r1=x", "l=a|r1 l=∅ l=a|r1")
    count_of_new, new = stale("R r1=x", "l=a|r1 l=∅ l=b|r1")
    assert (count, len(same), count_of_new, len(new), len(same - new)) == (495, 71, 495, 55, 45)


ORDERS_OF_3_9 = {
    "delete-insert": (5, 56),
    "delete-insert-without-key": (2, 21),
    "lose-update": (1, 6),
    "lose-delete": (1, 6),
    "lose-gain": (1, 6),
    "move-update": (0, 800),
    "right-delete-update": (0, 11),
    "delete-insert-same-key": (16, 157),
    "move": (35, 56),
}
"""Of each race how many orders of its messages end wrong on Kafka 3.9.0's own processors, and how many there are."""


@pytest.mark.parametrize("name", ORDERS_OF_3_9)
def test_as_many_orders_end_wrong_as_on_kafka_3_9_0_itself(name: str) -> None:
    race = races.RACES[name]
    history = race.history(race.join)
    wanted = races.values_of(races.meant(history))
    ends = [
        races.values_of(play(one, KAFKA["kafka 3.9"][1]).result)
        for one in races.interleavings(history, KAFKA["kafka 3.9"][1])
    ]
    assert (sum(end != wanted for end in ends), len(ends)) == ORDERS_OF_3_9[name]


def test_every_model_of_kafkas_names_its_protocol() -> None:
    assert {model.name for model in OF_KAFKA if model.fails} >= {f"{MODULE}_kafka_4_3_race_{race}" for race in RACES}
    for model in OF_KAFKA:
        protocol = "kafka 4.3" if "_4_3_" in model.name else "kafka 3.9"
        assert f'    Protocol = "{protocol}' in model.configuration.read_text(encoding="utf-8")


def test_kafka_has_no_mutants() -> None:
    constants: dict[str, TlaValue] = {
        "Join": "inner",
        "Protocol": "kafka 4.3",
        "NullForeignKey": "ignore",
        "Mutant": "no hash check",
        "None": "None",
    }
    with pytest.raises(
        BadInput, match=r"^ForeignKeyJoin has no mutant of the protocol 'kafka 4.3': override only one of"
    ):
        ForeignKeyJoinReplay(constants)
