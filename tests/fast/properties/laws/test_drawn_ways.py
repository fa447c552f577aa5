"""How pools run again by each law's own draws, whatever the seed; and of which samples a law is asked."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from notation import history_of
from streamproof.properties.generators.options import described
from streamproof.properties.laws.metamorphic.crash import Replay
from streamproof.properties.laws.metamorphic.partitions import DRAWN, MIN_GROUPS, Partitions
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.metamorphic.variants import shuffled
from streamproof.properties.laws.of_reference.kafka import KafkaLaw
from streamproof.properties.laws.on_spark.retention import has_rows
from streamproof.properties.laws.runs import Kind, Sample
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.run_options import PLAIN, Crash, RunOptions

SEEDS, BATCHES = range(60), 6


def test_pools_run_again_in_more_partitions_than_groups() -> None:
    ways = [way for seed in SEEDS for way in Partitions().draw_ways(0, BATCHES, Random(seed))]
    assert {way.partitions for way in ways} == {*DRAWN}
    assert all(MIN_GROUPS <= (way.state_groups or 0) < (way.partitions or 0) for way in ways)
    assert not Partitions().draw_ways(1, BATCHES, Random(0))


@pytest.mark.parametrize(("pool", "first", "last"), [(0, 0, BATCHES - 4), (2, 0, BATCHES - 3), (1, None, None)])
def test_every_other_pool_is_stopped_twice_in_a_row_with_batches_behind_in_the_first(
    pool: int, first: int | None, last: int | None
) -> None:
    drawn = [Restart().draw_ways(pool, BATCHES, Random(seed)) for seed in SEEDS]
    stops = {way.stop_after for ways in drawn for way in ways}
    assert stops == (set() if first is None else {(at, at + 1) for at in range(first, last + 1)})  # type: ignore[operator]


@pytest.mark.parametrize(("pool", "batches"), [(0, []), (1, range(1, BATCHES - 1)), (3, range(BATCHES))])
def test_the_other_pools_die_twice_in_a_batch_and_in_the_first_of_them_not_in_the_first_or_last(
    pool: int, batches: Any
) -> None:
    drawn = [Replay().draw_ways(pool, BATCHES, Random(seed)) for seed in SEEDS]
    assert {way.crash_in for ways in drawn for way in ways} == {(Crash(batch),) * 2 for batch in batches}


@pytest.mark.parametrize(
    ("answered", "streamed", "batched", "is_asked"),
    [
        (1, 2, 9, True),
        (1, 3, 0, False),
        (0, 0, 2, False),
        (2, 2, 0, True),
    ],
)
def test_kafka_is_asked_where_it_can_run_half_of_the_histories_under_stream_time(
    answered: int, streamed: int, batched: int, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_stream_time, by_batches = (history_of("k", "session_windows", clock) for clock in ("stream_time", "batch"))
    histories = [by_stream_time] * streamed + [by_batches] * batched
    sample = Sample(registration_of("session_windows"), Kind.REFERENCE, "", {"gap_ms": 10}, histories)
    monkeypatch.setattr(KafkaLaw, "_answered", lambda self, given: [*given][:answered])
    assert KafkaLaw().is_asked_of(sample) == is_asked


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ([], False),
        ([5], False),
        ([[]], False),
        ([[1, 2]], False),
        ([[[1], [2]]], True),
        ([5, [], [[1]]], True),
        ([[[1], 2]], False),
    ],
)
def test_rows_are_left_where_a_field_has_a_list_of_lists(fields: list[Any], rows: bool) -> None:
    assert has_rows(fields) == rows


@pytest.mark.parametrize("operator", registered())
def test_options_are_named_by_their_profile_and_others_as_text(operator: str) -> None:
    registration = registration_of(operator)
    names, profiles = [*registration.profiles], [*registration.profiles.values()]
    for options in profiles:
        assert described(registration, dict(options)) == names[profiles.index(options)]
    assert described(registration, {"new": 1, "other": None}) == "new=1, other=none"
    if {} not in registration.profiles.values():
        assert described(registration, {}) == "all defaults"


@pytest.mark.parametrize(("batches", "stops"), [(1, (0,)), (2, (0,)), (4, (0, 1, 2))])
def test_a_restart_has_a_batch_behind_it_wherever_it_may_come(batches: int, stops: tuple[int, ...]) -> None:
    assert Restart().everywhere(batches).stop_after == stops
    assert [*Restart().draw(PLAIN, 0, batches)] == [*stops][: batches - 1]


@pytest.mark.parametrize(
    ("operator", "options", "line"),
    [
        ("session_windows", {"gap_ms": 5}, None),
        ("window_aggregate", {"unit": "tuple", "size": 2}, lambda one: one.key),
        ("table_table_join", {}, lambda one: (one.input, one.key)),
    ],
)
def test_only_records_whose_order_is_open_are_shuffled(operator: str, options: dict[str, Any], line: Any) -> None:
    sides = ("L ", "R ") if operator == "table_table_join" else ("", "")
    given = history_of(f"{sides[0]}a b a=2 b=2 | {sides[1]}a b a=3 b=3", operator, **options)
    orders = {tuple(shuffled(given, Random(seed))) for seed in SEEDS}
    assert len(orders) > 20
    assert all(sorted(map(repr, order)) == sorted(map(repr, given.records)) for order in orders)

    def of_lines(records: Any) -> dict[Any, list[Any]]:
        line_of = line or (lambda one: one.key)
        return {group: [one for one in records if line_of(one) == group] for group in map(line_of, records)}

    are_kept = [of_lines(order) == of_lines(given.records) for order in orders]
    assert all(are_kept) if line else not all(are_kept)


@pytest.mark.parametrize(("way", "stops"), [(None, (0, 1, 2)), (RunOptions(stop_after=(1,)), (1,))])
def test_a_law_is_judged_again_by_the_options_that_were_saved(
    way: RunOptions | None, stops: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Restart, "compare", lambda self, plain, again, way: [plain, again, way])
    witness: Any = SimpleNamespace(answers=lambda histories, way=None: way)
    cohort: Any = SimpleNamespace(schedule=range(4), histories=[])
    plain, again, used = Restart().recheck_in(cohort, witness, way)
    assert (plain, again.stop_after) == (None, stops)  # type: ignore[attr-defined]
    assert used is again
