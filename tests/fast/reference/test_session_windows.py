"""What session windows emit: merges, aggregates, and their meaning."""

from __future__ import annotations

import pytest
from notation import lines_of
from session_histories import accepted, changelog, history_of, shown
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record
from streamproof.reference.definitions.aggregates import Aggregate, reduce
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_windows import Behaviour, meaning


def declared(text: str, windows: SessionWindows) -> str:
    """The changelog under a declaration that no history file can emit: an aggregate of one's own."""
    machine, emitted = Behaviour(windows, StreamTime()), []
    for line in lines_of(text):
        assert isinstance(line, Record)
        emitted += machine.arrive(line)
    return " ".join(map(shown, emitted))


# What Kafka Streams does (docs/facts.md): gap 10.


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


# Bugs that shipped (docs/facts.md): the right result.


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
def test_histories_of_bugs_that_shipped_have_the_right_result(arrivals: str, gap: int, expected: str) -> None:
    assert changelog(arrivals, gap_ms=gap) == expected


def test_a_session_is_not_finalised_before_gap_and_grace_are_over() -> None:
    assert changelog("a@0 z@1 z@10", emit="close") == ""


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


def test_a_list_emitted_earlier_does_not_change_afterwards() -> None:
    first = play(history_of("k=a@0 k=b@0", aggregate="list")).entries[0].output
    assert isinstance(first, Change)
    assert first.value == ["a"]


# The meaning.


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
