"""How histories are put into shared queries, and what comes back of them; without Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deduplicate import register_deduplicate
from memory_runtime import decode
from msgspec import Raw
from shared_player import CHANGELOG, play_shared
from streamproof import History, parse_history, play
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import registration_of, unregister
from streamproof.properties.registration.shared import FAILED, SharedOutput
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark.answers import Label, of_query
from streamproof.properties.witnesses.spark.dispatch import NOBODY
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.shared import (
    GROUPS,
    PARTITION,
    Play,
    _read,
    groups_of,
    shared_queries,
    stored_in,
    tables_of,
)
from streamproof.reference.core.operator import OPERATORS
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.logic import TOMBSTONE, UPDATE
from streamproof.spark_impl.runtime.pages import Pages, Stored
from streamproof.spark_impl.runtime.processor import PACKED

SESSIONS = '{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}'
RANGES = '{"operator": "range_aggregate", "options": {"preceding_ms": 10}, "clock": "batch"}'
TABLES = '{"operator": "table_table_join", "options": {}, "clock": "batch"}'
GROUPED = '{"operator": "table_aggregate", "options": {"group_by": "g"}, "clock": "batch"}'
REFERRING = '{"operator": "foreign_key_join", "options": {"foreign_key": "fk"}, "clock": "batch"}'


def history(header: str, *lines: str) -> History:
    return parse_history("\n".join((header, *lines)) + "\n", "h")


def record(key: str, timestamp: int, value: str = "1", side: str = "events") -> str:
    return f'{{"input": "{side}", "key": {key}, "value": {value}, "timestamp": {timestamp}}}'


def advance(clock: int) -> str:
    return f'{{"heartbeat": {clock}}}'


CUT = '{"cut": true}'
"""A cut, as in a history file."""


class Laid(NamedTuple):
    """A row of a shared query."""

    history: int
    key: str | None
    timestamp: int
    clock: int | None
    order: int
    stage: int
    value: Any


def rows_of(table: pa.Table) -> list[Laid]:
    """List the rows of a batch; a value has its input before it."""
    rows = [Laid(*row.values()) for row in table.to_pylist()]
    return [row._replace(value=None if row.value is None else decode(row.value)) for row in rows]


def of_histories(table: pa.Table) -> list[Laid]:
    """List the rows of histories in order of arrival: those for the clock alone are none."""
    return sorted((row for row in rows_of(table) if row.history != NOBODY), key=lambda row: row.order)


def clocks_of(tables: Sequence[pa.Table]) -> list[list[int | None]]:
    """List of each batch the clock of its rows for the clock alone."""
    return [[row.clock for row in rows_of(table) if row.history == NOBODY] for table in tables]


def test_histories_of_one_clock_share_a_query_whatever_their_operators() -> None:
    sessions = Play(history(SESSIONS, record('"a"', 0), advance(20)))
    others = Play(history(SESSIONS.replace("10", "5"), record('"b"', 3), advance(20)))
    assert shared_queries([sessions, others]) == [[0, 1]]


def test_histories_of_another_clock_have_another_query() -> None:
    plays = [Play(history(SESSIONS, record('"a"', 0), advance(clock))) for clock in (20, 30, 20)]
    assert shared_queries(plays) == [[0, 2], [1]]


def test_histories_without_a_clock_ride_with_any_schedule() -> None:
    untimed = [Play(history(TABLES, record('"a"', clock, side="left"), advance(clock))) for clock in (5, 99)]
    timed = [Play(history(SESSIONS, record('"a"', 0), advance(clock))) for clock in (20, 30)]
    assert shared_queries([untimed[0], *timed, untimed[1]]) == [[0, 1, 3], [2]]
    assert shared_queries(untimed) == [[0, 1]]


def test_a_history_that_is_longer_than_every_schedule_has_another_query() -> None:
    long = [record('"a"', 5, side="left"), CUT] * 2
    plays = [Play(history(SESSIONS, record('"a"', 0), advance(20))), Play(history(TABLES, *long, advance(20)))]
    assert shared_queries(plays) == [[0], [1]]


def test_histories_in_stages_share_a_query_of_their_own() -> None:
    staged = Play(history(REFERRING, record('"r"', 0, side="right")))
    untimed = Play(history(TABLES, record('"a"', 0, side="left")))
    assert shared_queries([staged, untimed, staged]) == [[1], [0, 2]]
    assert shared_queries([staged]) == [[0]]


def test_every_history_is_in_one_query() -> None:
    pools = pools_on_spark([registration_of(name) for name in OPERATORS], 1, 3)
    plays = [Play(one) for sample in next(iter(pools)) for one in sample.histories]
    queries = shared_queries(plays)
    assert sorted(number for query in queries for number in query) == [*range(len(plays))]


def test_rows_are_laid_out_in_another_order_than_they_say() -> None:
    lines = [record('"a"', time, str(time)) for time in (4, 3, 9, 1)]
    (table,) = tables_of([Play(history(RANGES, *lines))])
    orders = [row.order for row in rows_of(table) if row.history != NOBODY]
    assert sorted(orders) == [0, 1, 2, 3]
    assert orders not in ([0, 1, 2, 3], [3, 2, 1, 0])
    assert [(row.key, row.timestamp, row.value) for row in of_histories(table)] == [
        ("a", t, ["events", t]) for t in (4, 3, 9, 1)
    ]


def test_orders_go_over_all_histories_and_batches() -> None:
    cut = [record('"a"', 1), CUT, record('"a"', 2)]
    tables = tables_of([Play(history(RANGES, *cut)), Play(history(RANGES, *cut, record('"b"', 3)))])
    assert [[(row.history, row.timestamp) for row in of_histories(table)] for table in tables] == [
        [(0, 1), (1, 1)],
        [(0, 2), (1, 2), (1, 3)],
    ]
    orders = [row.order for table in tables for row in of_histories(table)]
    assert sorted(orders) == [*range(5)]


def test_every_batch_moves_the_clock_even_without_rows() -> None:
    timed = history(SESSIONS, record('"a"', 0), advance(7), CUT, advance(30))
    longer = history(TABLES, *[record('"a"', 0, side="left"), CUT] * 3, record('"a"', 0, side="left"))
    assert clocks_of(tables_of([Play(timed), Play(longer)])) == [[7], [30], [30], [30]]


def test_rows_of_a_history_move_the_clock_only_where_it_means_something_to_it() -> None:
    timed, untimed = history(SESSIONS, record('"a"', 3)), history(TABLES, record('"a"', 99, side="left"))
    (table,) = tables_of([Play(timed), Play(untimed)])
    assert [(row.history, row.clock) for row in of_histories(table)] == [(0, 3), (1, None)]


def test_where_the_clock_means_nothing_to_any_history_it_moves_as_the_longest_one_says() -> None:
    short = history(RANGES, record('"a"', 9))
    longer = history(RANGES, record('"a"', 3), CUT, record('"a"', 50), CUT, record('"a"', 20))
    assert clocks_of(tables_of([Play(short), Play(longer)])) == [[3], [50], [50]]


def test_a_range_aggregate_that_takes_rows_behind_the_clock_for_dropped_ones_shows() -> None:
    mutant = registration_of("range_aggregate").mutants["answered_as_dropped"].logic
    late = history(RANGES, record('"a"', 500), CUT, record('"a"', 3))
    assert differing([Play(late)]) == []
    assert differing([Play(late, mutant)]) == [late]


def test_histories_are_spread_over_the_groups() -> None:
    plays = [Play(history(RANGES, record('"a"', 0))) for _ in range(GROUPS + 3)]
    assert [groups_of(plays), groups_of(plays[:3]), groups_of(plays, 2)] == [GROUPS, 3, 2]
    found = play_shared(plays, RunOptions(partitions=8))
    # As many partitions as there are: no history waits for all others.
    assert found.emitting == 8
    assert [len(labels) for labels in found.labels] == [1] * len(plays)


def test_rows_of_stages_go_to_their_stage_and_operators_of_fewer_stages_take_part_in_the_last_ones() -> None:
    lines = record('"r"', 5, side="right"), record('"l"', 6, '{"fk": "r"}', "left")
    referring = Play(history(REFERRING, *lines))
    grouped = Play(history(GROUPED, record('"a"', 7, '{"g": "x"}')))
    (table,) = tables_of([referring])
    assert [(row.key, row.stage) for row in of_histories(table)] == [("r", 1), ("l", 0)]
    (table,) = tables_of([referring, grouped])
    assert [(row.key, row.stage) for row in of_histories(table)] == [("r", 1), ("l", 0), ("a", 1)]
    (table,) = tables_of([grouped])
    assert [row.stage for row in of_histories(table)] == [0]
    assert differing([referring, grouped]) == []


def written(*changes: SharedOutput) -> pa.Table:
    """Make what a query writes in a batch, in no order: of each change its ordinal is its place."""

    def in_us(time: int | None) -> int | None:
        return None if time is None else 1000 * time

    rows = [
        {
            "history": one.history,
            "key": one.key[0],
            "window": None if one.start is None else {"start": in_us(one.start), "end": in_us(one.end)},
            "value": None if one.value is None else encode(one.value),
            "timestamp": in_us(one.timestamp),
            "change": one.change,
            "reason": one.reason,
            "cause": one.cause,
            "ordinal": ordinal,
            PARTITION: len(changes),
        }
        for ordinal, one in enumerate(changes)
    ]
    return pa.Table.from_pylist(rows[::-1], CHANGELOG)


def packed(*keys: tuple[tuple[Any, ...], list[Any], int, int | None]) -> dict[str, Any]:
    """Make a group's row of Spark's state data source: of each key its fields, when it emitted and when it is due."""
    pages = Pages(None)
    for key, fields, emitted, due in keys:
        of_key = encode(key)
        pages.page_of(of_key)[of_key] = Stored(Raw(encode(fields)), emitted, due)
    found = pages.packed()
    assert found is not None
    return {"value": {PACKED: found[0]}}


def test_what_is_read_goes_to_its_history_with_its_batch_its_window_its_cause_and_its_state() -> None:
    plays = [Play(history(SESSIONS, record('"a"', 0))), Play(history(TABLES, record('"a"', 0, side="left")))]
    session = SharedOutput(0, ("a",), 0, 5, 2, 5, UPDATE, None, 0)
    # Its cause is the second record of all, and the first of its own history.
    gone = SharedOutput(1, ("a",), None, None, None, 9, TOMBSTONE, None, 1)
    failed = SharedOutput(1, ("b",), None, None, None, None, FAILED, "failed: ValueError: no", None)
    kept, other = ((1, "a"), [1, 2], 0, None), ((1, None), [[None]], 7, 9)
    output = StreamOutput(
        [(0, written(session)), (2, written(gone, failed))],
        replayed=[(written(session, gone), written(gone, session._replace(value=3)))],
        leftover=[packed(kept), packed(other)],
        partitions=5,
    )
    read = _read(plays, output, 3)
    shown = [[(entry.batch, *entry.output) for entry in outcome.entries] for outcome in read.outcomes]
    assert shown == [[(0, "a", (0, 5), 2, 5)], [(2, "a", None, None, 9), (2, "b", "failed: ValueError: no")]]
    assert read.labels == [[Label(0, "a", UPDATE, 0)], [Label(2, "a", TOMBSTONE, 0), Label(2, "b", FAILED, None)]]
    assert read.left == [[], [("None", [[None]]), ("a", [1, 2])]]
    assert read.rewritten == [{"a"}, set()]
    assert (read.replayed, read.queries) == (1, 1)
    assert (read.partitions, read.emitting, read.without_keys) == (5, 2, 2)
    assert _read(plays, output, 7).without_keys == 0


@pytest.mark.parametrize("key", ["a", None])
def test_a_row_of_which_a_repeated_batch_writes_any_cell_otherwise_is_rewritten(key: str | None) -> None:
    plays = [Play(history(SESSIONS, record('"a"', 0)))] * 2
    one, beside = (
        SharedOutput(1, (key,), 0, 5, 2, 5, UPDATE, "late", 0),
        SharedOutput(1, ("b",), 0, 5, 2, 5, UPDATE, None, 0),
    )

    def rewritten(*again: SharedOutput) -> list[set[Any]]:
        tables = written(beside, one), written(*again)
        both = [_read(plays, StreamOutput([], replayed=[order]), 2).rewritten for order in (tables, tables[::-1])]
        assert both[0] == both[1]
        return both[0]

    assert rewritten(one, beside) == [set(), set()]
    assert rewritten(beside) == rewritten(one, one, beside) == [set(), {str(key)}]
    assert rewritten(beside, one._replace(history=0)) == [{str(key)}, {str(key)}]
    for name, other in {
        "start": 1,
        "end": 6,
        "value": 3,
        "timestamp": 6,
        "change": TOMBSTONE,
        "reason": "",
        "cause": 1,
    }.items():
        assert rewritten(beside, one._replace(**{name: other})) == [set(), {str(key)}], name


def test_a_query_of_its_own_is_read_by_history_with_its_null_keys_and_without_the_reserved_one() -> None:
    def rows(*keys: str | None, value: int = 1) -> pa.Table:
        return pa.table({"key": keys, "value": [value] * len(keys), "ordinal": [*range(len(keys))]})

    keys = ("00001|a", "00000|b", None, "~clock")
    output = StreamOutput(
        replayed=[(rows(*keys), rows(*keys[::-1])), (rows(*keys), rows(*keys, value=2)), (rows("00001|c"), rows())],
        leftover=[packed(*(((key,), [number], 0, None) for number, key in enumerate((*keys, "00001|none"))))],
        partitions=3,
    )
    read = of_query([Outcome("h0", Grain.BATCH), Outcome("h1", Grain.BATCH)], output, lambda fields: fields != [4])
    assert [sorted(stored) for stored in read.left] == [[("None", [2]), ("b", [1])], [("a", [0])]]
    assert read.rewritten == [{"None", "b"}, {"a", "c"}]
    assert (read.replayed, read.partitions) == (3, 3)


def test_all_keys_of_a_group_are_read_from_its_state() -> None:
    keys = [((number, "a"), [number], 0, None) for number in range(200)]
    found = stored_in([packed(*keys)])
    assert sorted((key, fields, one.emitted, one.due) for key, fields, one in found) == keys


def differing(plays: Sequence[Play]) -> list[History]:
    """Return the histories of which shared queries emit something else than the reference."""
    found = []
    for query in shared_queries(plays):
        of_query = [plays[number] for number in query]
        for one, outcome in zip(of_query, play_shared(of_query).outcomes, strict=True):
            if differences(Outcome.of_play(one.history.name, play(one.history)), outcome):
                found.append(one.history)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_all_operators_together_emit_what_the_reference_emits(seed: int) -> None:
    pools = pools_on_spark([registration_of(name) for name in OPERATORS], 1, seed)
    histories = [one for pool in pools for sample in pool for one in sample.histories]
    random.Random(seed).shuffle(histories)
    plays = [Play(replace(one, name=f"{number}")) for number, one in enumerate(histories[:600])]
    assert {play.history.operator for play in plays} == {*OPERATORS}
    assert [one.to_text() for one in differing(plays)] == []


def test_an_operator_of_ones_own_and_its_mutants_ride_together() -> None:
    registration = register_deduplicate()
    try:
        histories = [one for pool in pools_on_spark([registration], 100, 0) for of in pool for one in of.histories]
        plays = [Play(one) for one in histories]
        assert [one.to_text() for one in differing(plays)] == []
        mutant = registration.mutants["exclusive_horizon"].logic
        mutated = [Play(one, mutant) for one in histories]
        killed = differing([*plays, *mutated])
        assert killed == differing(mutated)
        assert len(killed) > 10
    finally:
        unregister("deduplicate")
