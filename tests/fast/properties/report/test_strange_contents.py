"""Counterexamples of values and keys as users have them: their files, texts and tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from report_contents import counterexample_of
from strange_contents_setup import DRAWN
from streamproof.properties.counterexamples.text import counterexample_text, side_by_side
from streamproof.properties.counterexamples.text import test_to_paste as to_paste
from streamproof.properties.outcomes.notation import both_shown
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.report.recordings import recorded, recording
from streamproof.properties.system.visible import visible
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change


def test_the_text_of_a_counterexample_has_no_unseen_character() -> None:
    for history in DRAWN[::5]:
        text = counterexample_text(counterexample_of(history, lost=range(99)))
        assert visible(text, lines=True).replace("\t", "") == text
        assert len(text.splitlines()) == text.count("\n")


def test_the_test_to_paste_holds_the_history() -> None:
    for history in DRAWN:
        test = to_paste(counterexample_of(history, lost=range(99)))
        assert test is not None
        texts = [node.value for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Constant)]
        found = [text for text in texts if isinstance(text, str) and '"operator"' in text]
        assert [repr(parse_history(text.strip()).lines) for text in found] == [repr(history.lines)]


def test_a_recording_is_read_back_whatever_its_keys_and_values(tmp_path: Path) -> None:
    outcomes = [Outcome.of_play(history.name, play(history)) for history in DRAWN]
    path = tmp_path / "recorded.jsonl"
    path.write_text(recording("reference", DRAWN, outcomes), encoding="utf-8")
    for history, outcome, (_, history_read, outcome_read) in zip(DRAWN, outcomes, recorded(path), strict=True):
        assert repr(history_read.lines) == repr(history.lines)
        assert differences(outcome, outcome_read) == []
        assert [repr(entry.output) for entry in outcome_read.entries] == [
            repr(entry.output) for entry in outcome.entries
        ]


def by_key(*changes: Change) -> Outcome:
    return Outcome("h", Grain.BATCH, [Entry(-1, 0, change) for change in changes])


def test_a_change_without_a_key_is_shown_beside_its_like_and_not_beside_that_of_the_empty_key() -> None:
    without, empty = Change(None, None, 1, 0), Change("", None, 2, 0)
    lines = side_by_side(("one", by_key(without, empty)), ("other", by_key(empty, without)), {None, ""})
    assert [line.split() for line in lines[1:]] == [
        ["batch", "0", "None=1", "at", "0", "None=1", "at", "0"],
        ["batch", "0", "=2", "at", "0", "=2", "at", "0"],
    ]


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        ("a", "a ", ("'a'", "'a '")),
        ("\xe9", "e\u0301", ("'\\xe9'", "'e\\u0301'")),
        (["\uff61"], ["\u3002"], ("['\\uff61']", "['\\u3002']")),
        ("a", "b", ("a", "b")),
        (2**53 + 1, 2**53, (str(2**53 + 1), str(2**53))),
    ],
)
def test_values_that_look_alike_are_shown_so_that_they_differ(
    one: object, other: object, texts: tuple[str, str]
) -> None:
    shown = both_shown(Change("k", None, one, 0), Change("k", None, other, 0))
    assert shown == tuple(f"k={text} at 0" for text in texts)
