"""Dimensions of type 1 and 2: functions of the set of events, and not as any mutant has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from change_events import drawn, histories, is_consistent, played, profiles_of, reference
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof import BadInput
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.records import Change, Dropped, Record
from streamproof.reference.definitions.changes import OPEN, Scd1, Scd2

NAMES = ("scd1", "scd2")
CASES = [(name, profile) for name in NAMES for profile in profiles_of(name)]


def emitted(name: str, *records: tuple[str, Any, int], **options: Any) -> list[Any]:
    outputs, _ = played(reference(name), options, [Record("events", *record) for record in records])
    return [tuple(one) for one in outputs]


def test_the_newest_event_of_a_key_counts_whatever_arrives_last() -> None:
    assert emitted("scd1", ("a", "new", 5), ("a", "old", 3)) == [("a", None, "new", 5)]


def test_a_null_value_deletes_also_where_a_field_says_which_events_do() -> None:
    records = ("a", {"op": "U"}, 1), ("a", None, 5)
    assert emitted("scd1", *records, deletes={"op": "D"})[-1] == ("a", None, None, 5)


def test_a_deleted_key_does_not_come_back() -> None:
    records = ("a", "x", 1), ("a", None, 5), ("a", "y", 3)
    assert emitted("scd1", *records) == [("a", None, "x", 1), ("a", None, None, 5)]
    assert emitted("scd1", ("a", None, 5), ("a", "y", 3)) == []
    assert emitted("scd1", *records, ("a", "z", 6))[-1] == ("a", None, "z", 6)


def test_a_tombstone_is_kept_for_as_long_as_events_are_accepted() -> None:
    records = ("a", None, 5), ("b", "x", 7), ("a", "y", 4), ("b", "z", 8), ("a", "y", 4)
    kept = emitted("scd1", *records, tombstone_ms=3)
    assert kept == [("b", None, "x", 7), ("b", None, "z", 8), ("a", "late")]


def test_each_version_ends_where_the_next_begins_or_a_delete_is() -> None:
    records = [Record("events", "a", *one) for one in ((1, 1), (None, 6), (2, 4), (3, 9), (2, 5))]
    _, table = played(reference("scd2"), {}, records)
    assert table == {("a", (1, 4)): (1, 1), ("a", (4, 6)): (2, 4), ("a", (9, OPEN)): (3, 9)}


def test_versions_that_agree_on_all_tracked_columns_are_one_with_the_newest_row() -> None:
    events = ({"v": 1, "w": 1}, 1), ({"v": 1, "w": 2}, 3), ({"v": 2, "w": 2}, 5)
    records = [Record("events", "a", *event) for event in events]
    _, table = played(reference("scd2"), {"track": ["v"]}, records)
    assert table == {("a", (1, 5)): ({"v": 1, "w": 2}, 1), ("a", (5, OPEN)): ({"v": 2, "w": 2}, 5)}


def test_versions_that_agree_with_a_delete_between_them_are_two() -> None:
    records = [Record("events", "a", *event) for event in ((1, 1), (None, 3), (1, 5))]
    _, table = played(reference("scd2"), {}, records)
    assert [*table] == [("a", (1, 3)), ("a", (5, OPEN))]


def test_events_of_equal_sequence_that_differ_are_refused_unless_a_field_decides() -> None:
    tied = Record("events", "a", {"v": 1, "n": 2}, 4), Record("events", "a", {"v": 2, "n": 1}, 4)
    for name in NAMES:
        assert played(reference(name), {}, [*tied])[1] == "refused"
        _, table = played(reference(name), {"ties": "n"}, [*tied])
        assert [value for value, _ in table.values()] == [{"v": 1, "n": 2}]
    machine = reference("scd1").behaviour(Scd1(), StreamTime())
    machine.arrive(tied[0])
    with pytest.raises(BadInput, match=r"two events of the key 'a' have the sequence 4 and differ.*ties"):
        machine.arrive(tied[1])


def test_one_and_true_are_two_values_and_the_order_of_fields_is_none() -> None:
    one, true = Record("events", "a", {"v": 1, "n": 0}, 4), Record("events", "a", {"v": True, "n": 0}, 4)
    for name in NAMES:
        assert played(reference(name), {}, [one, true])[1] == "refused"
        assert played(reference(name), {}, [one, one._replace(value={"n": 0, "v": 1})])[1] != "refused"
    for options in ({}, {"track": ["v"]}):
        outcome = played(reference("scd2"), options, [one, true._replace(timestamp=6)])
        assert [*outcome[1]] == [("a", (4, 6)), ("a", (6, OPEN))]
        assert is_consistent(outcome)


def test_a_value_without_a_field_is_refused() -> None:
    for definition in (Scd1(sequence_by="seq"), Scd1(columns=("v",)), Scd2(track=("v",)), Scd1(deletes={"op": "D"})):
        with pytest.raises(BadInput, match=r"has no field|is not an object"):
            definition.check(Record("events", "a", {"x": 1}, 0))
    with pytest.raises(BadInput, match="the sequence is a whole number"):
        Scd1(sequence_by="seq").check(Record("events", "a", {"seq": None}, 0))


@st.composite
def sets_of_events(draw: st.DrawFn, name: str, profile: str) -> tuple[Mapping[str, Any], list[Record]]:
    options = {key: of for key, of in profiles_of(name)[profile].items() if key != "tombstone_ms"}  # none is late
    return options, drawn(draw(st.randoms(use_true_random=False)), options)


@pytest.mark.parametrize(("name", "profile"), CASES)
@settings(max_examples=30)
@given(data=st.data())
def test_order_repeats_and_cuts_leave_the_table_alone(name: str, profile: str, data: st.DataObject) -> None:
    options, records = data.draw(sets_of_events(name, profile))
    operator = reference_of[name]
    again = data.draw(st.permutations([*records, *data.draw(st.lists(st.sampled_from(records), max_size=3))]))
    outcome, other = played(operator, options, records), played(operator, options, again)
    assert is_consistent(outcome)
    assert is_consistent(other)
    assert outcome[1] == other[1]


@pytest.mark.parametrize("profile", profiles_of("scd2"))
@settings(max_examples=30)
@given(data=st.data())
def test_intervals_neither_overlap_nor_leave_gaps_but_for_deletes(profile: str, data: st.DataObject) -> None:
    options, records = data.draw(sets_of_events("scd2", profile))
    definition: Scd2 = reference_of["scd2"].declare(options)
    _, table = played(reference_of["scd2"], options, records)
    events = [definition.event(one) for one in records if one.key is not None and not definition.is_nothing(one)]
    by_key = defaultdict(list)
    for key, window in table:
        by_key[key].append(window)
    for key, windows in by_key.items():
        deletes = {event.sequence for event in events if event.key == key and event.row is None}
        assert all(start < end for start, end in windows)
        assert all(one[1] == two[0] or one[1] in deletes for one, two in pairwise(windows))
        assert all(one[1] <= two[0] for one, two in pairwise(windows))
        assert sum(end == OPEN for _, end in windows) <= 1
        assert windows[-1][1] == OPEN or windows[-1][1] in deletes
    _, newest = played(reference("scd1"), {name: of for name, of in options.items() if name != "track"}, records)
    current = {key: value for (key, window), (value, _) in table.items() if window is not None and window[1] == OPEN}
    assert current == {key: value for (key, _), (value, _) in newest.items()}


def test_late_records_are_dropped_and_other_reasons_have_names() -> None:
    records = [Record("events", None, 1, 0), Record("events", "a", None, 0)]
    outputs, _ = played(reference("scd1"), {"sequence_by": "seq"}, records)
    assert outputs == [Dropped(None, "null key"), Dropped("a", "null value")]
    assert played(reference("scd2"), {}, [Record("events", "a", 1, 3)])[0] == [Change("a", (3, OPEN), 1, 3)]


OF_BOTH: Mapping[str, tuple[str, str]] = {
    "the oldest event counts": ("newest = max(", "newest = min("),
    "ties are decided by arrival": (
        "key=lambda event: (event.sequence, event.order)",
        "key=lambda event: event.sequence",
    ),
    "ties are not refused": ("if event[:3] == newest[:3] and event.row != newest.row", "if False"),
    "repeats are refused": ("and event.row != newest.row", "and event is not newest"),
    "events that ties decide are refused": ("event[:3] == newest[:3]", "event[:2] == newest[:2]"),
    "records are never late": ("return 0 if self.tombstone_ms is None else clock - self.tombstone_ms", "return 0"),
    "records are late too soon": ("else clock - self.tombstone_ms", "else clock - self.tombstone_ms + 1"),
    "records are late too late": ("else clock - self.tombstone_ms", "else clock - self.tombstone_ms - 1"),
    "a null value needs a sequence": ("return record.value is None and (", "return False and ("),
    "the timestamp is the sequence": (
        "record.timestamp if self.sequence_by is None else",
        "record.timestamp if True else",
    ),
    "ties are not read": ("order = 0 if self.ties is None", "order = 0 if True"),
    "deletes are not read": ("self.deletes is not None and any", "False and any"),
    "all but deletes delete": ('"the kind of the change") == of_delete', '"the kind of the change") != of_delete'),
    "null values don't delete": ("        if value is None:\n            return None\n", ""),
    "all columns are kept": ("kept = value if self.columns is None else", "kept = value if True else"),
    "null keys are taken": ("if record.key is None:", "if False:"),
    "null values delete": ("if self.changes.is_nothing(record)", "if False"),
    "late records are taken": ("if record.timestamp < self.changes.edge(self.clock.now)", "if False"),
    "records at the edge are late": (
        "if record.timestamp < self.changes.edge",
        "if record.timestamp <= self.changes.edge",
    ),
    "the clock stands still": ("self.clock.observe(record.timestamp)", "pass"),
}
MUTANTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "scd1": {
        "the order counts before the sequence": ("(event.sequence, event.order)", "(event.order, event.sequence)"),
        "deleted keys stay": ("if event.row is not None}", "if True}"),
        "all keys are one": ("by_key[event.key].append", "by_key[None].append"),
        "the timestamp is none": ("(event.value, event.sequence) for", "(event.value, 0) for"),
        "the last arrival counts": ("event if old is None else decisive([old, event])", "event"),
        "the first arrival counts": ("event if old is None else decisive([old, event])", "old or event"),
        "the record's timestamp is emitted": ("newest.value, newest.sequence)]", "newest.value, record.timestamp)]"),
        "repeats are emitted": ("if newest is old or (", "if ("),
        "deletes are not emitted": ("newest.row is None and (old is None or old.row is None)", "newest.row is None"),
        "deletes of nothing are emitted": ("if newest is old or (newest.row is None", "if newest is old or (False"),
        "a second delete is emitted": ("(old is None or old.row is None)", "old is None"),
        "tombstones are not kept": ("one.row is not None or one.sequence >= edge", "one.row is not None"),
        "rows are forgotten": ("one.row is not None or one.sequence >= edge", "one.sequence >= edge"),
    },
    "scd2": {
        "all versions are one": ("tracked(before.row) == tracked(row)", "True"),
        "each event is a version": ("tracked(before.row) == tracked(row)", "False"),
        "all columns are tracked": ("if self.track is None:", "if True:"),
        "a version keeps its first row": ("found[key][-1] = before._replace(row=row)", "pass"),
        "a version starts with its last event": ("_replace(row=row)", "_replace(row=row, start=sequence)"),
        "intervals overlap": ("_replace(end=sequence)", "_replace(end=sequence + 1)"),
        "versions are not closed": ("_replace(end=sequence)", "_replace(end=None)"),
        "deletes close nothing": ("if before is not None:\n", "if before is not None and row is not None:\n"),
        "deletes are versions": ("[] if row is None else [", "["),
        "the order is that of arrival": ("for sequence in sorted(of_key)", "for sequence in of_key"),
        "the order is reversed": ("in sorted(of_key)", "in sorted(of_key, reverse=True)"),
        "a deleted version goes on": ("last[0] if last and last[0].end is None else None", "last[0] if last else None"),
        "all versions are current": ("OPEN if one.end is None else one.end", "OPEN"),
        "all keys are one": ("at[event.key][event.sequence]", "at[None][event.sequence]"),
        "the timestamp is the end": ("(one.row.value, one.start) for", "(one.row.value, one.end) for"),
        "old versions are not deleted": ("return [*gone, *(", "return [*("),
        "new versions come before tombstones": ("return [*gone, *(", "return [*reversed(gone), *("),
        "repeats are emitted": ("if before.get(row) != one", "if True"),
        "deletes are forgotten": ("if event in self.events[record.key]", "if event.row is None"),
        "older events are forgotten": (
            "if event in self.events[record.key]",
            "if any(event.sequence < one.sequence for one in self.events[record.key])",
        ),
    },
}
reference_of = {name: reference(name) for name in NAMES}
FOUND = {name: [(one, played(reference_of[name], *one)) for one in histories(name, 10)] for name in NAMES}


def test_each_reference_has_at_least_twenty_mutants() -> None:
    assert all(len(OF_BOTH) + len(of) >= 20 for of in MUTANTS.values())


@pytest.mark.parametrize(
    ("name", "mutant"), [(name, mutant) for name in NAMES for mutant in (*OF_BOTH, *MUTANTS[name])]
)
def test_every_mutant_is_killed_in_ten_histories(name: str, mutant: str) -> None:
    operator = reference(name, {**OF_BOTH, **MUTANTS[name]}[mutant])
    assert any(played(operator, *one) != outcome for one, outcome in FOUND[name])


def test_the_histories_of_the_mutants_are_consistent() -> None:
    assert all(is_consistent(outcome) for of_name in FOUND.values() for _, outcome in of_name)
    refused = [outcome[1] == "refused" for of_name in FOUND.values() for _, outcome in of_name]
    assert 0 < sum(refused) < len(refused) / 3
