"""How histories are put into shared queries, and what comes back of them; without Spark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from deduplicate import register_deduplicate
from shared_player import play_shared
from streamproof import History, parse_history, play
from streamproof.properties.registration.registration import registration_of, unregister
from streamproof.properties.runner.pools import pools_on_spark
from streamproof.properties.witnesses.outcomes import Outcome, differences
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.shared import (
    GROUPS,
    PARTITION,
    PARTS,
    Play,
    _read,
    pack_plays,
    shared_queries,
)
from streamproof.reference.core.operator import OPERATORS
from streamproof.spark_impl.runtime.logic import TOMBSTONE, UPDATE
from streamproof.spark_impl.runtime.shared import (
    _ROWS,
    CLOCK,
    FAILED,
    GROUP,
    PACKED,
    STAGE,
    PackedChange,
    PackedRow,
    PackedState,
    _Rows,
    codec,
)

SESSIONS = '{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}'
RANGES = '{"operator": "range_aggregate", "options": {"preceding_ms": 10}, "clock": "batch"}'
TABLES = '{"operator": "table_table_join", "options": {}, "clock": "batch"}'
REFERRING = '{"operator": "foreign_key_join", "options": {"foreign_key": "fk"}, "clock": "batch"}'


def history(header: str, *lines: str) -> History:
    return parse_history("\n".join((header, *lines)) + "\n", "h")


def record(key: str, timestamp: int, value: str = "1", side: str = "events") -> str:
    return f'{{"input": "{side}", "key": {key}, "value": {value}, "timestamp": {timestamp}}}'


def advance(clock: int) -> str:
    return f'{{"heartbeat": {clock}}}'


CUT = '{"cut": true}'
"""A cut, as in a history file."""


def rows_of(table: pa.Table) -> list[tuple[int, int, int, list[PackedRow]]]:
    """Return the rows of a batch: group, clock, stage, and what is packed."""
    return [(row[GROUP], row[CLOCK], row[STAGE], _ROWS.decode(row[PACKED]).rows) for row in table.to_pylist()]


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


def test_the_rows_of_a_group_come_in_two_rows_not_in_order_and_say_their_order() -> None:
    lines = [record('"a"', time, str(time)) for time in (4, 3, 9, 1)]
    (table,) = pack_plays([Play(history(RANGES, *lines))])
    parts = [rows for _, _, _, rows in rows_of(table) if rows]
    assert len(parts) == PARTS == 2
    assert [[row.order for row in rows] for rows in parts] == [[2, 0], [3, 1]]
    in_order = sorted((row for rows in parts for row in rows), key=lambda row: row.order)
    assert [(row.key, row.timestamp, row.value) for row in in_order] == [(("a",), t, t) for t in (4, 3, 9, 1)]


def test_null_keys_and_values_travel() -> None:
    (table,) = pack_plays([Play(history(TABLES, record("null", 1, side="left"), record('"a"', 2, "null", "right")))])
    packed = sorted((row for *_, rows in rows_of(table) for row in rows), key=lambda row: row.order)
    assert packed == [PackedRow(0, (None,), 1, 0, "left", 1), PackedRow(0, ("a",), 2, 1, "right", None)]


def test_every_batch_moves_the_clock_even_without_rows() -> None:
    timed = history(SESSIONS, record('"a"', 0), advance(7), CUT, advance(30))
    longer = history(TABLES, *[record('"a"', 0, side="left"), CUT] * 3, record('"a"', 0, side="left"))
    tables = pack_plays([Play(timed), Play(longer)])
    assert [{clock for _, clock, _, _ in rows_of(table)} for table in tables] == [{7}, {30}, {30}, {30}]
    assert all(rows_of(table)[0][2:] == (0, []) for table in tables)


def test_where_the_clock_means_nothing_to_any_history_it_moves_as_the_longest_one_says() -> None:
    short = history(RANGES, record('"a"', 9))
    longer = history(RANGES, record('"a"', 3), CUT, record('"a"', 50), CUT, record('"a"', 20))
    tables = pack_plays([Play(short), Play(longer)])
    assert [{clock for _, clock, _, _ in rows_of(table)} for table in tables] == [{3}, {50}, {50}]


def test_a_range_aggregate_that_takes_rows_behind_the_clock_for_dropped_ones_shows() -> None:
    mutant = registration_of("range_aggregate").mutants["answered_as_dropped"].logic
    late = history(RANGES, record('"a"', 500), CUT, record('"a"', 3))
    assert differing([Play(late)]) == []
    assert differing([Play(late, mutant)]) == [late]


def test_histories_are_spread_over_the_groups() -> None:
    plays = [Play(history(RANGES, record('"a"', 0))) for _ in range(GROUPS + 3)]
    (table,) = pack_plays(plays)
    groups = {row.history: group for group, _, _, rows in rows_of(table) for row in rows}
    assert [groups[number] for number in range(len(plays))] == [*range(GROUPS), 0, 1, 2]


def test_rows_of_stages_go_to_their_stage_with_a_place_that_says_so() -> None:
    lines = record('"r"', 5, side="right"), record('"l"', 6, '{"fk": "r"}', "left")
    (table,) = pack_plays([Play(history(REFERRING, *lines))])
    by_stage = {stage: rows[0] for _, _, stage, rows in rows_of(table) if rows}
    assert by_stage[1].order == {"order": 0, "at": 5, "step_1": -1}
    assert by_stage[0].order == {"order": 1, "at": 6}


def written(*changes: PackedChange) -> pa.Table:
    packed = [codec.encode(_Rows([], list(changes)))]
    return pa.table({PACKED: pa.array(packed, pa.binary()), PARTITION: pa.array([len(changes)], pa.int32())})


def test_what_is_read_goes_to_its_history_with_its_batch_its_window_and_its_state() -> None:
    plays = [Play(history(SESSIONS, record('"a"', 0))), Play(history(TABLES, record('"a"', 0, side="left")))]
    session = PackedChange(0, ("a",), 0, 5, 2, 5, UPDATE, None, 0)
    gone = PackedChange(1, ("a",), None, None, None, 9, TOMBSTONE, None, 1)
    failed = PackedChange(1, ("b",), None, None, None, None, FAILED, "ValueError: no", None)
    kept = PackedState(1, ("a",), [1, 2], 0, None)
    output = StreamOutput(
        [(0, written(session)), (2, written(gone, failed))],
        replayed=[(written(session, gone), written(gone, session._replace(value=3)))],
        leftover=[{"value": {PACKED: codec.encode([kept])}}],
        partitions=5,
    )
    read = _read(plays, output, 3)
    shown = [[(entry.batch, *entry.output) for entry in outcome.entries] for outcome in read.outcomes]
    assert shown == [
        [(0, "a", (0, 5), 2, 5)],
        [(2, "a", None, None, 9), (2, "b", "failed: ValueError: no")],
    ]
    assert read.state == [[], [kept]]
    assert read.rewritten == [{"a"}, set()]
    assert (read.replayed, read.queries) == (1, 1)
    assert (read.partitions, read.emitting, read.without_keys) == (5, 2, 2)
    assert _read(plays, output, 7).without_keys == 0


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
    plays = [Play(replace(one, name=f"{number}")) for number, one in enumerate(histories[:300])]
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
