"""The law *columns*: what it expects, that it can be asked again alone, and mutants of how columns are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from msgspec import Raw
from streamproof.properties.checking.samples import columns_sample
from streamproof.properties.generators.cohorts import Cohort, clock_schedule, pack, record_batches
from streamproof.properties.generators.layouts import DECLARATIONS, LAYOUTS, NOW_MS, OTHER_KEYS, Layout, Typed
from streamproof.properties.laws.all import law_named
from streamproof.properties.laws.base import CannotRecheck, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.columns import (
    AGAIN_CHANGED,
    AGAIN_LATE,
    AGAIN_NULL,
    InLayout,
    _met,
    expected,
    layouts_of,
    prepared,
    with_null_keys_ahead,
)
from streamproof.properties.laws.runs import Kind, Sample, TypedRun
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.spark import typed
from streamproof.properties.witnesses.spark.answers import Label
from streamproof.properties.witnesses.spark.decode import milliseconds_of
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.typed import AtEndOf, TypedAnswer
from streamproof.properties.witnesses.spark.witness import JobWitness
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.records import Change, Dropped, Record
from streamproof.spark_impl.runtime import state
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.logic import DROPPED, UPDATE
from streamproof.spark_impl.runtime.pages import Pages, Stored
from streamproof.spark_impl.runtime.processor import PACKED

COLUMNS = law_named("columns")
TEXTS, BIGINT, BATCH = LAYOUTS
OUT_OF_ORDER = """{"operator": "range_aggregate", "options": {"preceding_ms": 10}, "clock": "batch"}
{"input": "events", "key": "a", "value": 1, "timestamp": 50}
{"input": "events", "key": "a", "value": 1, "timestamp": 45}
{"input": "events", "key": "a", "value": 1, "timestamp": 50}
{"input": "events", "key": null, "value": 1, "timestamp": 51}
{"cut": true}
{"input": "events", "key": "a", "value": 1, "timestamp": 30}
"""


def history(operator: str = "range_aggregate", **options: Any) -> History:
    header, _, lines = OUT_OF_ORDER.partition("\n")
    named = json.loads(header) | {"operator": operator, "options": options or {"preceding_ms": 10}}
    return parse_history(f"{json.dumps(named)}\n{lines}", "h")


@pytest.mark.parametrize("operator", registered())
def test_an_operator_is_asked_in_every_layout_by_a_profile_of_its_own(operator: str) -> None:
    asked = layouts_of(registration_of(operator))
    assert [one.layout for one in asked] == list(LAYOUTS)
    assert len({repr(sorted(one.options.items())) for one in asked}) == len(LAYOUTS)


@pytest.mark.parametrize("operator", registered())
def test_ten_histories_a_layout_meet_the_law_s_goals(operator: str) -> None:
    registration = registration_of(operator)
    for asked in layouts_of(registration):
        sample = columns_sample(registration, asked, 10, 0)
        answers = [
            replace(
                expected(asked.layout, one), repeated=True, stored=True, refused=sample.more.layout.starts_otherwise
            )
            for one in sample.histories
        ]
        result = LawResult(COLUMNS, goals=tuple(COLUMNS.goals(sample)))
        assert list(COLUMNS.judge(TypedRun(sample, answers), result)) == []  # type: ignore[arg-type]
        assert (result.missing, result.judged) == ([], 10)


@pytest.mark.parametrize("seed", range(3))
def test_of_the_other_declarations_each_operator_has_one_and_ten_have_all(seed: int) -> None:
    asked = [
        columns_sample(one, layouts_of(one)[1], 1, seed).more.layout.starts_otherwise for one in registered().values()
    ]
    assert {len(one) for one in asked} == {1}
    assert {one for (one,) in asked} == {*DECLARATIONS}


def test_without_an_order_a_batch_counts_as_in_order_of_time_and_two_of_one_time_never_come() -> None:
    one = prepared(BIGINT, history())
    assert [record.timestamp for record in one.records] == [50, 45, 51, 30]
    emitted = expected(BIGINT, one).outcome.entries
    assert [(entry.batch, entry.output.value, entry.output.timestamp) for entry in emitted] == [  # type: ignore[union-attr]
        (0, 1, 45),
        (0, 2, 50),
        (1, 1, 30),
    ]  # fmt: skip


def test_with_an_order_records_stay_in_it_and_dropped_ones_are_reported() -> None:
    emitted = expected(TEXTS, prepared(TEXTS, history())).outcome.entries
    assert [entry.output.timestamp if isinstance(entry.output, Change) else entry.output for entry in emitted] == [
        *(50, 45, 50),
        Dropped(None, "null key"),
        30,
    ]


def test_a_batch_frame_is_one_batch_after_which_everything_closes() -> None:
    sessions = history("session_windows", gap_ms=10, emit="close")
    emitted = expected(BATCH, sessions).outcome.entries
    assert [(entry.batch, entry.output.window) for entry in emitted if isinstance(entry.output, Change)] == [
        (0, (30, 30)),
        (0, (45, 50)),
    ]


def test_before_1970_a_stream_has_the_clock_of_1970_and_a_window_by_time_takes_nothing() -> None:
    def dropped(operator: str, **options: Any) -> int:
        one = history(operator, **options)
        layout = replace(BIGINT, reports_dropped=True)
        return sum(entry.output == Dropped("a", "late") for entry in expected(layout, one).outcome.entries)

    # Of the records at 50, 45 and 30 the last is more than the gap before 40, where 1970 begins.
    assert dropped("session_windows", gap_ms=9) == 1
    # It is in no open window either; with windows of 60 ms the history begins 60 ms before 1970.
    assert dropped("window_aggregate", size=20) == 1
    assert dropped("window_aggregate", size=60) == 4
    assert dropped("range_aggregate", preceding_ms=10) == 0


def judged(history: History, answer: TypedAnswer) -> list[Difference]:
    """Return the differences that the law finds between an answer in the first layout and the reference's."""
    asked = InLayout(TEXTS, "profile", history.options, "fractions")
    sample = Sample(registration_of(history.operator), Kind.COLUMNS, "profile", history.options, [history], more=asked)
    found = list(COLUMNS.judge(TypedRun(sample, [answer]), LawResult(COLUMNS)))  # type: ignore[arg-type]
    return [difference for one in found for difference in one.comparison.differences]


MERGED = """{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}
{"input": "events", "key": "a", "value": 1, "timestamp": 50}
{"input": "events", "key": "a", "value": 1, "timestamp": 55}
{"input": "events", "key": null, "value": 1, "timestamp": 10050}
{"cut": true}
{"input": "events", "key": "a", "value": 1, "timestamp": 30}
"""
"""A session that is replaced, a null key far ahead, and a late record: an update, a tombstone, dropped rows."""


def test_each_change_is_expected_with_what_it_is_and_the_record_that_set_it_off() -> None:
    ours = expected(TEXTS, parse_history(MERGED, "h"))
    assert [(one.batch, one.key, one.change, one.cause, one.timestamp) for one in ours.labels] == [
        (0, "a", "update", 0, None),
        (0, "a", "tombstone", 1, None),
        (0, "a", "update", 1, None),
        (0, None, "dropped", 2, 10050),
        (1, "a", "dropped", 3, 30),
    ]
    assert judged(parse_history(MERGED, "h"), ours) == []


@pytest.mark.parametrize(
    ("number", "field"),
    [
        (1, {"change": "update"}),
        (0, {"change": "tombstone"}),
        (0, {"cause": None}),
        (2, {"cause": 0}),
        (2, {"cause": -1}),
        (4, {"timestamp": 31}),
        (3, {"timestamp": None}),
        (3, {"cause": None}),
        (4, {"change": "update"}),
    ],
)
def test_a_change_that_is_labelled_otherwise_violates_the_law(number: int, field: dict[str, Any]) -> None:
    ours = expected(TEXTS, parse_history(MERGED, "h"))
    labels = [one._replace(**field) if at == number else one for at, one in enumerate(ours.labels)]
    assert judged(parse_history(MERGED, "h"), replace(ours, labels=labels))


def test_what_the_clock_closes_has_no_cause_and_without_an_order_nothing_has() -> None:
    closed = history("session_windows", gap_ms=10, emit="close")
    assert {one.cause for one in expected(BATCH, closed).labels if one.change == "update"} == {None}
    merged = expected(BIGINT, prepared(BIGINT, parse_history(MERGED, "h")))
    assert merged.labels
    assert {one.cause for one in merged.labels} == {None}


def test_what_is_wrong_in_an_answer_violates_the_law() -> None:
    ours = expected(TEXTS, parse_history(MERGED, "h"))
    wrong = Difference(0, ["ordinals that are all different"], ["the ordinals [0, 0]"], "a", "h")
    assert judged(parse_history(MERGED, "h"), replace(ours, wrong=[wrong])) == [wrong]


def test_null_keys_go_far_ahead_where_they_are_dropped_and_stay_where_they_move_the_clock() -> None:
    assert [one.timestamp for one in with_null_keys_ahead(history()).records] == [50, 45, 50, 51 + 10_000, 30]
    options = {"join": "left", "before_ms": 1, "after_ms": 1, "null_key": "keep"}
    kept = History("stream_stream_join", options, (Record("left", None, 1, 5),), "batch", "kept")
    assert with_null_keys_ahead(kept) == kept


RIGHT = [
    ("update", None, 50, 50, 1, 0, 1),
    ("tombstone", None, 50, 50, None, 1, 2),
    ("update", None, 50, 55, 2, 2, 2),
]
WHEN = {1: 50, 2: 55}
"""When the rows came that set off what `RIGHT` has."""


def written(*rows: tuple[Any, ...]) -> pa.Table:
    """Make what a query writes of `MERGED`'s key: of each row change, reason, start, end, value, ordinal, cause."""
    times = pa.timestamp("us", "UTC")

    def at(column: int) -> list[int]:
        return [1000 * (NOW_MS + row[column]) for row in rows]

    bounds = [pa.array(at(column), pa.int64()).cast(times) for column in (2, 3)]
    first, second = TEXTS.keys.of(0, 0, 1)
    return pa.table(
        {
            "key_0": [first] * len(rows),
            "key_1": [second] * len(rows),
            "window": pa.StructArray.from_arrays(bounds, names=["start", "end"]),
            "value": pa.array([row[4] for row in rows], pa.int64()),
            "timestamp": bounds[1],
            "change": [row[0] for row in rows],
            "reason": pa.array([row[1] for row in rows], pa.string()),
            "cause": pa.array([row[6] for row in rows], pa.int64()),
            "ordinal": pa.array([row[5] for row in rows], pa.int32()),
            "place": [{"phase": 0, "at": NOW_MS + WHEN[row[6]], "step": row[5]} for row in rows],
        }
    )


def answered(
    monkeypatch: pytest.MonkeyPatch, *outputs: StreamOutput | Exception, count: int = 1, text: str = MERGED
) -> list[TypedAnswer]:
    """Return what the witness makes of queries that write this, one after the other; the last one goes on."""
    waiting = list(outputs)

    def run(*args: Any, **options: Any) -> StreamOutput:
        output = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(output, Exception):
            raise output
        return output

    monkeypatch.setattr(typed, "run_stream", run)
    monkeypatch.setattr(typed, "session_for_query", lambda settings: nullcontext())
    histories = tuple(parse_history(text, f"h{number}") for number in range(count))
    cohort = Cohort("session_windows", histories[0].options, clock_schedule(histories[0]), histories)
    return typed.TypedSparkWitness(TEXTS, NOW_MS).typed_answers(cohort)


def test_the_witness_reads_a_changelog_as_the_history_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = written(RIGHT[2], RIGHT[0], RIGHT[1])
    (answer,) = answered(monkeypatch, StreamOutput([(0, shuffled)], replayed=[(written(*RIGHT), shuffled)]))
    ours = expected(TEXTS, parse_history(MERGED, "h"))
    assert answer.labels == ours.labels[:3]
    assert [one.output for one in answer.outcome.entries] == [one.output for one in ours.outcome.entries[:3]]
    assert (answer.wrong, answer.repeated, answer.failed) == ([], True, None)


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ([*RIGHT[:2], ("update", None, 50, 55, 3, 2, 2)], "value=3"),
        ([*RIGHT[:2], ("update", None, 50, 55, 2, 2, 1)], "caused by 0"),
        ([RIGHT[0], ("update", *RIGHT[1][1:]), RIGHT[2]], "update, caused by 1"),
        (RIGHT[:2], "tombstone"),
    ],
)
def test_a_batch_that_wrote_something_else_at_first_is_wrong(
    monkeypatch: pytest.MonkeyPatch, first: list[tuple[Any, ...]], says: str
) -> None:
    after = written(*RIGHT)
    (answer,) = answered(monkeypatch, StreamOutput([(0, after)], replayed=[(written(*first), after)]))
    (wrong,) = answer.wrong
    assert (wrong.key, wrong.when) == ("a", 0)
    assert says in str(wrong.expected)


def test_ordinals_of_a_key_that_repeat_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = answered(monkeypatch, StreamOutput([(0, written(*[(*row[:5], 0, row[6]) for row in RIGHT]))]))
    (wrong,) = answer.wrong
    assert wrong.actual == ["the ordinals [0, 0, 0]"]


def test_a_dropped_row_with_a_window_and_a_time_between_two_milliseconds_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (answer,) = answered(monkeypatch, StreamOutput([(0, written(("dropped", "late", 50, 55, None, 0, 1)))]))
    assert [label.change for label in answer.labels] == ["dropped from a window"]
    assert milliseconds_of(pa.array([1_500, 2_000, None], pa.timestamp("us"))) == [1.5, 2, None]


def test_a_changelog_that_cant_be_read_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = answered(monkeypatch, StreamOutput([(0, written(*RIGHT).drop_columns(["cause"]))]))
    assert answer.failed == "alone"
    (entry,) = answer.outcome.entries
    assert isinstance(entry.output, Dropped)
    assert entry.output.reason.startswith("failed: the query's output can't be read: KeyError")


TIME = pa.timestamp("us", "UTC")
CHANGELOG = pa.schema(
    {
        "key_0": pa.string(),
        "key_1": pa.string(),
        "window": pa.struct({"start": TIME, "end": TIME}),
        "value": pa.int64(),
        "timestamp": TIME,
        "change": pa.string(),
        "reason": pa.string(),
        "cause": pa.int64(),
        "ordinal": pa.int32(),
        "place": pa.struct({"phase": pa.int32(), "at": pa.int64(), "step": pa.int32()}),
    }
)
CLOSED = MERGED.replace('"gap_ms": 10', '"gap_ms": 10, "emit": "close"') + '{"heartbeat": 90}\n{"cut": true}\n'


def at_spark(ms: int | None) -> datetime | None:
    return None if ms is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=NOW_MS + ms)


def right_rows(history: History) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a right changelog in the first layout, each with its batch."""
    batch_of = [batch for batch, records in enumerate(record_batches(history)) for _ in records]
    ours = expected(TEXTS, history)
    for number, (entry, label) in enumerate(zip(ours.outcome.entries, ours.labels, strict=True)):
        output, cause = entry.output, label.cause
        at = None if cause is None else history.records[cause].timestamp
        change = output if isinstance(output, Change) else Change(None, None, None, label.timestamp or 0)
        bounds = [at_spark(one) for one in change.window or ()]
        row = {
            "window": dict(zip(("start", "end"), bounds, strict=True)) if bounds else None,
            "value": change.value,
            "timestamp": at_spark(change.timestamp),
            "change": label.change,
            "reason": output.reason if isinstance(output, Dropped) else None,
            "cause": None if cause is None else cause + batch_of[cause] + 1,  # after the reserved key's rows
            "ordinal": number,
            "place": {
                "phase": -1 if at is None else 0,
                "at": NOW_MS + (max(change.window or (0,)) if at is None else at),
                "step": number,
            },
        }
        key = TEXTS.keys.null(0, at or 0) if output.key is None else TEXTS.keys.of(0, 0, 1)
        yield label.batch, {"key_0": key[0], "key_1": key[1], **row}


def spoilt(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a row with another cell, or another field of one, and the name of that."""
    for name, value in row.items():
        match value:
            case dict():
                yield from ((f"{name}.{field}", {**row, name: other}) for field, other in spoilt(value))
            case str() | bytes():
                yield name, {**row, name: value + value[:1] + type(value)(b"x" if isinstance(value, bytes) else "x")}
            case datetime():
                yield from ((name, {**row, name: value + by * timedelta(milliseconds=1)}) for by in (0.001, 1, -1))
            case int():
                yield from ((name, {**row, name: value + by}) for by in (1, -1, 2**20))
        if value is not None:
            yield name, {**row, name: None}


@pytest.mark.parametrize("text", [MERGED, CLOSED])
def test_each_cell_of_a_changelog_counts(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    one = parse_history(text, "h0")
    rows = [*right_rows(one)]

    def found(rows: list[tuple[int, dict[str, Any]]]) -> list[Difference]:
        batches = {
            batch: pa.Table.from_pylist([row for at, row in rows if at == batch], CHANGELOG) for batch, _ in rows
        }
        (answer,) = answered(monkeypatch, StreamOutput([*batches.items()]), text=text)
        return judged(one, answer)

    assert found(rows) == []
    for number, (batch, row) in enumerate(rows):
        for name, other in spoilt(row):
            assert found([*rows[:number], (batch, other), *rows[number + 1 :]]), (name, row, other)
        assert found([*rows[:number], (batch + 1, row), *rows[number + 1 :]])
        assert found([*rows[:number], *rows[number + 1 :]])


class Ended:
    """What the witness asks of a query that has ended, in place of one: its state, and starts of other declarations."""

    stages, checkpoint = 1, "checkpoint"

    def __init__(self, refusals: Sequence[str | None] = ()) -> None:
        self.refusals = iter(refusals)

    def stored(self, stage: int) -> list[dict[str, Any]]:
        pages = Pages(None)
        for of, due in enumerate((None, NOW_MS + 9)):
            key = encode(TEXTS.keys.of(0, of, 2))
            pages.page_of(key)[key] = Stored(Raw(encode([[[NOW_MS, of]]])), NOW_MS + of, due)
        packed = pages.packed()
        return [{"value": {PACKED: packed and packed[0]}}]

    def refusal(self, build: Any) -> str | None:
        return next(self.refusals)


def looked(monkeypatch: pytest.MonkeyPatch, layout: Layout, ended: Ended, rows: Any = ()) -> AtEndOf:
    """Return what the witness finds at the end of a query whose `read_state` returns these rows."""
    monkeypatch.setattr(state, "read_state", lambda *args, **options: None)
    monkeypatch.setattr(typed, "arrow_table_of", lambda frame: SimpleNamespace(to_pylist=lambda: [*rows]))
    one, found = parse_history(MERGED.replace("null", '"b"'), "h0"), AtEndOf()
    cohort = Cohort("session_windows", one.options, clock_schedule(one), (one,))
    witness = typed.TypedSparkWitness(layout, NOW_MS)
    witness._look_at_end(ended, cohort, Typed(layout, cohort, (), pack(cohort, ()), NOW_MS), found)  # type: ignore[arg-type]
    return found


def test_each_cell_that_read_state_reads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(rows: list[dict[str, Any]]) -> list[Difference]:
        at_end = looked(monkeypatch, TEXTS, Ended(), rows)
        return [*at_end.of_all, *(one for of in at_end.wrong.values() for one in of)]

    rows = [
        {
            "key": dict(enumerate(TEXTS.keys.of(0, of, 2))),
            "state": {"sessions": [[NOW_MS, of]]},
            "closed": at_spark(of),
            "due": due,
            "packed": encode([[[NOW_MS, of]]]),
        }
        for of, due in enumerate((None, at_spark(9)))
    ]
    assert (found(rows), looked(monkeypatch, TEXTS, Ended(), rows).stored) == ([], {0})
    for number, row in enumerate(rows):
        for name, other in [*spoilt(row), ("due", {**row, "due": at_spark(8)}), ("state", {**row, "state": {"": []}})]:
            assert name == "key" or found([*rows[:number], other, *rows[number + 1 :]]), name
        assert found([*rows[:number], *rows[number + 1 :]])
        assert found([*rows, row])


def test_a_start_under_another_declaration_must_be_refused_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    said = dict.fromkeys(DECLARATIONS, "the checkpoint was written by ") | {OTHER_KEYS: "the checkpoint stores "}
    assert looked(monkeypatch, BIGINT, Ended([*said.values()])).of_all == []
    for number in range(len(said)):
        for wrong in (None, "the query failed", [*said.values()][(number + 1) % len(said)][:-3]):
            refusals = [wrong if at == number else one for at, one in enumerate(said.values())]
            (one,) = looked(monkeypatch, BIGINT, Ended(refusals)).of_all
            assert one.actual == [wrong or "it went on"]


def test_of_a_query_that_fails_one_history_is_found_that_makes_it_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, empty = QueryFailed("a worker ended"), StreamOutput([(0, written(*RIGHT[:0]))])
    every = answered(monkeypatch, broken, count=4)
    assert [one.failed for one in every] == ["alone", "together", "together", "together"]
    # All fail, the first doesn't; of the others neither the first alone, nor, it must be, the second one.
    second = answered(monkeypatch, broken, empty, empty, broken, count=3)
    assert [one.failed for one in second] == [None, None, "alone"]


def test_the_law_is_not_asked_of_jobs_nor_of_options_that_no_layout_has() -> None:
    unknown = history(preceding_ms=77)
    with pytest.raises(CannotRecheck, match="are unknown"):
        COLUMNS.recheck([Case(unknown)])
    with pytest.raises(CannotRecheck, match="a job"):
        COLUMNS.recheck([Case(unknown)], JobWitness(lambda frame: frame))


@pytest.mark.parametrize(
    ("key", "change", "goal"),
    [("a", UPDATE, AGAIN_CHANGED), (None, DROPPED, AGAIN_NULL), ("a", DROPPED, AGAIN_LATE)],
)
def test_a_repeated_batch_has_shown_what_it_emits_and_drops(key: str | None, change: str, goal: str) -> None:
    (asked, *_) = (one for one in layouts_of(registration_of("range_aggregate")) if one.layout.crash_in is not None)
    at, drawn = asked.layout.crash_in or 0, history()
    ours = expected(asked.layout, drawn)
    for batch, repeated, shown in ((at, True, {goal}), (at + 1, True, set()), (at, False, set())):
        labelled = replace(ours, labels=[Label(batch, key, change, 0)])
        met = {*_met(asked, drawn, labelled, replace(labelled, repeated=repeated))}
        assert met & {AGAIN_CHANGED, AGAIN_NULL, AGAIN_LATE} == shown
