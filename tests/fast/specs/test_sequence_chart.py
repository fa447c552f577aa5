"""The sequence chart: every message an arrow, and a file that stands alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT
from replayed_modules import NO_FOREIGN_KEYS
from streamproof.specs.pytla import Function, TlaValue, Trace
from streamproof.specs.sequence_chart import DESCRIPTIONS, Channel, Description, RowsVariable, sequence_chart, short
from streamproof.specs.steps import read_module
from tla_models import trace_of

SVG = "{http://www.w3.org/2000/svg}"
MODULE = ROOT / "specs" / "ForeignKeyJoin" / "ForeignKeyJoin.tla"
ROW = '[version |-> 1, foreign_key |-> "r1"]'
MOVED = '[version |-> 2, foreign_key |-> "r2"]'
ASKED = f'[key |-> "l", hash |-> {ROW}, instruction |-> "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"]'
ANSWER = f'[hash |-> {ROW}, value |-> [version |-> 1, key |-> "r1"]]'
RACE: list[tuple[str, dict[str, str]]] = [
    ("UpdateRight", {"right": '[r1 |-> [version |-> 1, key |-> "r1"], r2 |-> None]'}),
    ("UpdateLeft", {"left": f"[l |-> {ROW}]", "subscriptions": f"[r1 |-> <<{ASKED}>>, r2 |-> <<>>]"}),
    (
        "DeliverSubscription",
        {
            "subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]",
            "subscribed": f"[r1 |-> [l |-> {ROW}], r2 |-> [l |-> None]]",
            "responses": f"[r1 |-> [l |-> <<{ANSWER}>>], r2 |-> [l |-> <<>>]]",
        },
    ),
    ("UpdateLeft", {"left": f"[l |-> {MOVED}]", "subscriptions": f"[r1 |-> <<{ASKED}, {ASKED}>>, r2 |-> <<{ASKED}>>]"}),
    ("DeliverResponse", {"responses": "[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<>>]]"}),
    (
        "DeliverSubscription",
        {
            "subscriptions": f"[r1 |-> <<{ASKED}>>, r2 |-> <<{ASKED}>>]",
            "subscribed": "[r1 |-> [l |-> None], r2 |-> [l |-> None]]",
        },
    ),
]


def drawn(trace: Trace, module: Path = MODULE, title: str = "A race", violated: str = "") -> ElementTree.Element:
    return ElementTree.fromstring(sequence_chart(trace, module, title, violated))


def groups(chart: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in chart.iter(f"{SVG}g") if group.get("class") == kind]


def texts(chart: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in chart.iter(f"{SVG}text")]


def lines(chart: ElementTree.Element, kind: str) -> Iterator[ElementTree.Element]:
    for group in groups(chart, "message"):
        for line in group.iter(f"{SVG}line"):
            if kind in (line.get("class") or "").split():
                yield line


@pytest.fixture
def race() -> ElementTree.Element:
    return drawn(trace_of(*RACE, initial=NO_FOREIGN_KEYS), violated="QuietIsJoined")


def test_every_message_is_one_arrow_and_its_end_is_shown(race: ElementTree.Element) -> None:
    # One subscription that is answered, one that is delivered and two that wait; one response, which is stale.
    assert len(groups(race, "message")) == 5
    assert len(list(lines(race, "dashed"))) == 2
    assert "2 messages are still waiting (dashed)." in texts(race)
    assert texts(race).count("discarded") == 1


def test_the_violated_property_is_shown_with_its_sentence(race: ElementTree.Element) -> None:
    assert "QuietIsJoined is violated" in texts(race)
    assert "When no message waits, the result is the join of the tables." in texts(race)


def test_an_arrow_goes_from_the_step_of_sending_to_the_step_of_delivery(race: ElementTree.Element) -> None:
    starts = [float(rows[0].get("y", "")) - 21 for rows in (g.findall(f"{SVG}text") for g in groups(race, "step"))]
    (discarded,) = lines(race, "discarded")

    def step_at(y: float) -> int:
        return sum(start <= y for start in starts)

    assert step_at(float(discarded.get("y1", ""))) == 4
    assert step_at(float(discarded.get("y2", ""))) == 6
    assert [step_at(float(line.get("y2", ""))) for line in lines(race, "forth")] == [4, 7]


def test_every_key_has_a_lifeline(race: ElementTree.Element) -> None:
    heads = [text.text for group in groups(race, "lifeline") for text in group.iter(f"{SVG}text")]
    assert heads == ["result", "left", "right r1", "right r2"]


def test_a_response_that_is_joined_is_not_crossed_and_the_result_is_emitted() -> None:
    pair = f'[left |-> {ROW}, right |-> [version |-> 1, key |-> "r1"]]'
    emitted = {"responses": NO_FOREIGN_KEYS["responses"], "result": f"[l |-> {pair}]"}
    chart = drawn(trace_of(*RACE[:3], ("DeliverResponse", emitted), initial=NO_FOREIGN_KEYS))
    assert "discarded" not in texts(chart)
    assert len(groups(chart, "answer")) == 1
    assert "l = [(1, r1), (1, r1)]" in texts(chart)


def test_messages_that_wait_from_the_start_are_drawn() -> None:
    chart = drawn(trace_of(initial={**NO_FOREIGN_KEYS, "subscriptions": f"[r1 |-> <<{ASKED}>>, r2 |-> <<>>]"}))
    assert len(list(lines(chart, "dashed"))) == 1


def test_a_reader_who_sees_nothing_hears_the_steps(race: ElementTree.Element) -> None:
    described = race.find(f"{SVG}desc")
    assert race.get("role") == "img"
    assert race.findtext(f"{SVG}title") == "A race"
    assert described is not None
    assert "3: UpdateLeft(l). 4: DeliverSubscription(r1)" in (described.text or "")


def test_the_file_stands_alone_in_light_and_dark() -> None:
    text = sequence_chart(trace_of(*RACE, initial=NO_FOREIGN_KEYS), MODULE, "A race", "QuietIsJoined")
    assert set(re.findall(r"https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<image|<foreignObject|@import|url\(|href|<!DOCTYPE|\son\w+=", text)
    assert "prefers-color-scheme: dark" in text


def test_text_of_a_model_is_escaped(tmp_path: Path) -> None:
    trace = trace_of(("Next", {"x": r'"</text><script>alert(1)</script> & \"\\"'}), initial={"x": "1"})
    chart = drawn(trace, tmp_path / "Any.tla", title='<b> & "quoted"')
    assert chart.findtext(f"{SVG}title") == '<b> & "quoted"'
    assert not list(chart.iter(f"{SVG}script"))
    assert any("<script>" in text for text in texts(chart))


def test_a_character_that_xml_forbids_is_replaced() -> None:
    assert (
        drawn(trace_of(*RACE, initial=NO_FOREIGN_KEYS), title="a\x00b\x1bc").findtext(f"{SVG}title")
        == "a\ufffdb\ufffdc"
    )


def test_a_module_without_a_description_gets_its_changes(tmp_path: Path) -> None:
    chart = drawn(
        trace_of(("Tick", {"x": "2"}), ("Send", {"y": "<<7>>"}), initial={"x": "1", "y": "<<>>"}), tmp_path / "A.tla"
    )
    assert {"y = <<>>", "Tick", "x: 1 → 2", "Send", "y: + 7"} <= set(texts(chart))
    assert not groups(chart, "lifeline")


def test_another_module_of_a_described_name_gets_its_changes(tmp_path: Path) -> None:
    chart = drawn(trace_of(("Tick", {"left": "2"}), initial={"left": "1"}), tmp_path / "ForeignKeyJoin.tla")
    assert "left: 1 → 2" in texts(chart)


def test_an_endless_counterexample_is_shown_as_one_and_its_loop_drawn() -> None:
    ended, looping = (drawn(trace_of(*RACE[:2], initial=NO_FOREIGN_KEYS, loop=loop)) for loop in (None, 2))
    assert "then back to step 2, and so on for ever" in texts(looping)
    assert len(list(looping.iter(f"{SVG}path"))) > len(list(ended.iter(f"{SVG}path")))
    stuttering = drawn(trace_of(*RACE[:2], initial=NO_FOREIGN_KEYS, stutters=True))
    assert "then nothing more happens, for ever (stuttering)" in texts(stuttering)


@pytest.mark.parametrize("module", DESCRIPTIONS)
def test_a_description_is_of_the_variables_that_its_module_has(module: str) -> None:
    described = {part.variable for part in (*DESCRIPTIONS[module].tables, *DESCRIPTIONS[module].channels)}
    assert described <= set(read_module(MODULE.parents[1] / module / f"{module}.tla").variables)


@pytest.mark.parametrize(("empty", "full"), [("{}", "{7}"), ("<<>>", "(7 :> 1)")], ids=["a set", "a bag"])
def test_a_channel_may_be_a_set_or_a_bag(
    empty: str, full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = Description(
        lanes=("left", "right {0}"),
        tables=(RowsVariable("right", 1, "right {0}", "{0} = {it}", "{0} = {it}"),),
        channels=(Channel("sent", 1, "left", "right {0}", ("{it}",)),),
    )
    monkeypatch.setitem(DESCRIPTIONS, "Set", described)
    first = {"right": "[r |-> 1]", "sent": f"[r |-> {empty}]"}
    sent, delivered = {"sent": f"[r |-> {full}]"}, {"sent": f"[r |-> {empty}]"}
    chart = drawn(trace_of(("Send", sent), ("Deliver", delivered), initial=first), tmp_path / "Set.tla")
    assert len(list(lines(chart, "forth"))) == 1
    assert "7" in texts(chart)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "TRUE"),
        ("text", "text"),
        ((1, "a"), "⟨1, a⟩"),
        (frozenset({2, 1}), "{1, 2}"),
        (Function({"version": 1, "key": "r"}), "(1, r)"),
    ],
)
def test_values_are_written_shortly(value: TlaValue, written: str) -> None:
    assert short(value) == written
