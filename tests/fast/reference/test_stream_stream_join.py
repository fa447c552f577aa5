from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations_with_replacement, permutations
from typing import Any

import pytest
from notation import (
    Machine,
    broken_prefix,
    changelog,
    histories_drawn,
    history_of,
    result_of,
    shown,
    steps,
)
from streamproof.reference.core.history import ClockAdvance
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Bag, Change, Output, Record
from streamproof.reference.stream_stream_join import Behaviour

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


def test_simultaneous_records_join_without_any_bound_and_grace() -> None:
    # a defect of Kafka Streams, where they never join
    assert changelog("L k=l@5 R k=r@5", JOIN, before_ms=0, after_ms=0) == "k=(l,r)@5"
    assert changelog("R k=r@5 L k=l@5", JOIN, before_ms=0, after_ms=0) == "k=(l,r)@5"


def test_a_record_joins_all_its_partners_by_timestamp_then_arrival() -> None:
    text = "R k=c@7 k=a@3 k=d@7 k=b@5 L k=l@5"
    assert steps(text, JOIN, **TEN)[-1] == "k=(l,a)@5 k=(l,b)@5 k=(l,c)@7 k=(l,d)@7"


def test_a_pair_is_one_output_however_many_windows_hold_both() -> None:
    # "Output of Join": two records that share two hopping windows
    assert changelog("L k=r1@10 R k=r2@15", JOIN, before_ms=30, after_ms=30) == "k=(r1,r2)@15"


def test_other_keys_never_join() -> None:
    assert changelog("L k=l@5 R j=r@5", JOIN, **TEN) == ""


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


@pytest.mark.parametrize(("join", "emit"), [("left", "arrival"), ("outer", "eager")])
def test_by_default_a_left_join_answers_once_on_arrival_and_an_outer_one_eagerly(join: str, emit: str) -> None:
    text = "L k=l@0 R k=r@5 L k=m@6"
    assert steps(text, JOIN, join=join, **TEN) == steps(text, JOIN, join=join, emit=emit, **TEN)
    other = "close"
    assert steps(text, JOIN, join=join, **TEN) != steps(text, JOIN, join=join, emit=other, **TEN)


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


def test_closed_rows_are_emitted_by_timestamp_then_right_before_left_then_key() -> None:
    text = "L b=1@5 a=2@5 c=3@4 R d=4@5 e=5@6 a=6@9 ~99"
    emitted = changelog(text, JOIN, join="outer", emit="close", before_ms=1, after_ms=1, grace_ms=50)
    assert emitted == "c=(3,null)@4 d=(null,4)@5 a=(2,null)@5 b=(1,null)@5 e=(null,5)@6 a=(null,6)@9"


def test_closed_rows_of_one_key_and_instant_are_emitted_by_arrival() -> None:
    assert changelog("L k=b@5 k=a@5 ~99", JOIN, join="left", emit="close", **TEN) == "k=(b,null)@5 k=(a,null)@5"


def test_what_the_clock_closes_is_emitted_before_the_record_that_moves_it_joins() -> None:
    text = "L k=l@0 j=m@20 R j=r@20"
    options = {"join": "left", "emit": "close", "before_ms": 5, "after_ms": 5}
    assert steps(text, JOIN, **options) == ["-", "k=(l,null)@0", "j=(m,r)@20"]


def test_a_row_that_has_matched_is_not_emitted_alone_though_its_partner_goes_first() -> None:
    # SPARK-26154
    text = "L k=l@10 R k=r@10 ~14 ~40"
    assert changelog(text, JOIN, join="left", emit="close", before_ms=1, after_ms=20) == "k=(l,r)@10"


def test_what_is_still_open_at_the_end_is_not_emitted() -> None:
    assert changelog("L k=l@0", JOIN, join="left", emit="close", **TEN) == ""


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


def test_a_late_record_moves_no_clock_back_and_joins_nothing() -> None:
    assert changelog("R k=r@99 L k=l@0", JOIN, join="left", **TEN) == "k!late"


@pytest.mark.parametrize("side", ["L", "R"])
def test_a_null_value_is_dropped_but_moves_the_clock(side: str) -> None:
    history = history_of(f"{side} k=∅@90", JOIN, join="outer", **TEN)
    assert shown(play(history).entries[0].output) == "k!null value"
    assert play(history).clock == 90


# Null keys.


@pytest.mark.parametrize(("join", "emit"), [("inner", "eager"), ("left", "arrival"), ("outer", "eager")])
def test_a_null_key_is_dropped_and_moves_no_clock(join: str, emit: str) -> None:
    history = history_of("L -=l@90 R -=r@90", JOIN, join=join, emit=emit, **TEN)
    assert [shown(entry.output) for entry in play(history).entries] == ["-!null key"] * 2
    assert play(history).clock == 0


KEPT = {
    "inner": "-!null key -!null key",
    "left": "-=(l,null)@5 -!null key",
    "outer": "-=(l,null)@5 -=(null,r)@5",
}


@pytest.mark.parametrize("join", KEPT)
@pytest.mark.parametrize("emit", ["eager", "close"])
def test_a_kept_null_key_is_emitted_at_once_and_joins_nothing(join: str, emit: str) -> None:
    assert changelog("L -=l@5 R -=r@5", JOIN, join=join, emit=emit, null_key="keep", **TEN) == KEPT[join]


def test_a_kept_null_key_moves_the_clock_even_where_it_is_dropped() -> None:
    assert play(history_of("R -=r@90", JOIN, join="left", null_key="keep", **TEN)).clock == 90


def test_a_kept_null_key_may_be_late() -> None:
    assert steps("L k=l@99 -=m@1", JOIN, join="left", null_key="keep", **TEN)[-1] == "-!late"


# Bugs that shipped (docs/facts.md): the reference has the right result.


def test_a_match_within_the_window_leaves_no_null() -> None:
    # 20 KAFKA-10847
    text = "L k=A@0 R k=a@10 ~999"
    assert changelog(text, JOIN, join="left", emit="close", before_ms=100, after_ms=100) == "k=(A,a)@10"


def test_a_row_emitted_with_null_is_not_matched_later() -> None:
    # 23 KAFKA-16123
    text = "L k=A@0 L z=z@150 R k=a@50"
    emitted = steps(text, JOIN, join="left", emit="close", before_ms=100, after_ms=100)
    assert emitted == ["-", "k=(A,null)@0", "-"]


def test_records_beyond_grace_are_dropped_and_join_nothing() -> None:
    # KAFKA-16123
    assert steps("L k=A@0 L z=z@150 R k=a@49", JOIN, before_ms=100, after_ms=100)[-1] == "k!late"


def test_an_out_of_order_row_within_grace_waits_for_its_partner() -> None:
    # KAFKA-19536
    options = {"join": "left", "emit": "close", "before_ms": 5, "after_ms": 5, "grace_ms": 50}
    assert steps("L z=z@20 k=l@1 R k=r@3", JOIN, **options) == ["-", "-", "k=(l,r)@3"]


# Laws.


class ForgetsNothing(Behaviour):
    """Keeps rows past their time, so that they still match (KAFKA-16123)."""

    def advance(self) -> list[Output]:
        return []


class TakesLate(Behaviour):
    """Drops no late record."""

    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        return emitted[:-1] if emitted and emitted[-1][1] == "late" else emitted


class OnePartner(Behaviour):
    """Joins a record with the first of its partners alone."""

    def arrive(self, record: Record) -> list[Output]:
        pairs: list[Output] = []
        others: list[Output] = []
        for output in super().arrive(record):
            pair = isinstance(output, Change) and None not in output.value
            (pairs if pair else others).append(output)
        return [*pairs[:1], *others]


class EmitsMatched(Behaviour):
    """Emits a row alone although its partner has come (SPARK-26154)."""

    def advance(self) -> list[Output]:
        for rows in self.buffers["left"].values():
            for row in rows:
                row.matched = False
        return super().advance()


@pytest.mark.parametrize("machine", [ForgetsNothing, TakesLate, OnePartner, EmitsMatched])
def test_the_law_of_the_fold_kills_a_mutant(machine: Any) -> None:
    options = {"join": "left", "emit": "close", "before_ms": 4, "after_ms": 8}
    assert any(broken_prefix(history, machine) for history in histories_drawn(JOIN, 150, options=options))


# Consistency ("KStream-KStream Join"): does any order of arrival give the same bag, where nothing is late?

WITHOUT_LATE_DATA = {"before_ms": 1, "after_ms": 1, "grace_ms": 1000}


def shuffled_differ(options: dict[str, Any], machine: Machine | None = None) -> list[str]:
    """The random histories whose bag depends on the order of arrival; all rows are closed in the end."""
    draw = random.Random(9)
    found = []
    for history in histories_drawn(JOIN, 150, 6, options={**TEN, "grace_ms": 1000, **options}, clock="stream_time"):
        records = [record for record in history.records if record.key is not None]
        end = [ClockAdvance(5000)]
        other = draw.sample(records, len(records))
        one, another = (play(history.with_lines([*order, *end]), machine).result for order in (records, other))
        if one != another:
            found.append(history.to_text())
    return found


def test_the_inner_join_is_eventually_consistent() -> None:
    assert shuffled_differ({"join": "inner"}) == []


@pytest.mark.parametrize("join", ["left", "outer"])
def test_the_left_and_outer_joins_are_eventually_consistent_once_they_wait_for_the_close(join: str) -> None:
    assert shuffled_differ({"join": join, "emit": "close"}) == []


@pytest.mark.parametrize(("join", "emit"), [("left", "arrival"), ("left", "eager"), ("outer", "eager")])
def test_the_left_and_outer_joins_that_do_not_wait_are_not_consistent(join: str, emit: str) -> None:
    assert len(shuffled_differ({"join": join, "emit": emit})) > 20


class LeftDrives(Behaviour):
    """An inner join that the left side alone drives."""

    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        return emitted if record.input == "left" else []


def test_the_law_of_consistency_kills_a_mutant() -> None:
    assert shuffled_differ({"join": "inner"}, LeftDrives)


def tiny_histories(size: int) -> Iterator[tuple[Record, ...]]:
    """All sets of so many records of one key, on two inputs, at 0 to 2 ms."""
    kinds = [Record(side, "k", side[0], at) for side in ("left", "right") for at in range(3)]
    return combinations_with_replacement(kinds, size)


def bag_of(records: tuple[Record, ...], options: dict[str, Any]) -> Bag:
    history = history_of("", JOIN, **WITHOUT_LATE_DATA, **options).with_lines([*records, ClockAdvance(5000)])
    result = play(history).result
    assert isinstance(result, list)
    return result


def smallest_counterexample(options: dict[str, Any]) -> tuple[str, str] | None:
    """The two orders of the smallest history whose bags differ, as what they give; searched up to 4 records."""
    for size in range(1, 5):
        for records in tiny_histories(size):
            bags = {str(bag_of(order, options)): order for order in sorted(set(permutations(records)))}
            if len(bags) > 1:
                first, second = list(bags.values())[:2]
                return tuple(  # type: ignore[return-value]
                    " ".join(f"{one.input} {one.timestamp}" for one in order)
                    + ": "
                    + " ".join(map(shown, bag_of(order, options)))
                    for order in (first, second)
                )
    return None


COUNTEREXAMPLES = {
    "left, arrival": (
        {"join": "left", "emit": "arrival"},
        ("left 0 right 0: k=(l,null)@0", "right 0 left 0: k=(l,r)@0"),
    ),
    "left, eager": (
        {"join": "left", "emit": "eager"},
        ("left 0 right 0: k=(l,r)@0 k=(l,null)@0", "right 0 left 0: k=(l,r)@0"),
    ),
    "outer, eager": (
        {"join": "outer", "emit": "eager"},
        ("left 0 right 0: k=(l,r)@0 k=(l,null)@0", "right 0 left 0: k=(l,r)@0 k=(null,r)@0"),
    ),
}


@pytest.mark.parametrize(("options", "expected"), COUNTEREXAMPLES.values(), ids=COUNTEREXAMPLES)
def test_the_smallest_history_of_which_two_orders_differ_has_two_records(
    options: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert smallest_counterexample(options) == expected


@pytest.mark.parametrize(
    "options",
    [{"join": "inner"}, {"join": "left", "emit": "close"}, {"join": "outer", "emit": "close"}],
    ids=lambda options: " ".join(options.values()),
)
def test_no_history_of_up_to_four_records_has_two_orders_that_differ(options: dict[str, Any]) -> None:
    assert smallest_counterexample(options) is None


def test_the_order_of_arrival_is_all_that_the_left_join_differs_by() -> None:
    assert result_of("L k=l@0 R k=r@0", JOIN, join="left", **TEN) == [Change("k", None, ["l", None], 0)]
    assert result_of("R k=r@0 L k=l@0", JOIN, join="left", **TEN) == [Change("k", None, ["l", "r"], 0)]
