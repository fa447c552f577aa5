"""Samza's window operator, option by option."""

from __future__ import annotations

from typing import Any

import pytest
from notation import changelog, histories_drawn, history_of, lines_of, shown, steps
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Output, Record, bag
from streamproof.reference.definitions.aggregates import LIST, SUM
from streamproof.reference.definitions.windows import Early, WindowAggregate
from streamproof.reference.window_aggregate import Behaviour

WINDOWS = "window_aggregate"


def machine_of(*, size: int = 10, storage: Any = "full", **options: Any) -> Behaviour:
    return Behaviour(WindowAggregate(size, storage=storage, **options), StreamTime())


def records(machine: Behaviour, earliest: int, latest: int, **fields: Any) -> list[Any]:
    return [(one.key, one.value, one.timestamp) for one in machine.messages(earliest, latest, **fields)]


def fed(machine: Behaviour, text: str) -> list[str]:
    emitted: list[Output] = []
    for record in lines_of(text):
        assert isinstance(record, Record)
        emitted += machine.arrive(record)
    return list(map(shown, emitted))


# Size: a window is emitted once it is complete.


COMPLETE = [
    ("k@1 k@5 ~9", ""),
    ("k@1 k@5 ~10", "k[0,10]=2@5"),
    ("k@5 k=∅@1 k@10", "k[0,10]=2@5"),
    ("k@1 ~99 ~199", "k[0,10]=1@1"),
]


@pytest.mark.parametrize(("text", "emitted"), COMPLETE)
def test_a_window_is_emitted_once_when_the_clock_reaches_its_end(text: str, emitted: str) -> None:
    assert changelog(text, WINDOWS, size=10) == emitted


def test_windows_are_emitted_by_end_then_key() -> None:
    assert changelog("b@1 a@2 b@12 a@11 ~50", WINDOWS, size=10) == (
        "a[0,10]=1@2 b[0,10]=1@1 a[10,20]=1@11 b[10,20]=1@12"
    )


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [("count", "3"), ("sum", "9"), ("min", "2"), ("max", "4"), ("list", "(4,2,3)"), ("average", "3.0")],
)
def test_a_window_is_emitted_as_the_aggregate_of_its_messages_in_order_of_arrival(aggregate: str, value: str) -> None:
    assert changelog("k=4@3 k=2@1 k=3@2 ~10", WINDOWS, size=10, aggregate=aggregate) == f"k[0,10]={value}@3"


# Step.


@pytest.mark.parametrize(
    ("step", "text", "emitted"),
    [
        (5, "k@3 ~99", "k[0,10]=1@3"),
        (5, "k@7 k@12 ~99", "k[0,10]=1@7 k[5,15]=2@12 k[10,20]=1@12"),
        (4, "k@7 ~99", "k[0,10]=1@7 k[4,14]=1@7"),
    ],
)
def test_a_message_is_in_every_window_that_includes_it_and_none_starts_before_0(
    step: int, text: str, emitted: str
) -> None:
    assert changelog(text, WINDOWS, size=10, step=step) == emitted


# Windows by tuple.


BY_TUPLE = [
    ({"size": 2}, "k=1 k=2 k=4 k=8", ["-", "k[0,2]=3@1", "-", "k[2,4]=12@3"]),
    ({"size": 2, "step": 1}, "k=1 k=2 k=4", ["-", "k[0,2]=3@1", "k[1,3]=6@2"]),
    ({"size": 3, "step": 2}, "k=1 k=2 k=4 k=8 k=16", ["-", "-", "k[0,3]=7@2", "-", "k[2,5]=28@4"]),
    ({"size": 1}, "k=1 k=2", ["k[0,1]=1@0", "k[1,2]=2@1"]),
    ({"size": 2}, "k=1 j=2 k=4", ["-", "-", "k[0,2]=5@2"]),
    ({"size": 2}, "k=1@50 k=2@1", ["-", "k[0,2]=3@50"]),
    ({"size": 2}, "k=1 ~99 k=2", ["-", "-", "k[0,2]=3@1"]),
    ({"size": 3, "early": {"every_tuples": 1}}, "k=1 k=2 k=4", ["k[0,3]=1@0", "k[0,3]=3@1", "k[0,3]=7@2"]),
]


@pytest.mark.parametrize(("options", "text", "emitted"), BY_TUPLE)
def test_a_window_by_tuple_is_complete_with_its_last_message_and_nothing_is_late(
    options: dict[str, Any], text: str, emitted: list[str]
) -> None:
    assert steps(text, WINDOWS, unit="tuple", aggregate="sum", **options) == emitted


# Early emission.


EARLY = [
    ({"every_tuples": 1}, "k@1 k@2 ~10", ["k[0,10]=1@1", "k[0,10]=2@2", "-"]),
    ({"every_tuples": 2}, "k@1 k@2 k@3 ~10", ["-", "k[0,10]=2@2", "-", "k[0,10]=3@3"]),
    ({"every_tuples": 2}, "k@1 j@1 k@2", ["-", "-", "k[0,10]=2@2"]),
    ({"every_ms": 4}, "k@1 k@3 k@4 ~7 ~8", ["-", "-", "k[0,10]=2@3", "-", "k[0,10]=3@4"]),
    ({"every_ms": 4}, "k@1 ~3 ~4 ~8 ~10", ["-", "-", "k[0,10]=1@1", "-", "-"]),
    ({"every_ms": 4}, "z@3 k@1 ~4", ["-", "-", "k[0,10]=1@1 z[0,10]=1@3"]),
    ({"every_ms": 4}, "k@1 k@2 ~30", ["-", "-", "k[0,10]=2@2"]),
    (None, "k@1 k@2 ~9", ["-", "-", "-"]),
]


@pytest.mark.parametrize(("early", "text", "emitted"), EARLY)
def test_a_window_is_emitted_early_as_the_policy_says(
    early: dict[str, int] | None, text: str, emitted: list[str]
) -> None:
    assert steps(text, WINDOWS, size=10, early=early) == emitted


def test_of_several_windows_each_is_emitted_by_its_own_not_emitted_messages() -> None:
    emitted = steps("k@3 k@7", WINDOWS, size=10, step=5, early={"every_tuples": 2})
    assert emitted == ["-", "k[0,10]=2@7"]


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


@pytest.mark.parametrize(("options", "text", "emitted"), LATE)
def test_a_late_message_is_dropped_or_updates_the_windows_that_are_kept(
    options: dict[str, Any], text: str, emitted: list[str]
) -> None:
    assert steps(text, WINDOWS, size=10, **options) == emitted


def test_a_dropped_message_moves_no_clock_back() -> None:
    assert play(history_of("k@30 k@1", WINDOWS, size=10)).clock == 30


# Sessions.


SESSIONS = [
    ({}, "k@0 k@10 ~20 ~21 k@10", ["-", "-", "-", "k[0,10]=2@10", "k!late"]),
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


@pytest.mark.parametrize(("options", "text", "emitted"), SESSIONS)
def test_a_session_ends_a_gap_after_its_last_message(options: dict[str, Any], text: str, emitted: list[str]) -> None:
    assert steps(text, WINDOWS, type="session", size=10, **options) == emitted


def test_messages_of_merged_sessions_are_in_session_order_and_the_new_one_last() -> None:
    options = {"type": "session", "size": 10, "aggregate": "list", "retention_ms": 20, "late": "update"}
    assert changelog("k=a@20 k=b@0 k=c@10 ~99", WINDOWS, **options).endswith("k[0,20]=(b,a,c)@20")


def test_sessions_are_the_session_windows_that_emit_on_close() -> None:
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


@pytest.mark.parametrize(("options", "text", "emitted"), FULL)
def test_full_storage_emits_each_message_once_a_window(options: dict[str, Any], text: str, emitted: list[str]) -> None:
    assert steps(text, WINDOWS, storage="full", **{"size": 10, **options}) == emitted


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


KEPT = [
    # options, messages, then a clock at which those of k are kept, and one at which they are forgotten
    ({}, "k=a@1", 9, 10),
    ({"step": 5}, "k=a@7", 14, 15),
    ({"retention_ms": 5}, "k=a@1", 14, 15),
    ({"type": "session", "retention_ms": 5}, "k=a@1", 16, 17),
    ({"size": 2, "unit": "tuple", "retention_ms": 100}, "k=a@1 k=b@1", 101, 102),
]


@pytest.mark.parametrize(("options", "text", "kept", "forgotten"), KEPT)
def test_messages_are_kept_once_for_the_retention_after_their_window_is_complete(
    options: dict[str, Any], text: str, kept: int, forgotten: int
) -> None:
    for clock in (kept, forgotten):
        machine = machine_of(**options)
        fed(machine, f"{text} z=z@{clock}")
        found = [key for key, _, _ in records(machine, 0, 99) if key == "k"]
        assert found == (["k"] * len(text.split()) if clock == kept else [])


def test_the_messages_of_an_aggregated_window_cannot_be_read() -> None:
    with pytest.raises(BadInput, match="the messages of an aggregated window can't be read: use storage full"):
        machine_of(storage="aggregate").messages(0, 9)


# Callbacks.


def test_before_process_may_change_a_record_and_leave_it_out() -> None:
    def process(record: Record) -> Record | None:
        return None if record.value == "skip" else record._replace(value=record.value * 2)

    windows = WindowAggregate(10, aggregate=LIST, before_process=process)
    machine = Behaviour(windows, StreamTime())
    emitted = fed(machine, "k=1@1 k=skip@2 k=3@3 k=skip@50 k=9@10")
    assert emitted == ["k!filtered", "k!filtered", "k[0,10]=(2,6)@3"]


def test_before_process_may_give_a_message_another_key_and_timestamp() -> None:
    windows = WindowAggregate(10, before_process=lambda record: record._replace(key="all", timestamp=5))
    machine = Behaviour(windows, StreamTime())
    assert fed(machine, "k@1 j@90") == []
    assert machine.clock.now == 5


def test_before_send_may_change_what_is_emitted_and_keep_it_back() -> None:
    def send(change: Change) -> Change | None:
        return None if change.value < 2 else change._replace(value=change.value * 10)

    machine = Behaviour(WindowAggregate(10, before_send=send), StreamTime())
    assert fed(machine, "k@1 k@2 j@3 z@10") == ["k[0,10]=20@2"]


def test_what_before_send_keeps_back_is_not_emitted_later() -> None:
    windows = WindowAggregate(10, early=Early(every_tuples=1), before_send=lambda change: None)
    assert fed(Behaviour(windows, StreamTime()), "k@1 k@2 z@10") == []


# What is dropped.


def test_full_storage_means_its_messages_whatever_the_aggregate_could_take() -> None:
    history = history_of("a=x@0 a=y@10", WINDOWS, size=10, storage="full", aggregate="average")
    played = play(history)
    assert operator_named(WINDOWS).meaning(played.definition, played.accepted, played.clock) == played.result
    assert [change.value for change in played.result] == ["x"]


# Laws.


@pytest.mark.parametrize("storage", ["aggregate", "full"])
def test_the_fold_is_the_meaning_with_callbacks_too(storage: Any) -> None:
    def process(record: Record) -> Record | None:
        return None if record.value % 3 == 0 else record._replace(value=record.value + 1)

    def send(change: Change) -> Change | None:
        return None if change.value is not None and change.value % 2 else change

    windows = WindowAggregate(
        5, storage=storage, aggregate=SUM, before_process=process, before_send=send, early=Early(every_tuples=2)
    )
    emitted = 0
    for history in histories_drawn(WINDOWS, 100, 5, options={"size": 5, "aggregate": "sum"}):
        played = play(history, lambda _, clock: Behaviour(windows, clock))
        outputs = [entry.output for entry in played.entries if isinstance(entry.output, Change)]
        meant = OPERATORS[WINDOWS].meaning(windows, played.accepted, played.clock)
        if storage == "full":
            assert bag(outputs) == meant
        else:
            # What is kept back leaves what was emitted before: the last change of a window decides.
            assert set(meant) <= {(change.key, change.window) for change in outputs}
        emitted += len(outputs)
    assert emitted > 20


@pytest.mark.parametrize("retention_ms", [0, 100])
@pytest.mark.parametrize(
    ("text", "emitted"),
    [
        ("a@0 b@15 a@8 ~99", "a[0,0]=1@0 a[8,8]=1@8 b[15,15]=1@15"),
        ("a@0 b@10 a@8 ~99", "a[0,8]=2@8 b[10,10]=1@10"),
    ],
)
def test_a_session_that_is_complete_takes_no_message_though_it_is_stored(
    retention_ms: int, text: str, emitted: str
) -> None:
    assert changelog(text, WINDOWS, size=10, type="session", retention_ms=retention_ms) == emitted
