"""Variants of histories: what may change in them without effect, judged on the reference, and what is told apart."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.cohorts import clock_schedule
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.outcomes import Grain, Outcome
from streamproof.properties.shape_check import FLAT, long_after
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.variants import (
    PATIENT,
    Companion,
    alone,
    changed_without_effect,
    is_timeless,
    keys_told,
    parted,
    without_other_keys,
)
from streamproof.reference.histories import History
from streamproof.reference.operators import operator_named
from streamproof.reference.play import play

pytestmark = pytest.mark.exhaustive  # seconds in all: no part of the quick tests

EVERY = [(operator, name) for operator in SHAPES if operator != "session_windows" for name in SHAPES[operator]]
UNMOVED = [
    (operator, name)
    for operator, name in EVERY
    if is_timeless(operator, operator_named(operator).declare(SHAPES[operator][name]))
    or name in PATIENT.get(operator, {})
]


def at_batch_grain(history: History) -> Outcome:
    """The reference's outcome, told as Spark tells it."""
    played = play(history)
    entries = [entry._replace(arrival=-1) for entry in played.entries]
    return Outcome(history.name, Grain.BATCH, entries, is_stream=played.definition.is_stream)


def drawn(operator: str, options: Any, count: int = 8) -> list[History]:
    histories = list(draw_histories(Shape(options, FLAT, operator=operator), count, 3))
    definition = operator_named(operator).declare(options)
    return histories if is_timeless(operator, definition) else [long_after(one, definition) for one in histories]


def companions_of(operator: str, name: str) -> list[Companion]:
    options = {**SHAPES[operator][name], **PATIENT.get(operator, {}).get(name, {})}
    return list(changed_without_effect(drawn(operator, options), random.Random(4)))


def companion(law: str, operator: str, name: str) -> Companion:
    return next(one for one in companions_of(operator, name) if one.variant.law == law and one.changed)


@pytest.mark.parametrize(("operator", "name"), UNMOVED)
def test_what_is_reordered_cut_elsewhere_or_repeated_keeps_its_laws_on_the_reference(operator: str, name: str) -> None:
    companions = companions_of(operator, name)
    for one in companions:
        ours, theirs = at_batch_grain(one.original), at_batch_grain(one.variant.history)
        assert parted(one, ours, theirs) == [], one
    assert {one.variant.law for one in companions if one.changed} >= {"order", "cuts"}


@pytest.mark.parametrize(("operator", "name"), EVERY)
def test_what_is_told_for_a_key_is_the_same_on_the_reference_without_the_others(operator: str, name: str) -> None:
    histories = list(draw_histories(Shape(SHAPES[operator][name], SCHEDULE, operator=operator), 15, 3))
    companions = list(without_other_keys(histories, random.Random(4)))
    for one in companions:
        assert parted(one, at_batch_grain(one.original), at_batch_grain(one.variant.history)) == [], one
    assert any(one.changed for one in companions)


@pytest.mark.parametrize(("operator", "name"), EVERY)
def test_a_key_s_lost_changes_are_noticed(operator: str, name: str) -> None:
    histories = list(draw_histories(Shape(SHAPES[operator][name], SCHEDULE, operator=operator), 15, 3))
    for one in without_other_keys(histories, random.Random(4)):
        ours, theirs = at_batch_grain(one.original), at_batch_grain(one.variant.history)
        if theirs.entries:
            assert parted(one, ours, replace(theirs, entries=[]))


@pytest.mark.parametrize("law", ["order", "cuts", "repeats"])
@pytest.mark.parametrize("operator", sorted({operator for operator, _ in UNMOVED}))
def test_a_lost_result_is_noticed(operator: str, law: str) -> None:
    names = [name for other, name in UNMOVED if other == operator and "tuple" not in name]
    one = companion(law, operator, names[0])
    ours, theirs = at_batch_grain(one.original), at_batch_grain(one.variant.history)
    lost = theirs.result
    row = next(iter(lost))
    if isinstance(lost, dict):
        fewer = [entry for entry in theirs.entries if (entry.output.key, getattr(entry.output, "window", None)) != row]
    else:
        fewer = theirs.entries[:-1]
    assert parted(one, ours, replace(theirs, entries=fewer))


def test_rows_of_a_table_change_places_only_across_keys_and_inputs() -> None:
    one = companion("order", "table_table_join", "outer")
    moved = one.variant.history

    def line(history: History, key: str, side: str) -> list[Any]:
        return [record for record in history.records if (record.key, record.input) == (key, side)]

    for key in "abc":
        for side in ("left", "right"):
            assert line(moved, key, side) == line(one.original, key, side)
    assert moved.records != one.original.records
    assert clock_schedule(moved) == clock_schedule(one.original)


def test_a_history_that_is_cut_elsewhere_has_the_same_records_in_the_same_order() -> None:
    one = companion("cuts", "range_aggregate", "list")
    assert one.variant.history.records == one.original.records
    assert clock_schedule(one.variant.history) == clock_schedule(one.original)


def test_a_left_row_goes_alone_with_all_right_rows() -> None:
    (history,) = drawn("foreign_key_join", SHAPES["foreign_key_join"]["inner"], 1)
    records = alone(history, "a").history.records
    assert records == [one for one in history.records if one.input == "right" or one.key == "a"]


def test_a_group_goes_alone_with_the_changes_that_enter_it_or_leave_it() -> None:
    (history,) = drawn("table_aggregate", SHAPES["table_aggregate"]["sum"], 1)
    assert keys_told(history) == sorted({one.value["group"] for one in history.records if one.value} - {None})
    for group in keys_told(history):
        changes = [entry for entry in play(history).entries if entry.output.key == group]
        assert len(alone(history, group).history.records) == len(changes)


def test_windows_of_tuples_have_no_law_of_repeats() -> None:
    assert {one.variant.law for one in companions_of("window_aggregate", "by tuple")} == {"order", "cuts"}
