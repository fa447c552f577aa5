"""The cells of the table: which are played, what they say, and what their causes are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from paths import ROOT
from streamproof.properties.checking.sinks import table
from streamproof.properties.checking.sinks.causes import CAUSES, DIFFERENCES, REPORTS, cause_of
from streamproof.properties.checking.sinks.contracts import SinkContract
from streamproof.properties.checking.sinks.faults import FAULTS, Fault
from streamproof.properties.checking.sinks.sinks import NOT_PLAYED, SINKS, sink_named
from streamproof.properties.checking.sinks.table import Asked, Cell, PlayedFault, fault_named
from streamproof.reference.core.errors import BadInput

FAULT = {fault.name: fault for fault in FAULTS}
DOUBLED = PlayedFault({"doubled": 3}, {"doubled": "batch 1: a"})


def cell(sink: str, fault: str, by_hand: PlayedFault | None = None, killed: PlayedFault | None = None) -> Cell:
    return Cell(SINKS[sink], FAULT[fault], by_hand, killed)


def played(sinks: Sequence[SinkContract], faults: Sequence[Fault]) -> list[Cell]:
    found: list[Cell] = []
    table.play(Asked(sinks, faults), found, lambda step: None)
    return found


def test_there_are_ten_sinks_and_twelve_faults_at_the_least() -> None:
    assert len(SINKS) >= 10
    assert len(FAULT) == len(FAULTS) >= 12


@pytest.mark.parametrize("sink", SINKS)
def test_most_faults_have_a_place_on_each_sink_and_the_others_say_why(sink: str) -> None:
    unfit = {fault.name: fault.unfit(SINKS[sink]) for fault in FAULTS}
    assert sum(not why for why in unfit.values()) >= (6 if sink == "memory" else 10)


def test_each_fault_is_played_by_hand_or_by_a_death() -> None:
    assert [fault.name for fault in FAULTS if fault.play is None and fault.place is None] == []


def test_verdicts_are_of_both_ways_the_worst_first() -> None:
    both = cell("append", "zombie", DOUBLED, PlayedFault({"torn": 1, "lost": 2}, refusals=["the old query: no"]))
    assert both.verdicts == ("lost", "doubled", "torn")
    assert both.differs
    assert not cell("append", "zombie", DOUBLED, DOUBLED).differs
    assert cell("append", "zombie", PlayedFault(), None).verdicts == ("kept",)


def test_a_refusal_that_came_in_time_is_a_verdict_and_one_that_did_not_is_none() -> None:
    refused = PlayedFault(refusals=["the old query: no"])
    assert cell("transaction", "zombie", refused).verdicts == ("refused",)
    assert not cell("overwrite", "zombie", PlayedFault(), refused).differs, "the rows are the same"
    assert cell("append", "zombie", replace(DOUBLED, refusals=["too late"])).verdicts == ("doubled",)


def test_a_way_that_was_not_played_says_nothing_of_the_other() -> None:
    unmet = PlayedFault(unmet="no such place")
    one = cell("append", "zombie", unmet, DOUBLED)
    assert (one.verdicts, one.differs, [*one.ways]) == (("doubled",), False, ["killed"])
    none = cell("append", "zombie", unmet, unmet)
    assert (none.verdicts, none.played.unmet) == (("not played",), "no such place")


@pytest.mark.parametrize(
    ("sink", "fault", "broken"),
    [
        ("append", "repeated-batch", False),
        ("overwrite", "repeated-batch", True),
        ("guard-after", "repeated-batch", False),
        ("overwrite", "two-queries", False),
    ],
)
def test_a_promise_is_broken_by_what_the_document_excludes(sink: str, fault: str, broken: bool) -> None:
    assert cell(sink, fault, DOUBLED).is_broken == broken
    assert cell(sink, fault, PlayedFault({"torn": 1})).is_broken is False


def test_the_worst_of_several_deaths_counts() -> None:
    found = PlayedFault({"torn": 4}).with_other(
        PlayedFault({"doubled": 2}, {"doubled": "batch 1: a; operation 3 of 4"})
    )
    assert found.counts == {"doubled": 2, "torn": 4}
    assert PlayedFault(unmet="why").with_other(DOUBLED) == DOUBLED


def test_a_cell_names_the_command_that_plays_it_again() -> None:
    content = cell("append", "repeated-batch", DOUBLED).to_json()
    assert content["command"] == "streamproof sinks append --fault repeated-batch"
    assert content["cause"]
    assert content["smallest"] == {"doubled": "batch 1: a"}
    json.dumps(content)


def test_causes_are_of_sinks_and_faults_that_there_are() -> None:
    for cause in CAUSES:
        assert {*cause.sinks} <= SINKS.keys()
        assert {*cause.faults} <= FAULT.keys()
        assert cause.source.startswith("https://")
    for (sink, fault), report in REPORTS.items():
        assert cell(sink, fault, DOUBLED).report == report
        assert cell(sink, fault, PlayedFault(refusals=["no"])).report == ""
        assert f"]({report})" in (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
        assert any(sink in cause.sinks and fault in cause.faults for cause in CAUSES)
    for (sink, fault), why in DIFFERENCES.items():
        assert cell(sink, fault, DOUBLED, PlayedFault()).difference == why
        assert cell(sink, fault, DOUBLED, DOUBLED).difference == ""
    assert cause_of(SINKS["transaction"], "death-before-write", "lost") == ("", "")


def test_an_unknown_sink_or_fault_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="no sink 'parquet': name one of file-parquet"):
        sink_named("parquet")
    with pytest.raises(BadInput, match="the sink console can't be tested"):
        sink_named("console")
    with pytest.raises(BadInput, match="no fault 'death': name one of death-before-write"):
        fault_named("death")
    assert not NOT_PLAYED.keys() & SINKS.keys()


def test_a_sink_that_is_not_installed_is_refused_alone_and_named_beside_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = replace(SINKS["delta-txn"], library="no-such-package")
    with pytest.raises(BadInput, match=r"delta-txn can't be tested: no-such-package isn't installed: .*delta"):
        played([gone], [FAULT["zombie"]])
    monkeypatch.setattr(table, "_by_hand", lambda *given: DOUBLED)
    fault = replace(FAULT["repeated-batch"], place=None)
    found = played([gone, SINKS["append"]], [fault])
    assert [one.verdicts for one in found] == [("not played",), ("doubled",)]
    assert found[0].played.unmet.startswith("no-such-package isn't installed")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, str]]]:
    """What dies together, without Spark."""
    together: list[list[tuple[str, str]]] = []

    def killed(given: Any, group: Sequence[Cell]) -> list[PlayedFault]:
        together.append([(one.sink.name, one.fault.name) for one in group])
        return [DOUBLED for _ in group]

    monkeypatch.setattr(table, "_by_hand", lambda *given: PlayedFault())
    monkeypatch.setattr(table, "_killed", killed)
    monkeypatch.setattr(table, "_traced", lambda *given: PlayedFault())
    return together


def test_queries_die_together_but_zombies_and_those_that_are_stopped_by_their_log(
    groups: list[list[tuple[str, str]]],
) -> None:
    found = played([SINKS["file-parquet"], SINKS["append"]], FAULTS)
    deaths = ("death-before-write", "death-within-write")
    assert groups == [
        [("file-parquet", one) for one in deaths] + [("append", one) for one in (*deaths, "death-before-commit")],
        [("file-parquet", "zombie"), ("append", "zombie")],
        [("file-parquet", "death-before-commit")],
    ]
    assert {one.fault.name for one in found if one.differs} == {name for group in groups for _, name in group}


def test_no_more_queries_die_together_than_fit(
    groups: list[list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "TOGETHER", 2)
    played([SINKS["append"]], FAULTS)
    assert [len(group) for group in groups] == [2, 1, 1]
