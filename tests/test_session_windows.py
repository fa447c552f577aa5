from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.properties.draws import Shape, declarations, draw_histories, histories
from streamproof.properties.laws import fold_is_meaning, one_key, repeated_twice, same_for_key, same_table, variants_of
from streamproof.properties.outcomes import Grain, Outcome, canonical
from streamproof.reference.aggregates import Aggregate, reduce
from streamproof.reference.clocks import Clock, StreamTime, make_clock
from streamproof.reference.errors import BadInput
from streamproof.reference.histories import CUT, Heartbeat, History, Line
from streamproof.reference.operators import operator_named
from streamproof.reference.play import play
from streamproof.reference.records import Accepted, Change, Dropped, Key, Output, Record, fold
from streamproof.reference.session_store import Session, SessionStore
from streamproof.reference.session_windows import Behaviour, meaning
from streamproof.reference.windows import SessionWindows

Machine: TypeAlias = Callable[[SessionWindows, Clock], Behaviour]


# Histories and changelogs as one writes them on a blackboard.


def lines_of(text: str) -> list[Line]:
    """`k@5` is a record of key k at 5, `k=v@5` has a value, `-@5` no key; `~5` is a heartbeat, `|` a cut."""
    lines: list[Line] = []
    for word in text.split():
        if word == "|":
            lines.append(CUT)
        elif word.startswith("~"):
            lines.append(Heartbeat(int(word[1:])))
        else:
            who, timestamp = word.split("@")
            key, _, value = who.partition("=")
            given_value = int(value) if value.isdigit() else None if value == "null" else value
            lines.append(Record("events", None if key == "-" else key, given_value, int(timestamp)))
    return lines


def history_of(text: str, clock: str = "stream_time", **options: Any) -> History:
    return History("session_windows", {"gap_ms": 10, **options}, tuple(lines_of(text)), clock)


def shown(output: Output) -> str:
    match output:
        case Dropped(key, reason):
            return f"{key or '-'} dropped: {reason}"
        case Change(key, (start, end), value, _):
            value = ",".join(map(str, value)) if isinstance(value, list) else value
            return f"{key}[{start},{end}]={'∅' if value is None else value}"
    raise AssertionError(output)


def changelog(text: str, clock: str = "stream_time", **options: Any) -> str:
    return " ".join(shown(entry.output) for entry in play(history_of(text, clock, **options)).entries)


def timed(text: str, clock: str = "stream_time", **options: Any) -> list[tuple[int, int, str]]:
    return [
        (entry.arrival, entry.batch, shown(entry.output)) for entry in play(history_of(text, clock, **options)).entries
    ]


def declared(text: str, windows: SessionWindows) -> str:
    """The changelog under a declaration that no history file can tell: an aggregate of one's own."""
    machine, told = Behaviour(windows, StreamTime()), []
    for line in lines_of(text):
        assert isinstance(line, Record)
        told += machine.arrive(line)
    return " ".join(map(shown, told))


# What Kafka Streams does (facts/kafka_streams): gap 10.


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("k=a@0 k=b@10 k=c@21", "k[0,0]=a k[0,0]=∅ k[0,10]=a,b k[21,21]=c"),
        ("k=a@0 k=b@20 k=c@10", "k[0,0]=a k[20,20]=b k[0,0]=∅ k[20,20]=∅ k[0,20]=a,b,c"),
        ("k=a@0 k=b@10 k=c@5", "k[0,0]=a k[0,0]=∅ k[0,10]=a,b k[0,10]=∅ k[0,10]=a,b,c"),
        ("k=a@0 k=b@0", "k[0,0]=a k[0,0]=a,b"),
        ("k=a@20 k=b@0 k=c@10", "k[20,20]=a k[0,0]=b k[0,0]=∅ k[20,20]=∅ k[0,20]=b,a,c"),
    ],
    ids=["exactly a gap apart", "a bridge", "inside a session", "the same instant again", "merge in session order"],
)
def test_the_changelog_is_the_one_that_kafka_streams_gives(arrivals: str, expected: str) -> None:
    assert changelog(arrivals, grace_ms=100, aggregate="list") == expected


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ("k@0 k@10", "k[0,0]=1 k[0,0]=∅ k[0,10]=2"),
        ("k@0 k@11", "k[0,0]=1 k[11,11]=1"),
        ("k@11 k@0", "k[11,11]=1 k[0,0]=1"),
        ("k@10 k@0", "k[10,10]=1 k[10,10]=∅ k[0,10]=2"),
        ("k@0 k@10 k@20 k@30", "k[0,0]=1 k[0,0]=∅ k[0,10]=2 k[0,10]=∅ k[0,20]=3 k[0,20]=∅ k[0,30]=4"),
        ("k@0 k@11 k@5", "k[0,0]=1 k[11,11]=1 k[0,0]=∅ k[11,11]=∅ k[0,11]=3"),
        ("k@0 k@20 k@9", "k[0,0]=1 k[20,20]=1 k[0,0]=∅ k[0,9]=2"),
        ("k@0 k@20 k@11", "k[0,0]=1 k[20,20]=1 k[20,20]=∅ k[11,20]=2"),
        ("k@0 k@10 k@0", "k[0,0]=1 k[0,0]=∅ k[0,10]=2 k[0,10]=∅ k[0,10]=3"),
        ("k@0 k@10 k@10", "k[0,0]=1 k[0,0]=∅ k[0,10]=2 k[0,10]=∅ k[0,10]=3"),
        ("a@0 b@0 a@10", "a[0,0]=1 b[0,0]=1 a[0,0]=∅ a[0,10]=2"),
    ],
)
def test_records_no_more_than_a_gap_apart_share_a_session(arrivals: str, expected: str) -> None:
    assert changelog(arrivals, grace_ms=100) == expected


def test_a_change_carries_its_windows_end_and_a_tombstone_the_old_windows() -> None:
    changes = [entry.output for entry in play(history_of("k@0 k@20 k@10", grace_ms=100)).entries]
    assert changes == [
        Change("k", (0, 0), 1, 0),
        Change("k", (20, 20), 1, 20),
        Change("k", (0, 0), None, 0),
        Change("k", (20, 20), None, 20),
        Change("k", (0, 20), 3, 20),
    ]


def test_an_out_of_order_record_leaves_the_timestamp_at_the_windows_end() -> None:
    assert play(history_of("k@10 k@0", grace_ms=100)).result == {("k", (0, 10)): (2, 10)}


def test_a_null_key_is_dropped() -> None:
    assert changelog("-=x@0") == "- dropped: null key"


@pytest.mark.parametrize("clock", ["stream_time", "batch"])
def test_a_null_key_moves_no_clock(clock: str) -> None:
    assert changelog("k@0 | -@100 | k@0", clock) == "k[0,0]=1 - dropped: null key k[0,0]=2"


def test_a_null_value_is_counted() -> None:
    assert changelog("k=null@0 k=null@5") == "k[0,0]=1 k[0,0]=∅ k[0,5]=2"


def test_an_empty_string_is_a_key_like_any_other() -> None:
    history = history_of("").with_lines([Record("events", "", "x", 0), Record("events", "", "x", 1)])
    assert play(history).result == {("", (0, 1)): (2, 1)}


# What is late.


@pytest.mark.parametrize(
    ("arrivals", "options", "expected"),
    [
        ("k@0 z@10 k@0", {}, "k[0,0]=1 z[10,10]=1 k[0,0]=2"),
        ("k@0 z@11 k@0", {}, "k[0,0]=1 z[11,11]=1 k dropped: late"),
        ("k@0 z@15 k@0", {"grace_ms": 5}, "k[0,0]=1 z[15,15]=1 k[0,0]=2"),
        ("k@0 z@16 k@0", {"grace_ms": 5}, "k[0,0]=1 z[16,16]=1 k dropped: late"),
        ("z@11 k@0", {}, "z[11,11]=1 k dropped: late"),
        ("z@10 k@0", {}, "z[10,10]=1 k[0,0]=1"),
        ("k@0 k@11 k@0", {}, "k[0,0]=1 k[11,11]=1 k dropped: late"),
        ("~11 k@0", {}, "k dropped: late"),
    ],
)
def test_a_record_is_late_when_its_session_ends_before_the_clock_less_gap_and_grace(
    arrivals: str, options: dict[str, Any], expected: str
) -> None:
    assert changelog(arrivals, **options) == expected


def test_lateness_is_that_of_the_merged_session_so_a_live_one_rescues_an_old_record() -> None:
    assert changelog("k@10 z@20 k@0") == "k[10,10]=1 z[20,20]=1 k[10,10]=∅ k[0,10]=2"


def test_a_rescued_record_may_rescue_another() -> None:
    assert changelog("k@20 z@30 k@10 k@0") == ("k[20,20]=1 z[30,30]=1 k[20,20]=∅ k[10,20]=2 k[10,20]=∅ k[0,20]=3")


def test_a_record_out_of_the_live_sessions_reach_is_not_rescued() -> None:
    assert changelog("k@20 z@30 k@9") == "k[20,20]=1 z[30,30]=1 k dropped: late"


def test_another_keys_session_rescues_nothing() -> None:
    assert changelog("j@10 z@20 k@0") == "j[10,10]=1 z[20,20]=1 k dropped: late"


def test_a_dropped_record_leaves_no_trace() -> None:
    assert changelog("z@21 k@10 k@20") == "z[21,21]=1 k dropped: late k[20,20]=1"


def test_own_lateness_drops_a_record_that_the_merged_session_would_rescue() -> None:
    assert changelog("k@10 z@20 k@9", late="own") == "k[10,10]=1 z[20,20]=1 k dropped: late"


def test_own_lateness_takes_a_record_exactly_on_the_edge() -> None:
    assert changelog("k@10 z@20 k@10", late="own") == "k[10,10]=1 z[20,20]=1 k[10,10]=2"


@pytest.mark.parametrize("late", ["merged", "own"])
def test_within_a_batch_nothing_is_late_under_the_batch_clock(late: str) -> None:
    assert changelog("z@1000 k@0", "batch", late=late) == "z[1000,1000]=1 k[0,0]=1"


def test_after_the_cut_the_batch_clock_makes_records_late() -> None:
    assert changelog("z@1000 | k@0", "batch") == "z[1000,1000]=1 k dropped: late"


def test_a_heartbeat_moves_the_batch_clock_at_the_cut_only() -> None:
    assert changelog("~1000 k@0 | k@0", "batch") == "k[0,0]=1 k dropped: late"


def test_a_cut_means_nothing_to_stream_time() -> None:
    assert changelog("k@0 | | k@10 | k@20", grace_ms=5) == changelog("k@0 k@10 k@20", grace_ms=5)


# Entries of the bug museum: what is right.


@pytest.mark.parametrize(
    ("arrivals", "gap", "expected"),
    [
        ("k@0 other@5 k@0", 5, "k[0,0]=1 other[5,5]=1 k[0,0]=2"),
        ("k@0 other@6 k@0", 5, "k[0,0]=1 other[6,6]=1 k dropped: late"),
        ("a@0 z@5 a@3", 10, "a[0,0]=1 z[5,5]=1 a[0,0]=∅ a[0,3]=2"),
        (
            "mel@0 mel@300001 mel@150000",
            300_000,
            "mel[0,0]=1 mel[300001,300001]=1 mel[300001,300001]=∅ mel[150000,300001]=2",
        ),
        (
            "mel@10000000 mel@10300001 mel@10150000",
            300_000,
            "mel[10000000,10000000]=1 mel[10300001,10300001]=1 mel[10300001,10300001]=∅ mel[10150000,10300001]=2",
        ),
        ("k@0 o@5 k@0", 5, "k[0,0]=1 o[5,5]=1 k[0,0]=2"),
        ("k@1000000 o@1000005 k@1000000", 5, "k[1000000,1000000]=1 o[1000005,1000005]=1 k[1000000,1000000]=2"),
        ("k@0 j@10 k@0", 10, "k[0,0]=1 j[10,10]=1 k[0,0]=2"),
    ],
    ids=["12 on the edge", "12 past it", "13", "16", "17", "17b", "17b far from 0", "a defect of Kafka Streams"],
)
def test_the_museums_histories_have_the_right_answer(arrivals: str, gap: int, expected: str) -> None:
    assert changelog(arrivals, gap_ms=gap) == expected


def test_a_session_is_not_finalised_before_gap_and_grace_are_over() -> None:
    assert changelog("a@0 z@1 z@10", emit="close") == ""


# Emit on close: the final value alone, once.


def test_a_session_is_told_by_the_record_that_closes_it() -> None:
    assert timed("a@0 a@5 z@15 z@16", emit="close") == [(3, 0, "a[0,5]=2")]


def test_a_session_is_not_told_on_its_edge() -> None:
    assert changelog("a@0 z@10", emit="close") == ""


def test_a_heartbeat_closes_sessions() -> None:
    assert timed("a@0 ~10 ~11", emit="close") == [(2, 0, "a[0,0]=1")]


def test_closing_results_come_by_end_and_then_by_key() -> None:
    assert changelog("b@1 a@1 c@0 d@2 ~100", emit="close") == "c[0,0]=1 a[1,1]=1 b[1,1]=1 d[2,2]=1"


def test_a_record_tells_what_it_closes_before_it_is_dropped() -> None:
    assert changelog("a@0 ~10 b@100 c@0", emit="close") == "a[0,0]=1 c dropped: late"


def test_under_the_batch_clock_a_cut_tells_what_it_closes_with_the_batch_that_follows() -> None:
    assert timed("a@0 z@11 | z@11 | z@11", "batch", emit="close") == [(2, 1, "a[0,0]=1")]


def test_the_end_of_the_history_moves_the_batch_clock_once_more() -> None:
    assert timed("a@0 | z@11", "batch", emit="close") == [(1, 1, "a[0,0]=1")]


def test_at_the_end_what_is_open_stays_open() -> None:
    assert changelog("a@0 | a@5", "batch", emit="close") == ""


@pytest.mark.parametrize("clock", ["stream_time", "batch"])
def test_each_session_is_told_once(clock: str) -> None:
    assert changelog("a@0 | ~11 | ~12 | ~50 | ~1000", clock, emit="close", retention_ms=500) == "a[0,0]=1"


def test_a_merged_session_is_told_and_its_parts_are_not() -> None:
    assert changelog("a@0 a@20 a@10 ~100", emit="close", grace_ms=50) == "a[0,20]=3"


def test_a_session_that_grew_inside_is_told_once_with_all_its_records() -> None:
    assert changelog("a@0 a@5 a@3 a@3 ~100", emit="close") == "a[0,5]=4"


def test_a_table_of_closed_sessions_keeps_two_sessions_of_a_key() -> None:
    assert play(history_of("a@0 a@50 ~100", emit="close")).result == {
        ("a", (0, 0)): (1, 0),
        ("a", (50, 50)): (1, 50),
    }


# A closed session is final.

OVERLAP = "a@0 a@5 z@16 a@15 a@5 ~100"


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_a_closed_session_is_neither_merged_nor_revised_whatever_the_retention(retention: int) -> None:
    assert changelog(OVERLAP, retention_ms=retention) == (
        "a[0,0]=1 a[0,0]=∅ a[0,5]=2 z[16,16]=1 a[15,15]=1 a[15,15]=∅ a[5,15]=2"
    )


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_beside_a_closed_session_a_new_one_is_told_with_its_own_records(retention: int) -> None:
    assert timed(OVERLAP, retention_ms=retention, emit="close") == [
        (2, 0, "a[0,5]=2"),
        (5, 0, "a[5,15]=2"),
        (5, 0, "z[16,16]=1"),
    ]


@pytest.mark.parametrize("retention", [10, 11, 1000])
def test_own_lateness_lets_nothing_into_a_closed_session(retention: int) -> None:
    assert changelog(OVERLAP, retention_ms=retention, late="own") == (
        "a[0,0]=1 a[0,0]=∅ a[0,5]=2 z[16,16]=1 a[15,15]=1 a dropped: late"
    )


@pytest.mark.parametrize("retention", [10, 1000])
def test_a_record_that_would_bridge_a_closed_session_and_an_open_one_joins_the_open_one(retention: int) -> None:
    assert changelog("a@0 a@12 a@6", retention_ms=retention) == "a[0,0]=1 a[12,12]=1 a[12,12]=∅ a[6,12]=2"


@pytest.mark.parametrize("retention", [10, 1000])
def test_the_meaning_too_leaves_closed_sessions_alone(retention: int) -> None:
    history = history_of(OVERLAP, retention_ms=retention)
    played = play(history)
    windows = SessionWindows(10, retention_ms=retention)
    assert meaning(windows, played.accepted, played.clock) == {
        ("a", (0, 5)): (2, 5),
        ("a", (5, 15)): (2, 15),
        ("z", (16, 16)): (1, 16),
    }


def test_a_retention_less_than_gap_and_grace_is_refused() -> None:
    with pytest.raises(BadInput, match=r"less than gap \+ grace \(15\)"):
        play(history_of("a@0", grace_ms=5, retention_ms=14))


def test_the_retention_is_no_part_of_the_answer() -> None:
    assert changelog("a@0 a@30 a@15 a@70", grace_ms=20) == changelog(
        "a@0 a@30 a@15 a@70", grace_ms=20, retention_ms=10**9
    )


# Aggregates.


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("count", "k[0,0]=1 k[20,20]=1 k[0,0]=∅ k[20,20]=∅ k[0,20]=3"),
        ("sum", "k[0,0]=5 k[20,20]=2 k[0,0]=∅ k[20,20]=∅ k[0,20]=10"),
        ("min", "k[0,0]=5 k[20,20]=2 k[0,0]=∅ k[20,20]=∅ k[0,20]=2"),
        ("max", "k[0,0]=5 k[20,20]=2 k[0,0]=∅ k[20,20]=∅ k[0,20]=5"),
        ("list", "k[0,0]=5 k[20,20]=2 k[0,0]=∅ k[20,20]=∅ k[0,20]=5,2,3"),
    ],
)
def test_every_aggregate_survives_a_merge_of_three(aggregate: str, expected: str) -> None:
    assert changelog("k=5@0 k=2@20 k=3@10", grace_ms=50, aggregate=aggregate) == expected


AVERAGE = Aggregate(
    "average",
    initializer=lambda: (0, 0),
    aggregator=lambda key, value, total: (total[0] + value, total[1] + 1),
    merger=lambda key, one, two: (one[0] + two[0], one[1] + two[1]),
)


def test_an_aggregate_of_ones_own_is_used() -> None:
    assert declared("k=5@0 k=2@20 k=3@10", SessionWindows(10, 50, aggregate=AVERAGE)) == (
        "k[0,0]=(5, 1) k[20,20]=(2, 1) k[0,0]=∅ k[20,20]=∅ k[0,20]=(10, 3)"
    )


def test_a_reducers_first_value_stands_for_itself() -> None:
    windows = SessionWindows(10, 50, aggregate=reduce(lambda one, two: f"({one}{two})"))
    assert declared("k=a@0 k=b@5", windows) == "k[0,0]=a k[0,0]=∅ k[0,5]=(ab)"


def test_a_reducer_merges_sessions_in_session_order_and_takes_the_new_value_last() -> None:
    windows = SessionWindows(10, 50, aggregate=reduce(lambda one, two: f"({one}{two})"))
    assert declared("k=a@20 k=b@0 k=c@10", windows).endswith("k[0,20]=((ba)c)")


def test_the_aggregator_and_the_merger_get_the_key() -> None:
    keyed = Aggregate(
        "keyed",
        initializer=lambda: "",
        aggregator=lambda key, value, text: f"{text}{key}{value}",
        merger=lambda key, one, two: f"{one}<{key}>{two}",
    )
    assert declared("k=1@0 k=2@5", SessionWindows(10, aggregate=keyed)).endswith("k[0,5]=<k>k1k2")


def test_a_list_told_earlier_does_not_change_afterwards() -> None:
    first = play(history_of("k=a@0 k=b@0", aggregate="list")).entries[0].output
    assert isinstance(first, Change)
    assert first.value == ["a"]


# The meaning.


def accepted(*records: tuple[str, int, int]) -> list[Accepted]:
    return [Accepted(Record("events", key, timestamp, timestamp), clock) for key, timestamp, clock in records]


def test_the_meaning_of_nothing_is_the_empty_table() -> None:
    assert meaning(SessionWindows(10), [], 0) == {}


def test_the_meaning_splits_a_keys_records_at_gaps() -> None:
    taken = accepted(("a", 0, 0), ("a", 10, 10), ("a", 21, 21), ("b", 5, 21))
    assert meaning(SessionWindows(10, 100), taken, 21) == {
        ("a", (0, 10)): (2, 10),
        ("a", (21, 21)): (1, 21),
        ("b", (5, 5)): (1, 5),
    }


def test_the_meaning_under_close_has_the_closed_sessions_alone() -> None:
    taken = accepted(("a", 0, 0), ("a", 21, 21))
    assert meaning(SessionWindows(10, emit="close"), taken, 31) == {("a", (0, 0)): (1, 0)}


def test_the_meaning_does_not_depend_on_the_order_of_keys_that_come_in_turns() -> None:
    taken = accepted(("a", 0, 0), ("b", 0, 0), ("a", 5, 5), ("b", 5, 5))
    assert meaning(SessionWindows(10), taken, 5) == meaning(SessionWindows(10), taken[::-1], 5)


# The laws, each a question that a history answers with yes or no. All work on any behaviour, so that seeded bugs can be
# put before them.


class Step(NamedTuple):
    """What has been told and taken after one line, and where the clock then stands."""

    line: Line | None
    told: list[Output]
    changes: list[Output]
    accepted: list[Accepted]
    before: int
    clock: int


def walk(history: History, machine: Machine = Behaviour) -> Iterator[Step]:
    """Play a history line by line; the end is one more cut."""
    clock = make_clock(history.clock)
    behaviour = machine(declaration(history), clock)
    changes: list[Output] = []
    taken: list[Accepted] = []
    for line in [*history.lines, None]:
        before = clock.now
        match line:
            case Record():
                told = behaviour.arrive(line)
                if not any(isinstance(output, Dropped) for output in told):
                    taken.append(Accepted(line, clock.now))
            case Heartbeat(timestamp):
                clock.observe(timestamp)
                told = behaviour.advance()
            case _:
                clock.cut()
                told = behaviour.advance()
        changes += told
        yield Step(line, told, changes, taken, before, clock.now)


def declaration(history: History) -> SessionWindows:
    windows: SessionWindows = operator_named(history.operator).declare(history.options)
    return windows


def folds_to_the_meaning(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    bag = windows.aggregate.ordered
    return all(
        canonical(fold(step.changes), bag) == canonical(meaning(windows, step.accepted, step.clock), bag)
        for step in walk(history, machine)
    )


def drops_exactly_what_is_late(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    watched = SessionWindows(windows.gap_ms, windows.grace_ms)
    taken: list[Accepted] = []
    for step in walk(history, machine):
        if isinstance(step.line, Record) and step.line.key is not None:
            record, edge = step.line, windows.close_edge(step.clock)
            end = record.timestamp
            if windows.late == "merged":
                for key, window in meaning(watched, taken, step.clock):
                    assert window is not None
                    start, last = window
                    within = start - windows.gap_ms <= record.timestamp <= last + windows.gap_ms
                    if key == record.key and last >= edge and within:
                        end = max(end, last)
            if (end < edge) != (Dropped(record.key, "late") in step.told):
                return False
            if end >= edge:
                taken.append(Accepted(record, step.clock))
    return True


def final(history: History, machine: Machine = Behaviour) -> Outcome:
    return Outcome.of_play(history.name, play(history, machine))


def variant(history: History, law: str) -> History:
    generator = random.Random(len(history.lines))
    return next(one.history for one in variants_of(history, generator.shuffle, generator.randint) if one.law == law)


def order_plays_no_part(history: History, machine: Machine = Behaviour) -> bool:
    return not same_table("h", final(history, machine), final(variant(history, "order"), machine))


def cuts_play_no_part(history: History, machine: Machine = Behaviour) -> bool:
    return not same_table("h", final(history, machine), final(variant(history, "cuts"), machine))


def repeats_count_again(history: History, machine: Machine = Behaviour) -> bool:
    return not repeated_twice("h", final(history, machine), final(variant(history, "repeats"), machine))


def keys_are_independent(history: History, machine: Machine = Behaviour) -> bool:
    def by_batch(one: History) -> Outcome:
        return Outcome("h", Grain.BATCH, play(one, machine).entries)

    keys = {record.key for record in history.records if record.key is not None}
    whole = by_batch(history)
    return not any(same_for_key("h", key, whole, by_batch(one_key(history, key).history)) for key in keys)


def closed_is_final(history: History, machine: Machine = Behaviour) -> bool:
    """Under update nothing is told of a closed session, under close nothing of an open one, and nothing twice."""
    windows = declaration(history)
    times: Counter[tuple[Key, Any]] = Counter()
    for step in walk(history, machine):
        for change in step.told:
            if isinstance(change, Dropped):
                continue
            closed = change.timestamp < windows.close_edge(step.clock)
            if closed != (windows.emit == "close"):
                return False
            times[change.key, change.window] += windows.emit == "close"
            if times[change.key, change.window] > 1 or (closed and change.value is None):
                return False
    return True


def closing_is_in_order(history: History, machine: Machine = Behaviour) -> bool:
    """Under close, what one step tells comes by end and then by key."""
    for step in walk(history, machine):
        order = [(change.timestamp, change.key) for change in step.told if isinstance(change, Change)]
        if order != sorted(order):
            return False
    return True


def closed_is_told_at_once(history: History, machine: Machine = Behaviour) -> bool:
    """Under close, what a step tells was open before it, or the clock would have told it earlier."""
    windows = declaration(history)
    return all(
        change.timestamp >= windows.close_edge(step.before)
        for step in walk(history, machine)
        for change in step.told
        if isinstance(change, Change)
    )


def open_sessions_lie_apart(history: History, machine: Machine = Behaviour) -> bool:
    windows = declaration(history)
    for step in walk(history, machine):
        open_sessions = sorted(
            (key, window)
            for key, window in fold(step.changes)
            if window is not None and window[1] >= windows.close_edge(step.clock)
        )
        for (key, one), (next_key, two) in pairwise(open_sessions):
            if key == next_key and two[0] - one[1] <= windows.gap_ms:
                return False
    return True


def every_accepted_record_counts_once(history: History, machine: Machine = Behaviour) -> bool:
    return all(
        sum(count for count, _ in fold(step.changes).values()) == len(step.accepted) for step in walk(history, machine)
    )


# The laws hold. Histories come from the moves of properties.draws, and free-form: any line after any other.

SCHEDULE = (20, 45, 45, 90, 140)
KEYS = ("a", "ab", "b")
QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)
THOROUGH = settings(QUIET, max_examples=60)


@st.composite
def free_form(draw: st.DrawFn, /, **fixed: Any) -> History:
    options = {**draw(declarations()), **fixed}
    extra = draw(st.sampled_from([None, 0, 1, 1000]))
    if extra is not None:
        options["retention_ms"] = options["gap_ms"] + options["grace_ms"] + extra
    key = st.sampled_from(["a", "a", "a", "ab", "b", None])
    record = st.builds(Record, st.just("events"), key, st.integers(0, 3), st.integers(0, 60))
    line = st.one_of(record, record, record, record, st.builds(Heartbeat, st.integers(0, 80)), st.just(CUT))
    lines = draw(st.lists(line, max_size=16))
    return History("session_windows", options, tuple(lines), draw(st.sampled_from(["stream_time", "batch"])))


def drawn(**fixed: Any) -> st.SearchStrategy[History]:
    return declarations().flatmap(lambda options: histories(Shape({**options, **fixed}, SCHEDULE, 16, KEYS)))


def either(**fixed: Any) -> st.SearchStrategy[History]:
    return drawn(**fixed) | free_form(**fixed)


@THOROUGH
@given(either())
def test_the_behaviour_folds_to_the_meaning_after_every_step(history: History) -> None:
    assert folds_to_the_meaning(history)


@QUIET
@given(either())
def test_exactly_the_late_records_are_dropped(history: History) -> None:
    assert drops_exactly_what_is_late(history)


@QUIET
@given(drawn(grace_ms=1000))
def test_the_order_of_arrival_plays_no_part_when_nothing_is_late(history: History) -> None:
    assert order_plays_no_part(history)


@QUIET
@given(drawn(grace_ms=1000))
def test_cuts_play_no_part_when_nothing_is_late(history: History) -> None:
    assert cuts_play_no_part(history)


@QUIET
@given(drawn(grace_ms=1000, aggregate="list"))
def test_repeats_count_again(history: History) -> None:
    assert repeats_count_again(history)


@QUIET
@given(drawn())
def test_keys_are_independent_under_heartbeats(history: History) -> None:
    assert keys_are_independent(history)


@QUIET
@given(either())
def test_a_closed_session_is_final(history: History) -> None:
    assert closed_is_final(history)


@QUIET
@given(either(emit="close"))
def test_closing_is_always_in_order(history: History) -> None:
    assert closing_is_in_order(history)


@QUIET
@given(either(emit="close"))
def test_a_closed_session_is_told_at_once(history: History) -> None:
    assert closed_is_told_at_once(history)


@QUIET
@given(either(emit="update"))
def test_sessions_open_at_the_same_time_lie_more_than_a_gap_apart(history: History) -> None:
    assert open_sessions_lie_apart(history)


@QUIET
@given(either(emit="update", aggregate="count"))
def test_every_accepted_record_is_counted_exactly_once(history: History) -> None:
    assert every_accepted_record_counts_once(history)


@QUIET
@given(either(emit="update", late="merged"))
def test_what_is_told_on_close_is_what_updates_come_to(history: History) -> None:
    closing = History(history.operator, {**history.options, "emit": "close"}, history.lines, history.clock)
    updated, closed = play(history), play(closing)
    edge = declaration(history).close_edge(updated.clock)
    assert closed.result == {row: at for row, at in updated.result.items() if at[1] < edge}


@QUIET
@given(either())
def test_the_retention_changes_nothing(history: History) -> None:
    longer = History(history.operator, {**history.options, "retention_ms": 10**6}, history.lines, history.clock)
    assert play(history).entries == play(longer).entries


@QUIET
@given(either())
def test_playing_twice_gives_the_same(history: History) -> None:
    assert play(history) == play(history)


@QUIET
@given(drawn())
def test_own_lateness_never_takes_what_the_merged_one_drops_at_first(history: History) -> None:
    def first_dropped(late: str) -> int:
        options = {**history.options, "late": late}
        entries = play(History(history.operator, options, history.lines, history.clock)).entries
        return next((entry.arrival for entry in entries if isinstance(entry.output, Dropped)), len(history.lines))

    assert first_dropped("own") <= first_dropped("merged")


def connected(timestamps: Sequence[int], gap: int) -> set[tuple[int, int]]:
    """The windows of the connected components of `no more than a gap apart`, found by spreading."""
    left, windows = set(timestamps), set()
    while left:
        component, frontier = set(), {left.pop()}
        while frontier:
            component |= frontier
            frontier = {other for other in left if any(abs(other - one) <= gap for one in frontier)}
            left -= frontier
        windows.add((min(component), max(component)))
    return windows


@QUIET
@given(st.lists(st.integers(0, 100)), st.integers(1, 12))
def test_when_nothing_is_late_sessions_are_the_connected_components(timestamps: list[int], gap: int) -> None:
    history = history_of(" ".join(f"k@{timestamp}" for timestamp in timestamps), gap_ms=gap, grace_ms=1000)
    assert {window for _, window in play(history).result} == connected(timestamps, gap)


@QUIET
@given(st.lists(st.integers(0, 60), min_size=1), st.integers(0, 1000))
def test_the_answer_moves_with_the_origin_of_time(timestamps: list[int], shift: int) -> None:
    def told(by: int) -> list[Output]:
        return [entry.output for entry in play(history_of(" ".join(f"k@{at + by}" for at in timestamps))).entries]

    def moved(output: Output) -> Output:
        if isinstance(output, Dropped) or output.window is None:
            return output
        start, end = output.window
        return output._replace(window=(start + shift, end + shift), timestamp=output.timestamp + shift)

    assert told(shift) == [moved(output) for output in told(0)]


# Seeded bugs: each law is seen to catch one of its own.


class Kept(SessionStore):
    """A store that a bug can be put into."""

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(windows.retention_ms)
        self.windows = windows


class ExclusiveGap(Kept):
    """A record exactly one gap away starts a session of its own."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end + 1, latest_start - 1)


class LooksOnlyBack(Kept):
    """Sessions after an out-of-order record aren't found."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end, latest_start - self.windows.gap_ms)


class MergesOneNeighbour(Kept):
    """A bridge joins the first session and leaves the second."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end, latest_start)[:1]


class ForgetsToRemove(Kept):
    """Merged sessions stay in the store."""

    def remove(self, key: Key, session: Session) -> None:
        pass


class KeysByFirstLetter(Kept):
    """Keys that begin alike share their sessions."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key[:1], earliest_end, latest_start)

    def put(self, key: Key, session: Session) -> bool:
        return super().put(key[:1], session)

    def remove(self, key: Key, session: Session) -> None:
        super().remove(key[:1], session)


class RevisesTheClosed(Kept):
    """Closed sessions that are still stored are merged."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, min(earliest_end, latest_start - 2 * self.windows.gap_ms), latest_start)


class HidesOneTickEarly(Kept):
    """A session that ends exactly where the search begins is invisible, one on the close edge too."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return [session for session in super().fetch(key, earliest_end, latest_start) if session.end > earliest_end]


class ForgetsTombstones(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        return [output for output in super().arrive(record) if isinstance(output, Dropped) or output.value is not None]


class TombstonesLast(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        return super().arrive(record)[::-1]


class LateAlone(Behaviour):
    """The record alone is tested, whatever the declaration says."""

    def arrive(self, record: Record) -> list[Output]:
        if record.key is not None:
            self.clock.observe(record.timestamp)
            if record.timestamp < self.windows.close_edge(self.clock.now):
                return [*self.advance(), Dropped(record.key, "late")]
        return super().arrive(record)


class TakesTheLate(Behaviour):
    """Nothing is ever dropped as late: the record starts a session of its own."""

    def arrive(self, record: Record) -> list[Output]:
        outputs = super().arrive(record)
        if Dropped(record.key, "late") in outputs:
            assert record.key is not None
            at = record.timestamp
            return [*outputs[:-1], Change(record.key, (at, at), 1, at)]
        return outputs


class DropsRepeats(Behaviour):
    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.seen: set[Record] = set()

    def arrive(self, record: Record) -> list[Output]:
        if record in self.seen:
            self.clock.observe(record.timestamp)
            return self.advance()
        self.seen.add(record)
        return super().arrive(record)


class ForgetsAtCuts(Behaviour):
    """The state is lost whenever the batch clock moves."""

    last = 0

    def advance(self) -> list[Output]:
        if self.clock.now != self.last:
            self.last = self.clock.now
            self.store.sessions.clear()
            self.store.segments.clear()
        return super().advance()


class Shifted(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return super().close_edge(clock) + 1


class NoGap(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return clock - self.grace_ms


def stored(kind: type[Kept]) -> Machine:
    def machine(windows: SessionWindows, clock: Clock) -> Behaviour:
        behaviour = Behaviour(windows, clock)
        behaviour.store = kind(windows)
        return behaviour

    return named(kind.__name__, machine)


def named(name: str, machine: Machine) -> Machine:
    machine.__name__ = name
    return machine


def redeclared(kind: type[SessionWindows]) -> Machine:
    def machine(windows: SessionWindows, clock: Clock) -> Behaviour:
        other = kind(
            windows.gap_ms, windows.grace_ms, windows.retention_ms, windows.aggregate, windows.emit, windows.late
        )
        return Behaviour(other, clock)

    return named(kind.__name__, machine)


class TellsTwice(Behaviour):
    """A session that closes is told again at the next step."""

    again: tuple[Output, ...] = ()

    def advance(self) -> list[Output]:
        told = super().advance()
        before, self.again = self.again, tuple(told)
        return [*before, *told]


class TellsLatestFirst(Behaviour):
    def advance(self) -> list[Output]:
        return super().advance()[::-1]


class TellsOneAtATime(Behaviour):
    """Where several sessions close at once, all but the first wait for the next step."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.waiting: list[Output] = []

    def advance(self) -> list[Output]:
        self.waiting += super().advance()
        told, self.waiting = self.waiting[:1], self.waiting[1:]
        return told


Law: TypeAlias = Callable[..., bool]
UPDATE: dict[str, Any] = {"gap_ms": 10, "grace_ms": 5}
CLOSE: dict[str, Any] = {**UPDATE, "emit": "close"}
LONG: dict[str, Any] = {**UPDATE, "retention_ms": 1000}
PATIENT: dict[str, Any] = {"gap_ms": 10, "grace_ms": 1000}
LISTS: dict[str, Any] = {**PATIENT, "aggregate": "list"}

SEEDED: list[tuple[Law, Machine, dict[str, Any]]] = [
    (folds_to_the_meaning, stored(ExclusiveGap), UPDATE),
    (folds_to_the_meaning, stored(LooksOnlyBack), UPDATE),
    (folds_to_the_meaning, stored(MergesOneNeighbour), UPDATE),
    (folds_to_the_meaning, stored(ForgetsToRemove), UPDATE),
    (folds_to_the_meaning, stored(KeysByFirstLetter), UPDATE),
    (folds_to_the_meaning, stored(RevisesTheClosed), LONG),
    (folds_to_the_meaning, stored(HidesOneTickEarly), UPDATE),
    (folds_to_the_meaning, ForgetsTombstones, UPDATE),
    (folds_to_the_meaning, TombstonesLast, UPDATE),
    (folds_to_the_meaning, DropsRepeats, UPDATE),
    (folds_to_the_meaning, ForgetsAtCuts, UPDATE),
    (folds_to_the_meaning, redeclared(Shifted), CLOSE),
    (folds_to_the_meaning, redeclared(NoGap), CLOSE),
    (drops_exactly_what_is_late, LateAlone, UPDATE),
    (drops_exactly_what_is_late, TakesTheLate, UPDATE),
    (drops_exactly_what_is_late, stored(RevisesTheClosed), LONG),
    (drops_exactly_what_is_late, redeclared(Shifted), UPDATE),
    (drops_exactly_what_is_late, redeclared(NoGap), UPDATE),
    (order_plays_no_part, stored(LooksOnlyBack), PATIENT),
    (order_plays_no_part, stored(MergesOneNeighbour), PATIENT),
    (cuts_play_no_part, ForgetsAtCuts, PATIENT),
    (repeats_count_again, DropsRepeats, LISTS),
    (keys_are_independent, stored(KeysByFirstLetter), UPDATE),
    (closed_is_final, stored(RevisesTheClosed), LONG),
    (closed_is_final, TakesTheLate, UPDATE),
    (closed_is_final, TellsTwice, CLOSE),
    (closed_is_final, redeclared(NoGap), CLOSE),
    (closing_is_in_order, TellsLatestFirst, CLOSE),
    (closed_is_told_at_once, TellsOneAtATime, CLOSE),
    (open_sessions_lie_apart, stored(ExclusiveGap), UPDATE),
    (open_sessions_lie_apart, stored(MergesOneNeighbour), UPDATE),
    (open_sessions_lie_apart, ForgetsTombstones, UPDATE),
    (every_accepted_record_counts_once, stored(ForgetsToRemove), UPDATE),
    (every_accepted_record_counts_once, ForgetsTombstones, UPDATE),
    (every_accepted_record_counts_once, DropsRepeats, UPDATE),
]
JUDGED = [(law, options) for law, _, options in SEEDED]


def name_of(part: object) -> str:
    if isinstance(part, dict):
        return str(part.get("emit", "update"))
    return getattr(part, "__name__", "bug")


def drawn_for(options: dict[str, Any]) -> Iterator[History]:
    return draw_histories(Shape(options, SCHEDULE, 20, KEYS), count=60, seed=94)


@pytest.mark.parametrize(("law", "bug", "options"), SEEDED, ids=name_of)
def test_the_law_catches_the_bug(law: Law, bug: Machine, options: dict[str, Any]) -> None:
    assert not all(law(history, bug) for history in drawn_for(options))


@pytest.mark.parametrize(
    ("law", "options"),
    [(law, options) for place, (law, _, options) in enumerate(SEEDED) if (law, options) not in JUDGED[:place]],
    ids=name_of,
)
def test_the_law_holds_for_the_reference_on_the_same_histories(law: Law, options: dict[str, Any]) -> None:
    assert all(law(history) for history in drawn_for(options))


def test_the_published_first_law_agrees_with_the_one_here() -> None:
    def caught(bug: Machine, history: History) -> bool:
        return bool(fold_is_meaning(history, play(history, bug)))

    assert any(caught(stored(MergesOneNeighbour), history) for history in drawn_for(UPDATE))
    assert not any(caught(Behaviour, history) for history in drawn_for(UPDATE))
