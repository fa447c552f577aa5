from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from notation import changelog, histories_drawn, history_of, shown, steps
from streamproof.reference.core.history import ClockAdvance
from streamproof.reference.core.play import play

JOIN = "stream_stream_join"
TEN = {"before_ms": 10, "after_ms": 10}


# Bounds.


@pytest.mark.parametrize("join", ["inner", "left", "outer"])
@pytest.mark.parametrize(
    ("right", "joins"), [(14, False), (15, True), (20, True), (27, True), (28, False)], ids=lambda given: str(given)
)
@pytest.mark.parametrize("left_first", [True, False])
def test_both_bounds_are_inclusive(right: int, joins: bool, left_first: bool, join: str) -> None:
    one, other = "L k=l@20", f"R k=r@{right}"
    text = f"{one} {other}" if left_first else f"{other} {one}"
    emitted = changelog(text, JOIN, join=join, emit="eager", before_ms=5, after_ms=7, grace_ms=50)
    assert ("(l,r)" in emitted) == joins


@pytest.mark.parametrize("text", ["L k=l@3 R k=r@8", "R k=r@8 L k=l@3"])
def test_a_pair_is_stamped_with_the_later_of_both(text: str) -> None:
    assert changelog(text, JOIN, **TEN) == "k=(l,r)@8"


def test_a_record_joins_all_its_partners_by_timestamp_then_arrival() -> None:
    text = "R k=c@7 k=a@3 k=d@7 k=b@5 L k=l@5"
    assert steps(text, JOIN, **TEN)[-1] == "k=(l,a)@5 k=(l,b)@5 k=(l,c)@7 k=(l,d)@7"


# When unmatched rows are emitted.

UNMATCHED = [
    # arrivals, left arrival, left eager, left close, outer eager, outer close
    ("L k=l@0", "k=(l,null)@0", "k=(l,null)@0", "", "k=(l,null)@0", ""),
    ("R k=r@0", "", "", "", "k=(null,r)@0", ""),
    (
        "L k=l@0 R k=r@5",
        "k=(l,null)@0",
        "k=(l,null)@0 k=(l,r)@5",
        "k=(l,r)@5",
        "k=(l,null)@0 k=(l,r)@5",
        "k=(l,r)@5",
    ),
    ("R k=r@5 L k=l@0", "k=(l,r)@5", "k=(l,r)@5", "k=(l,r)@5", "k=(null,r)@5 k=(l,r)@5", "k=(l,r)@5"),
    ("L k=l@0 ~10", "k=(l,null)@0", "k=(l,null)@0", "", "k=(l,null)@0", ""),
    ("L k=l@0 ~11", "k=(l,null)@0", "k=(l,null)@0", "k=(l,null)@0", "k=(l,null)@0", "k=(l,null)@0"),
    ("R k=r@0 ~11", "", "", "", "k=(null,r)@0", "k=(null,r)@0"),
    ("L k=l@0 R k=r@5 ~99", "k=(l,null)@0", "k=(l,null)@0 k=(l,r)@5", "k=(l,r)@5", None, "k=(l,r)@5"),
]


@pytest.mark.parametrize(
    ("column", "join", "emit"),
    [
        (1, "left", "arrival"),
        (2, "left", "eager"),
        (3, "left", "close"),
        (4, "outer", "eager"),
        (5, "outer", "close"),
    ],
    ids=lambda given: str(given),
)
def test_an_unmatched_row_is_emitted_when_the_policy_says(column: int, join: str, emit: str) -> None:
    for row in UNMATCHED:
        if row[column] is not None:
            assert changelog(str(row[0]), JOIN, join=join, emit=emit, **TEN) == row[column], row[0]


@pytest.mark.parametrize("emit", ["arrival", "eager", "close"])
def test_when_unmatched_rows_are_emitted_means_nothing_to_an_inner_join(emit: str) -> None:
    assert changelog("L k=l@0 R k=r@5 ~99", JOIN, emit=emit, **TEN) == "k=(l,r)@5"


@pytest.mark.parametrize(
    ("side", "clock", "emitted"),
    [("L", 18, ""), ("L", 19, "k=(x,null)@10"), ("R", 16, ""), ("R", 17, "k=(null,x)@10")],
    ids=lambda given: str(given),
)
def test_on_close_a_left_row_waits_for_after_and_a_right_one_for_before(side: str, clock: int, emitted: str) -> None:
    text = f"{side} k=x@10 ~{clock}"
    assert changelog(text, JOIN, join="outer", emit="close", before_ms=3, after_ms=5, grace_ms=3) == emitted


def test_closed_rows_are_emitted_by_timestamp_then_right_before_left_then_key_then_arrival() -> None:
    text = "L b=1@5 a=2@5 c=3@4 a=1@5 R d=4@5 e=5@6 a=6@9 ~99"
    emitted = changelog(text, JOIN, join="outer", emit="close", before_ms=1, after_ms=1, grace_ms=50)
    assert emitted == "c=(3,null)@4 d=(null,4)@5 a=(2,null)@5 a=(1,null)@5 b=(1,null)@5 e=(null,5)@6 a=(null,6)@9"


def test_what_the_clock_closes_is_emitted_before_the_record_that_moves_it_joins() -> None:
    text = "L k=l@0 j=m@20 R j=r@20"
    options = {"join": "left", "emit": "close", "before_ms": 5, "after_ms": 5}
    assert steps(text, JOIN, **options) == ["-", "k=(l,null)@0", "j=(m,r)@20"]


# Lateness.


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("L z=z@30 L k=l@20", "-"),
        ("L z=z@30 L k=l@19", "k!late"),
        ("L z=z@30 R k=r@25", "-"),
        ("L z=z@30 R k=r@24", "k!late"),
    ],
)
def test_a_record_is_late_iff_the_clock_is_past_its_reach_and_grace(text: str, last: str) -> None:
    assert steps(text, JOIN, before_ms=2, after_ms=7, grace_ms=3)[-1] == last


@pytest.mark.parametrize(("clock", "emitted"), [(13, "k=(l,r)@0"), (14, "-")])
def test_a_row_whose_time_is_past_no_longer_matches(clock: int, emitted: str) -> None:
    # the left row (reach 10, grace 3) is gone at 14, while a right record (reach 20) is still on time
    assert steps(f"L k=l@0 ~{clock} R k=r@0", JOIN, before_ms=20, after_ms=10, grace_ms=3)[-1] == emitted


@pytest.mark.parametrize("side", ["L", "R"])
def test_a_null_value_is_dropped_but_moves_the_clock(side: str) -> None:
    history = history_of(f"{side} k=∅@90", JOIN, join="outer", **TEN)
    assert shown(play(history).entries[0].output) == "k!null value"
    assert play(history).clock == 90


# Null keys.


KEPT = {
    "inner": "-!null key -!null key",
    "left": "-=(l,null)@5 -!null key",
    "outer": "-=(l,null)@5 -=(null,r)@5",
}


@pytest.mark.parametrize("join", KEPT)
@pytest.mark.parametrize("emit", ["eager", "close"])
def test_a_kept_null_key_is_emitted_at_once_and_joins_nothing(join: str, emit: str) -> None:
    assert changelog("L -=l@5 R -=r@5", JOIN, join=join, emit=emit, null_key="keep", **TEN) == KEPT[join]


def test_a_kept_null_key_may_be_late_and_moves_the_clock() -> None:
    assert play(history_of("R -=r@90", JOIN, null_key="keep", **TEN)).clock == 90
    assert steps("L k=l@99 -=m@1", JOIN, join="left", null_key="keep", **TEN)[-1] == "-!late"


# Bugs that shipped (docs/facts.md): the reference has the right result.

LEFT: dict[str, Any] = {"join": "left", "emit": "close"}
SHIPPED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "SPARK-26154: a row that has matched is not emitted alone though its partner goes first": (
        *("L k=l@10 R k=r@10 ~14 ~40", {**LEFT, "before_ms": 1, "after_ms": 20}),
        ["-", "k=(l,r)@10", "-", "-"],
    ),
    "KAFKA-10847: a match within the window leaves no null": (
        *("L k=A@0 R k=a@10 ~999", {**LEFT, "before_ms": 100, "after_ms": 100}),
        ["-", "k=(A,a)@10", "-"],
    ),
    "KAFKA-16123: a row emitted with null is not matched later": (
        *("L k=A@0 L z=z@150 R k=a@50", {**LEFT, "before_ms": 100, "after_ms": 100}),
        ["-", "k=(A,null)@0", "-"],
    ),
    "KAFKA-16123: records beyond grace are dropped and join nothing": (
        *("L k=A@0 L z=z@150 R k=a@49", {"before_ms": 100, "after_ms": 100}),
        ["-", "-", "k!late"],
    ),
    "KAFKA-19536: an out-of-order row within grace waits for its partner": (
        *("L z=z@20 k=l@1 R k=r@3", {**LEFT, "before_ms": 5, "after_ms": 5, "grace_ms": 50}),
        ["-", "-", "k=(l,r)@3"],
    ),
    "simultaneous records join without any bound and grace": (
        *("L k=l@5 R k=r@5 R k=s@6 L k=m@6", {"before_ms": 0, "after_ms": 0}),
        ["-", "k=(l,r)@5", "-", "k=(m,s)@6"],
    ),
}


@pytest.mark.parametrize(("text", "options", "expected"), SHIPPED.values(), ids=SHIPPED)
def test_histories_of_bugs_that_shipped_have_the_right_result(
    text: str, options: dict[str, Any], expected: list[str]
) -> None:
    assert steps(text, JOIN, **options) == expected


# Laws.


# Consistency ("KStream-KStream Join"): does any order of arrival give the same bag, where nothing is late?


def shuffled_differ(options: dict[str, Any]) -> list[str]:
    """The random histories whose bag depends on the order of arrival; all rows are closed in the end."""
    draw = random.Random(9)
    found = []
    for history in histories_drawn(JOIN, 150, 6, options={**TEN, **options}, clock="stream_time"):
        history = replace(history, options={**history.options, "grace_ms": 1000})
        records = [record for record in history.records if record.key is not None]
        end = [ClockAdvance(5000)]
        other = draw.sample(records, len(records))
        one, another = (play(history.with_lines([*order, *end])).result for order in (records, other))
        if one != another:
            found.append(history.to_text())
    return found


@pytest.mark.parametrize("join", ["inner", "left", "outer"])
def test_the_inner_join_is_eventually_consistent_and_the_others_are_once_they_wait_for_the_close(join: str) -> None:
    assert shuffled_differ({"join": join, "emit": "close"}) == []


@pytest.mark.parametrize(("join", "emit"), [("left", "arrival"), ("left", "eager"), ("outer", "eager")])
def test_the_left_and_outer_joins_that_do_not_wait_are_not_consistent(join: str, emit: str) -> None:
    assert len(shuffled_differ({"join": join, "emit": emit})) > 20
