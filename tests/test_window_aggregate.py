from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from notation import (
    broken_prefix,
    changelog,
    histories_drawn,
    history_of,
    keys_that_meet,
    lines_of,
    shown,
    steps,
    twice,
)
from streamproof.reference.aggregates import LIST, SUM
from streamproof.reference.clocks import StreamTime
from streamproof.reference.errors import BadInput
from streamproof.reference.operators import OPERATORS, operator_named
from streamproof.reference.play import play
from streamproof.reference.records import Change, Output, Record, bag
from streamproof.reference.window_aggregate import Behaviour, Filled, Message
from streamproof.reference.windows import Early, WindowAggregate

WINDOWS = "window_aggregate"


def machine_of(*, size: int = 10, storage: Any = "full", **options: Any) -> Behaviour:
    return Behaviour(WindowAggregate(size, storage=storage, **options), StreamTime())


def fed(machine: Behaviour, text: str) -> list[str]:
    told: list[Output] = []
    for record in lines_of(text):
        assert isinstance(record, Record)
        told += machine.arrive(record)
    return list(map(shown, told))


# Size: a window is told once it is complete.

COMPLETE = [
    ("k@1 k@5 ~9", ""),
    ("k@1 k@5 ~10", "k[0,10]=2@5"),
    ("k@1 k@5 k@10", "k[0,10]=2@5"),
    ("k@5 k@1 k@10", "k[0,10]=2@5"),
    ("k@10 ~20", "k[10,20]=1@10"),
    ("k@9 j@10", "k[0,10]=1@9"),
    ("k@1 ~99 ~199", "k[0,10]=1@1"),
]


@pytest.mark.parametrize(("text", "told"), COMPLETE)
def test_a_window_is_told_once_when_the_clock_reaches_its_end(text: str, told: str) -> None:
    assert changelog(text, WINDOWS, size=10) == told


def test_windows_are_told_by_end_then_key() -> None:
    assert changelog("b@1 a@2 b@12 a@11 ~50", WINDOWS, size=10) == (
        "a[0,10]=1@2 b[0,10]=1@1 a[10,20]=1@11 b[10,20]=1@12"
    )


def test_what_the_clock_completes_is_told_before_the_record_is_added() -> None:
    assert steps("k@1 k@30", WINDOWS, size=10) == ["-", "k[0,10]=1@1"]


def test_a_window_that_is_open_at_the_end_is_not_told() -> None:
    assert changelog("k@1", WINDOWS, size=10) == ""


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [("count", "3"), ("sum", "9"), ("min", "2"), ("max", "4"), ("list", "(4,2,3)"), ("average", "3.0")],
)
def test_a_window_is_told_as_the_aggregate_of_its_messages_in_order_of_arrival(aggregate: str, value: str) -> None:
    assert changelog("k=4@3 k=2@1 k=3@2 ~10", WINDOWS, size=10, aggregate=aggregate) == f"k[0,10]={value}@3"


# Step.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("k@7 ~99", "k[0,10]=1@7 k[5,15]=1@7"),
        ("k@3 ~99", "k[0,10]=1@3"),
        ("k@7 k@12 ~99", "k[0,10]=1@7 k[5,15]=2@12 k[10,20]=1@12"),
    ],
)
def test_a_message_is_in_every_window_that_includes_it_and_none_starts_before_0(text: str, told: str) -> None:
    assert changelog(text, WINDOWS, size=10, step=5) == told


def test_a_step_need_not_divide_the_size() -> None:
    assert changelog("k@7 ~99", WINDOWS, size=10, step=4) == "k[0,10]=1@7 k[4,14]=1@7"


# Windows by tuple.

BY_TUPLE = [
    ({"size": 2}, "k=1 k=2 k=4 k=8", ["-", "k[0,2]=3@1", "-", "k[2,4]=12@3"]),
    ({"size": 2, "step": 1}, "k=1 k=2 k=4", ["-", "k[0,2]=3@1", "k[1,3]=6@2"]),
    ({"size": 3, "step": 2}, "k=1 k=2 k=4 k=8 k=16", ["-", "-", "k[0,3]=7@2", "-", "k[2,5]=28@4"]),
    ({"size": 1}, "k=1 k=2", ["k[0,1]=1@0", "k[1,2]=2@1"]),
    ({"size": 2}, "k=1 j=2 k=4", ["-", "-", "k[0,2]=5@2"]),
    ({"size": 2}, "k=1@50 k=2@1", ["-", "k[0,2]=3@50"]),
    ({"size": 2}, "k=1 ~99 k=2", ["-", "-", "k[0,2]=3@1"]),
]


@pytest.mark.parametrize(("options", "text", "told"), BY_TUPLE)
def test_a_window_by_tuple_is_complete_with_its_last_message_and_nothing_is_late(
    options: dict[str, Any], text: str, told: list[str]
) -> None:
    assert steps(text, WINDOWS, unit="tuple", aggregate="sum", **options) == told


# Early emission.

EARLY = [
    ({"every_tuples": 1}, "k@1 k@2 ~10", ["k[0,10]=1@1", "k[0,10]=2@2", "-"]),
    ({"every_tuples": 2}, "k@1 k@2 k@3 ~10", ["-", "k[0,10]=2@2", "-", "k[0,10]=3@3"]),
    ({"every_tuples": 2}, "k@1 j@1 k@2", ["-", "-", "k[0,10]=2@2"]),
    ({"every_tuples": 2}, "k@1 k@2 ~10", ["-", "k[0,10]=2@2", "-"]),
    ({"every_ms": 4}, "k@1 k@3 k@4 ~7 ~8", ["-", "-", "k[0,10]=2@3", "-", "k[0,10]=3@4"]),
    ({"every_ms": 4}, "k@1 ~3 ~4 ~8 ~10", ["-", "-", "k[0,10]=1@1", "-", "-"]),
    ({"every_ms": 4}, "z@3 k@1 ~4", ["-", "-", "k[0,10]=1@1 z[0,10]=1@3"]),
    ({"every_ms": 4}, "k@1 k@2 ~30", ["-", "-", "k[0,10]=2@2"]),
    (None, "k@1 k@2 ~9", ["-", "-", "-"]),
]


@pytest.mark.parametrize(("early", "text", "told"), EARLY)
def test_a_window_is_told_early_as_the_policy_says(early: dict[str, int] | None, text: str, told: list[str]) -> None:
    assert steps(text, WINDOWS, size=10, early=early) == told


def test_a_window_by_tuple_is_told_early_too() -> None:
    told = steps("k=1 k=2 k=4", WINDOWS, unit="tuple", size=3, aggregate="sum", early={"every_tuples": 1})
    assert told == ["k[0,3]=1@0", "k[0,3]=3@1", "k[0,3]=7@2"]


def test_of_several_windows_each_is_told_by_its_own_untold_messages() -> None:
    told = steps("k@3 k@7", WINDOWS, size=10, step=5, early={"every_tuples": 2})
    assert told == ["-", "k[0,10]=2@7"]


# Late arrival, and retention.

LATE = [
    ({}, "k@1 ~10 k@5", ["-", "k[0,10]=1@1", "k!late"]),
    ({"retention_ms": 50}, "k@1 ~10 k@5", ["-", "k[0,10]=1@1", "k!late"]),
    ({"retention_ms": 5, "late": "update"}, "k@1 ~10 k@5", ["-", "k[0,10]=1@1", "k[0,10]=2@5"]),
    ({"retention_ms": 5, "late": "update"}, "k@1 ~14 k@5", ["-", "k[0,10]=1@1", "k[0,10]=2@5"]),
    ({"retention_ms": 5, "late": "update"}, "k@1 ~15 k@5", ["-", "k[0,10]=1@1", "k!late"]),
    ({"retention_ms": 5, "late": "update"}, "~14 k@5", ["-", "k[0,10]=1@5"]),
    ({"step": 5}, "~12 k@7 ~15", ["-", "-", "k[5,15]=1@7"]),
    ({"step": 5}, "~15 k@7", ["-", "k!late"]),
    ({}, "~10 k@10 ~20", ["-", "-", "k[10,20]=1@10"]),
]


@pytest.mark.parametrize(("options", "text", "told"), LATE)
def test_a_late_message_is_dropped_or_updates_the_windows_that_are_kept(
    options: dict[str, Any], text: str, told: list[str]
) -> None:
    assert steps(text, WINDOWS, size=10, **options) == told


def test_a_dropped_message_moves_no_clock_back() -> None:
    assert play(history_of("k@30 k@1", WINDOWS, size=10)).clock == 30


# Sessions.

SESSIONS = [
    ({}, "k@0 k@10 ~20 ~21", ["-", "-", "-", "k[0,10]=2@10"]),
    ({}, "k@0 k@11 ~99", ["-", "k[0,0]=1@0", "k[11,11]=1@11"]),
    ({}, "k@20 k@10 k@30 ~99", ["-", "-", "-", "k[10,30]=3@30"]),
    ({}, "k@0 ~10 k@5 ~99", ["-", "-", "-", "k[0,5]=2@5"]),
    ({}, "k@0 z@11 k@0", ["-", "k[0,0]=1@0", "k!late"]),
    ({}, "z@11 k@0", ["-", "k!late"]),
    ({}, "z@10 k@0 ~11", ["-", "-", "k[0,0]=1@0"]),
    ({"early": {"every_tuples": 1}}, "k@0 k@10", ["k[0,0]=1@0", "k[0,0]=∅@0 k[0,10]=2@10"]),
    (
        {"early": {"every_tuples": 1}, "retention_ms": 20, "late": "update"},
        "k@20 k@0 k@10",
        ["k[20,20]=1@20", "k[0,0]=1@0", "k[0,0]=∅@0 k[20,20]=∅@20 k[0,20]=3@20"],
    ),
    ({"early": {"every_tuples": 2}}, "k@0 k@10 k@5", ["-", "k[0,10]=2@10", "-"]),
    (
        {"retention_ms": 5, "late": "update"},
        "k@0 ~11 k@3 ~13 ~14",
        ["-", "k[0,0]=1@0", "-", "-", "k[0,0]=∅@0 k[0,3]=2@3"],
    ),
    ({"retention_ms": 5, "late": "update"}, "~15 k@0", ["-", "k[0,0]=1@0"]),
    ({"retention_ms": 5, "late": "update"}, "~16 k@0", ["-", "k!late"]),
]


@pytest.mark.parametrize(("options", "text", "told"), SESSIONS)
def test_a_session_ends_a_gap_after_its_last_message(options: dict[str, Any], text: str, told: list[str]) -> None:
    assert steps(text, WINDOWS, type="session", size=10, **options) == told


def test_messages_of_merged_sessions_are_in_session_order_and_the_new_one_last() -> None:
    options = {"type": "session", "size": 10, "aggregate": "list", "retention_ms": 20, "late": "update"}
    assert changelog("k=a@20 k=b@0 k=c@10 ~99", WINDOWS, **options).endswith("k[0,20]=(b,a,c)@20")


def test_sessions_are_the_session_windows_that_tell_on_close() -> None:
    for history in histories_drawn("session_windows", 100, options={"gap_ms": 5, "emit": "close"}):
        mine = history_of("", WINDOWS, history.clock, type="session", size=5).with_lines(history.lines)
        assert [entry.output for entry in play(mine).entries] == [entry.output for entry in play(history).entries]


# Full storage.

FULL = [
    ({}, "k=a@5 k=b@1 ~10", ["-", "-", "k[0,10]=a@5 k[0,10]=b@1"]),
    ({"early": {"every_tuples": 2}}, "k=a k=b k=c ~10", ["-", "k[0,10]=a@0 k[0,10]=b@1", "-", "k[0,10]=c@2"]),
    ({"retention_ms": 5, "late": "update"}, "k=a@1 ~10 k=b@2", ["-", "k[0,10]=a@1", "k[0,10]=b@2"]),
    ({"step": 5}, "k=a@7 ~99", ["-", "k[0,10]=a@7 k[5,15]=a@7"]),
    ({"type": "session", "early": {"every_tuples": 1}}, "k=a@0 k=b@5", ["k[0,0]=a@0", "k[0,5]=b@5"]),
    ({"unit": "tuple", "size": 2}, "k=a@9 k=b@1", ["-", "k[0,2]=a@9 k[0,2]=b@1"]),
    ({}, "k=∅@1 ~10", ["k!null value", "-"]),
]


@pytest.mark.parametrize(("options", "text", "told"), FULL)
def test_full_storage_tells_each_message_once_a_window(options: dict[str, Any], text: str, told: list[str]) -> None:
    assert steps(text, WINDOWS, storage="full", **{"size": 10, **options}) == told


def test_aggregated_storage_counts_a_null_value() -> None:
    assert changelog("k=∅@1 ~10", WINDOWS, size=10) == "k[0,10]=1@1"


def records(machine: Behaviour, earliest: int, latest: int, **fields: Any) -> list[Any]:
    return [(one.key, one.value, one.timestamp) for one in machine.messages(earliest, latest, **fields)]


def test_messages_are_read_by_range_both_ends_included() -> None:
    machine = machine_of(retention_ms=100)
    fed(machine, "k=a@5 k=b@1 j=c@9 k=d@12")
    assert records(machine, 1, 9) == [("k", "b", 1), ("k", "a", 5), ("j", "c", 9)]
    assert records(machine, 2, 8) == [("k", "a", 5)]
    assert records(machine, 20, 30) == []


def test_messages_are_read_by_their_fields() -> None:
    machine = machine_of()
    values = [{"id": 1, "at": "x"}, {"id": 2, "at": "x"}, {"id": 1, "at": "y"}, "no object", {"at": "x"}]
    for at, value in enumerate(values):
        machine.arrive(Record("events", "k", value, at))
    assert [one.timestamp for one in machine.messages(0, 9, id=1)] == [0, 2]
    assert [one.timestamp for one in machine.messages(0, 9, id=1, at="y")] == [2]
    assert [one.timestamp for one in machine.messages(0, 9, id=3)] == []


def test_a_message_in_several_windows_is_read_once() -> None:
    machine = machine_of(step=5)
    fed(machine, "k=a@7")
    assert records(machine, 0, 99) == [("k", "a", 7)]


@pytest.mark.parametrize(("clock", "kept"), [(10, True), (14, True), (15, False)])
def test_messages_are_kept_for_the_retention_after_their_window_is_complete(clock: int, kept: bool) -> None:
    machine = machine_of(retention_ms=5)
    fed(machine, f"k=a@1 z=z@{clock}")
    assert (("k", "a", 1) in records(machine, 0, 9)) == kept


def test_without_retention_a_complete_window_is_forgotten() -> None:
    machine = machine_of()
    fed(machine, "k=a@1 z=z@10")
    assert records(machine, 0, 99) == [("z", "z", 10)]


@pytest.mark.parametrize(("clock", "kept"), [(15, True), (16, False)])
def test_messages_of_a_session_are_kept_for_the_retention_too(clock: int, kept: bool) -> None:
    machine = machine_of(type="session", retention_ms=5)
    fed(machine, f"k=a@0 z=z@{clock}")
    assert (("k", "a", 0) in records(machine, 0, 9)) == kept


@pytest.mark.parametrize("clock", [2, 60, 101])
def test_messages_of_a_complete_window_by_tuple_are_kept_for_the_retention(clock: int) -> None:
    machine = machine_of(size=2, unit="tuple", retention_ms=100)
    fed(machine, f"k=a@1 k=b@2 z=z@{clock}")
    assert ("k", "b", 2) in records(machine, 0, 9)


def test_messages_of_a_complete_window_by_tuple_are_forgotten_after_the_retention() -> None:
    machine = machine_of(size=2, unit="tuple", retention_ms=100)
    fed(machine, "k=a@1 k=b@2 z=z@103")
    assert records(machine, 0, 9) == []


def test_the_messages_of_an_aggregated_window_cannot_be_read() -> None:
    with pytest.raises(BadInput, match="the messages of an aggregated window can't be read: use storage full"):
        machine_of(storage="aggregate").messages(0, 9)


# Callbacks.


def test_before_process_may_change_a_record_and_leave_it_out() -> None:
    def process(record: Record) -> Record | None:
        return None if record.value == "skip" else record._replace(value=record.value * 2)

    windows = WindowAggregate(10, aggregate=LIST, before_process=process)
    machine = Behaviour(windows, StreamTime())
    told = fed(machine, "k=1@1 k=skip@2 k=3@3 k=skip@50 k=9@10")
    assert told == ["k!filtered", "k!filtered", "k[0,10]=(2,6)@3"]


def test_before_process_may_give_a_message_another_key_and_timestamp() -> None:
    windows = WindowAggregate(10, before_process=lambda record: record._replace(key="all", timestamp=5))
    machine = Behaviour(windows, StreamTime())
    assert fed(machine, "k@1 j@90") == []
    assert machine.clock.now == 5


def test_before_send_may_change_what_is_told_and_keep_it_back() -> None:
    def send(change: Change) -> Change | None:
        return None if change.value < 2 else change._replace(value=change.value * 10)

    machine = Behaviour(WindowAggregate(10, before_send=send), StreamTime())
    assert fed(machine, "k@1 k@2 j@3 z@10") == ["k[0,10]=20@2"]


def test_what_before_send_keeps_back_is_not_told_later() -> None:
    windows = WindowAggregate(10, early=Early(every_tuples=1), before_send=lambda change: None)
    assert fed(Behaviour(windows, StreamTime()), "k@1 k@2 z@10") == []


def test_no_history_file_can_give_a_callback() -> None:
    with pytest.raises(BadInput, match="window_aggregate has no option 'before_send': it takes aggregate, early, late"):
        operator_named(WINDOWS).declare({"size": 10, "before_send": "x"})


# What is dropped.


def test_a_null_key_is_dropped_and_moves_no_clock() -> None:
    history = history_of("-@90", WINDOWS, size=10)
    assert [shown(entry.output) for entry in play(history).entries] == ["-!null key"]
    assert play(history).clock == 0


# Case study: the join of Orders and Shipments, out of two full-state window operators.


def joined_by_windows(arrivals: list[Record], within_ms: int, **windows: Any) -> list[Change]:
    """The seed's StreamStreamJoinOperator: every message goes to its stream's windows, and reads the other's."""
    operators = {side: machine_of(retention_ms=10_000, late="update", **windows) for side in ("left", "right")}
    pairs = []
    for record in arrivals:
        operators[record.input].arrive(record)
        at = record.timestamp
        bounds = (at, at + within_ms) if record.input == "left" else (at - within_ms, at)
        others = operators["right" if record.input == "left" else "left"].messages(*bounds, id=record.value["id"])
        for other in others:
            order, shipment = (record, other) if record.input == "left" else (other, record)
            latest = max(at, other.timestamp)
            pairs.append(Change(record.key, None, [order.value, shipment.value], latest))
    return pairs


def orders_and_shipments(draw: random.Random) -> list[Record]:
    records = []
    for place in range(draw.randint(2, 14)):
        order = draw.choice(["o1", "o2", "o3"])
        at = max(0, place * 2 + draw.randint(-9, 6))
        records.append(Record(draw.choice(["left", "right"]), order, {"id": order, "n": place}, at))
    return records


@pytest.mark.parametrize(
    "windows",
    [{"size": 10}, {"size": 10, "step": 5}, {"type": "session", "size": 3}],
    ids=["fixed", "hopping", "sessions"],
)
def test_two_full_state_windows_read_by_range_and_filter_make_the_stream_stream_join(windows: dict[str, Any]) -> None:
    draw = random.Random(1)
    options = {"before_ms": 0, "after_ms": 5, "grace_ms": 1000}
    pairs = 0
    for _ in range(150):
        arrivals = orders_and_shipments(draw)
        join = play(history_of("", "stream_stream_join", **options).with_lines(arrivals)).result
        assert bag(joined_by_windows(arrivals, 5, **windows)) == join
        pairs += len(join)
    assert pairs > 150


def test_reading_without_the_filter_makes_another_join() -> None:
    arrivals = [Record("left", "o1", {"id": "o1"}, 0), Record("right", "o2", {"id": "o2"}, 1)]
    assert joined_by_windows(arrivals, 5) == []
    machine = machine_of()
    machine.arrive(arrivals[0])
    assert machine.messages(0, 5) == [arrivals[0]]
    assert machine.messages(0, 5, id="o2") == []


def test_the_join_without_bounds_is_refused() -> None:
    with pytest.raises(BadInput, match="before_ms is missing: an unbounded stream-stream join is refused"):
        operator_named("stream_stream_join").declare({})
    with pytest.raises(BadInput, match="after_ms is missing: an unbounded stream-stream join is refused"):
        operator_named("stream_stream_join").declare({"before_ms": 0})


# Laws.


@pytest.mark.parametrize("seed", range(4))
def test_the_behaviour_folds_to_the_meaning_at_every_prefix(seed: int) -> None:
    for history in histories_drawn(WINDOWS, 100, seed):
        assert broken_prefix(history) is None


@pytest.mark.parametrize("storage", ["aggregate", "full"])
def test_the_fold_is_the_meaning_with_callbacks_too(storage: Any) -> None:
    def process(record: Record) -> Record | None:
        return None if record.value % 3 == 0 else record._replace(value=record.value + 1)

    def send(change: Change) -> Change | None:
        return None if change.value is not None and change.value % 2 else change

    windows = WindowAggregate(
        5, storage=storage, aggregate=SUM, before_process=process, before_send=send, early=Early(every_tuples=2)
    )
    told = 0
    for history in histories_drawn(WINDOWS, 100, 5, options={"size": 5, "aggregate": "sum"}):
        played = play(history, lambda _, clock: Behaviour(windows, clock))
        outputs = [entry.output for entry in played.entries if isinstance(entry.output, Change)]
        meant = OPERATORS[WINDOWS].meaning(windows, played.accepted, played.clock)
        if storage == "full":
            assert bag(outputs) == meant
        else:
            # What is kept back leaves what was told before: the last change of a window decides.
            assert set(meant) <= {(change.key, change.window) for change in outputs}
        told += len(outputs)
    assert told > 20


class OneWindow(Behaviour):
    """Adds a message to one of its windows alone."""

    def __init__(self, windows: WindowAggregate, clock: Any) -> None:
        super().__init__(replace(windows, step=windows.size), clock)


class Inclusive(Behaviour):
    """Takes messages into a window that has just become complete."""

    def arrive(self, record: Record) -> list[Output]:
        now, self.clock.now = self.clock.now, max(0, self.clock.now - 1)
        told = super().arrive(record)
        self.clock.now = max(now, self.clock.now)
        return told


class NoTombstones(Behaviour):
    """Leaves a merged session standing."""

    def advance(self) -> list[Output]:
        return [one for one in super().advance() if isinstance(one, Change) and one.value is not None]


def test_the_law_of_the_fold_finds_a_message_that_is_missing_in_a_window() -> None:
    options = {"size": 10, "step": 5}
    assert any(broken_prefix(one, OneWindow) for one in histories_drawn(WINDOWS, 60, options=options))


def test_the_law_of_the_fold_finds_a_close_that_is_off_by_one() -> None:
    assert any(broken_prefix(one, Inclusive) for one in histories_drawn(WINDOWS, 200, options={"size": 5}))


def test_the_law_of_the_fold_finds_a_merged_session_that_stands() -> None:
    options = {"type": "session", "size": 5, "early": {"every_tuples": 1}}
    assert any(broken_prefix(one, NoTombstones) for one in histories_drawn(WINDOWS, 60, options=options))


@pytest.mark.parametrize("policy", ["is_due", "tell"])
def test_the_law_of_the_fold_finds_a_window_that_is_told_twice(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"size": 5, "storage": "full", "early": {"every_tuples": 2}}
    drawn = histories_drawn(WINDOWS, 60, options=options)
    assert not any(broken_prefix(history) for history in drawn)

    class Twice(Behaviour):
        def advance(self) -> list[Output]:
            told = super().advance()
            return told * 2 if policy == "tell" else told[:-1]

    assert any(broken_prefix(history, Twice) for history in drawn)


@pytest.mark.parametrize("seed", [6, 7])
def test_keys_do_not_meet(seed: int) -> None:
    for history in histories_drawn(WINDOWS, 100, seed, null_keys=False):
        assert keys_that_meet(history) == []


class CountsAll(Behaviour):
    """Counts the messages of all keys together."""

    def _fixed(self, key: Any, message: Message) -> bool:
        self.counts[key] = sum(self.counts.values())
        return super()._fixed(key, message)


def test_the_law_of_keys_finds_a_seeded_bug() -> None:
    drawn = histories_drawn(WINDOWS, 60, options={"size": 2, "unit": "tuple"}, null_keys=False)
    assert any(keys_that_meet(history, CountsAll) for history in drawn)


def test_where_every_record_comes_twice_every_count_is_doubled() -> None:
    for history in histories_drawn(WINDOWS, 100, 8, options={"size": 10, "step": 5}):
        once = play(history).result
        assert isinstance(once, dict)
        assert play(twice(history)).result == {row: (value * 2, at) for row, (value, at) in once.items()}


class Distinct(Behaviour):
    """Takes a message that comes again for the same."""

    def arrive(self, record: Record) -> list[Output]:
        seen = getattr(self, "seen", set())
        self.seen = {*seen, record}
        return [] if record in seen else super().arrive(record)


def test_the_law_of_repeats_finds_a_seeded_bug() -> None:
    def broken(history: Any) -> bool:
        once = play(history, Distinct).result
        assert isinstance(once, dict)
        again = play(twice(history), Distinct).result
        return again != {row: (value * 2, at) for row, (value, at) in once.items()}

    assert any(broken(one) for one in histories_drawn(WINDOWS, 60, 8, options={"size": 10, "step": 5}))


def test_a_window_knows_its_untold_messages() -> None:
    message = Message(Record("events", "k", 1, 3), 3)
    filled = Filled(WindowAggregate(10), "k", (0, 10), [message])
    assert filled.untold == [message]
    filled.tell()
    assert filled.untold == []
