from __future__ import annotations

import re

import pytest
from paths import ROOT
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import Delivery
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record
from streamproof.specs.catalogue import find_model
from streamproof.specs.races import RACES, SETUP, chosen, interleavings, lines_of, meant, values_of

FINDINGS = (ROOT / "specs" / "findings.md").read_text(encoding="utf-8")
COUNTS = {
    "delete-insert": (56, 5),
    "delete-insert-without-key": (21, 2),
    "lose-update": (21, 2),
    "lose-delete": (21, 2),
    "lose-gain": (56, 5),
    "move-update": (525, 20),
    "right-delete-update": (11, 4),
    "delete-insert-same-key": (157, 16),
}
"""In how many orders of its messages a race can be played, and in how many of them it ends wrong."""
INNER = {race.name: race for race in chosen([])}
EACH = pytest.mark.parametrize("race", INNER.values(), ids=INNER)


@EACH
def test_a_race_is_that_of_the_findings_and_of_a_model(race):
    text = FINDINGS.replace("\\|", "|")
    assert f"`{race.schedule}`" in text
    assert f"`{SETUP}`" in text
    assert f"`{race.model}`" in text
    assert find_model(race.model).fails


def test_every_race_of_the_findings_is_there():
    of_table = re.findall(r"`(ForeignKeyJoin_race_\w+)` \| \d+ \|", FINDINGS)
    assert of_table == [race.model for race in INNER.values() if not race.name.endswith("same-key")]


@EACH
def test_a_schedule_is_as_long_as_the_models_shortest_counterexample(race):
    states = re.search(rf"`{race.model}`(?: \||,) (\d+)", FINDINGS)
    assert len(race.history().lines) + 1 == int(states[1])


@EACH
def test_a_race_ends_stale_when_no_message_waits(race):
    history = race.history()
    assert values_of(play(history).result) == {"l": [{"value": "a", "foreign_key": "r1"}, "x"]}
    assert values_of(meant(history)) == {}


@EACH
def test_a_race_has_as_many_orders_as_the_findings_say(race):
    ends = [values_of(play(one).result) for one in interleavings(race.history())]
    counts = len(ends), sum(end != values_of(meant(race.history())) for end in ends)
    assert counts == COUNTS[race.name]
    assert f"| `{race.name}` | {counts[0]} | {counts[1]} |" in FINDINGS


@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_no_order_of_a_left_joins_messages_ends_wrong(race):
    history = race.history("left")
    assert all(values_of(play(one).result) == values_of(meant(history)) for one in interleavings(history))


def test_a_schedule_is_read():
    assert list(lines_of("R r1=∅ L l=b|null >r1 l=∅ <r1/l")) == [
        Record("right", "r1", None, 0),
        Record("left", "l", {"value": "b", "foreign_key": None}, 1),
        Delivery("subscription", "r1", None),
        Record("left", "l", None, 2),
        Delivery("response", "r1", "l"),
    ]


def test_an_unknown_race_is_refused_with_those_there_are():
    with pytest.raises(BadInput, match=r"unknown race 'x' of the inner join: use one of delete-insert, .*-same-key$"):
        chosen(["x"])
    with pytest.raises(BadInput, match="unknown race 'move' of the inner join"):
        chosen(["move"])
    assert chosen(["move"], "left") == [RACES["move"]]
