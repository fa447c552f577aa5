"""The pools of a check: which definitions and histories share queries; without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from registrations import options_missing
from streamproof.properties.checking.pools import LEAST, MOST, RERUN, SCHEDULES, asked_alone, draw_ways, pools_on_spark
from streamproof.properties.checking.samples import horizon_of, without_late_data
from streamproof.properties.generators.cohorts import clock_schedule, record_batches
from streamproof.properties.generators.options import option_goals
from streamproof.properties.laws.runs import Kind, Sample
from streamproof.properties.registration.registration import Registration, registration_of
from streamproof.properties.witnesses.run_options import Crash
from streamproof.reference.core.operator import OPERATORS

SOME = [registration_of(name) for name in ("session_windows", "table_table_join", "windowed_table", "foreign_key_join")]
ALL = [registration_of(name) for name in OPERATORS]


def pools(registrations: Sequence[Registration], histories: int, seed: int) -> list[list[Sample]]:
    return list(pools_on_spark(registrations, histories, seed))


def shown(drawn: list[list[Sample]]) -> list[list[tuple[str, Kind, list[str]]]]:
    """Return what a pool is made of, as texts."""
    return [
        [(sample.profile, sample.kind, [one.to_text() for one in sample.histories]) for sample in pool]
        for pool in drawn
    ]


@pytest.fixture(scope="module")
def of_all() -> list[list[Sample]]:
    return pools(ALL, 1, 5)


def definition_of(sample: Sample) -> str:
    return f"{sample.registration.name} {sample.options}"


def test_the_same_seed_draws_the_same_samples_and_another_seed_others() -> None:
    first = shown(pools(SOME, 20, 1))
    assert shown(pools(SOME, 20, 1)) == first
    assert shown(pools(SOME, 20, 2)) != first


def test_every_value_and_every_legal_pair_of_values_is_on_board(of_all: list[list[Sample]]) -> None:
    samples = [sample for sample in chain(*of_all) if sample.is_pooled]
    for registration in ALL:
        option_sets = [one.options for one in samples if one.registration is registration]
        assert options_missing(registration, option_sets) == []
        profiles = [*registration.profiles.values()]
        assert [options for options in profiles if options not in option_sets] == []
    assert all(option_goals(registration) for registration in ALL)


def test_each_definition_by_the_clock_is_under_several_schedules_and_each_pool_under_one(
    of_all: list[list[Sample]],
) -> None:
    _, *by_clock = of_all
    assert len(by_clock) == SCHEDULES
    found: set[tuple[int, ...]] = set()
    for pool in by_clock:
        timed = [one for one in pool if one.registration.by_clock(one.definition)]
        (schedule,) = {clock_schedule(one) for sample in timed for one in sample.histories}
        found.add(schedule)
    assert len(found) == SCHEDULES
    assert all(sample.is_pooled and sample.histories for pool in of_all for sample in pool)


def test_operators_in_stages_have_a_pool_of_their_own_and_other_histories_without_a_clock_ride_along(
    of_all: list[list[Sample]],
) -> None:
    standing, *by_clock = of_all
    assert {one.registration.name for one in standing} == {one.name for one in ALL if one.is_staged}
    for pool in by_clock:
        along = [one for one in pool if not one.registration.by_clock(one.definition)]
        names = {one.registration.name for one in along}
        own = {"table_table_join", "stream_table_join", "range_aggregate", "window_aggregate", "scd1", "scd2"}
        assert names == own
        # As many batches, so that a restart has something before and after it.
        assert len({len(one.batches) for sample in pool for one in sample.histories}) == 1
        assert all(len({*clock_schedule(one)}) == 1 for sample in along for one in sample.histories)


def test_without_a_definition_by_the_clock_all_have_a_pool_whose_clock_stands_still_for_a_few_batches() -> None:
    for names in (["table_table_join"], ["table_table_join", "foreign_key_join"]):
        (pool,) = pools([registration_of(name) for name in names], 1, 5)
        assert {one.registration.name for one in pool} == {*names}
        *schedule, _ = clock_schedule(pool[0].histories[0])
        assert len({*schedule}) == 1
        assert LEAST <= len(schedule) <= MOST


def test_definitions_in_which_nothing_is_late_are_among_those_by_the_clock(of_all: list[list[Sample]]) -> None:
    for pool in of_all[1:]:
        asked = {definition_of(one) for one in pool}
        for one in ALL:
            assert {f"{one.name} {without_late_data(one, name)}" for name in one.without_late_data} <= asked


def test_only_with_all_laws_there_is_a_pool_in_which_nothing_is_late(of_all: list[list[Sample]]) -> None:
    more = list(pools_on_spark(ALL, 1, 5, all_laws=True))
    assert shown([more[0], *more[2:]]) == shown(of_all)
    assert {sample.kind for sample in more[1]} == {Kind.WITHOUT_LATE_DATA}


def test_all_histories_end_long_after_what_any_definition_on_board_is_for(of_all: list[list[Sample]]) -> None:
    for pool in of_all:
        for sample in pool:
            horizon = horizon_of(sample.registration, sample.options)
            for history in sample.histories:
                *_, last, after = clock_schedule(history)
                assert record_batches(history)[-1] == []
                if sample.registration.by_clock(sample.definition):
                    assert after > last + 2 * horizon


@pytest.mark.parametrize("number", range(4))
def test_a_pool_is_run_again_in_ways_that_are_drawn_and_that_its_batches_allow(number: int) -> None:
    batches = 6
    ways = [draw_ways(number, batches, seed) for seed in range(200)]
    assert ways == [draw_ways(number, batches, seed) for seed in range(200)]
    assert {tuple(drawn) for drawn in ways} == {
        (("replay",) if number % 2 else ("restart",)) + (() if number else ("partitions",))
    }
    stops = {stop for drawn in ways for way in drawn.get("restart", ()) for stop in way.stop_after}
    assert stops == ({*range(4)} if number == 0 else {*range(5)} if number == 2 else set())
    crashes = {way.crash_in for drawn in ways for way in drawn.get("replay", ())}
    firsts = {1: range(1, 5), 3: range(6)}.get(number, ())
    assert crashes == {(Crash(first), Crash(first)) for first in firsts}
    for drawn in ways:
        for way in drawn.get("restart", ()):
            assert way.stop_after[1] - way.stop_after[0] == 1
        if not number:
            (scattered,) = drawn["partitions"]
            assert 1 < (scattered.state_groups or 0) < (scattered.partitions or 0)


def test_all_samples_of_a_pool_are_run_again_together_and_every_definition_in_each_way(
    of_all: list[list[Sample]],
) -> None:
    asked: dict[str, list[str]] = {}
    for pool in of_all:
        assert len({repr(sample.ways) for sample in pool}) == 1
        for sample in pool:
            asked.setdefault(definition_of(sample), []).extend(sample.ways)
    assert {tuple(sorted(of_one)) for of_one in asked.values()} == {("partitions", "replay", "restart")}
    assert [bool(pool[0].ways) for pool in of_all] == [True] * (1 + RERUN) + [False] * (SCHEDULES - RERUN)


def test_one_history_in_eight_may_have_null_keys() -> None:
    pool, *_ = pools([registration_of("range_aggregate")], 1600, 0)
    null = [any(record.key is None for record in one.records) for sample in pool for one in sample.histories]
    assert 1 / 20 < sum(null) / len(null) <= 1 / 8


def test_each_operator_has_one_sample_of_a_profile_for_the_law_that_runs_histories_alone(
    of_all: list[list[Sample]],
) -> None:
    firsts = [sample.registration.name for pool in of_all for sample in pool if sample.is_first]
    assert sorted(firsts) == sorted(OPERATORS)
    for sample in chain(*of_all):
        if sample.is_first:
            assert sample.options in [*sample.registration.profiles.values()]


def test_which_profile_that_is_is_drawn() -> None:
    (registration,) = (one for one in SOME if one.name == "table_table_join")
    firsts = [one.profile for seed in range(12) for one in chain(*pools([registration], 1, seed)) if one.is_first]
    assert (len(firsts), {*firsts}) == (12, {*registration.profiles})


def test_more_histories_are_shared_among_the_definitions() -> None:
    few, many = (sum(len(one.histories) for one in chain(*pools(SOME[:2], count, 0))) for count in (200, 800))
    assert 3 < many / few < 4.5


def test_the_histories_of_all_pools_may_be_longer() -> None:
    for records in (20, 25):
        drawn = pools_on_spark([registration_of("session_windows")], 1, 0, records)
        lengths = {len(one.records) for pool in drawn for sample in pool for one in sample.histories}
        assert lengths == {records}


def test_an_operator_in_stages_and_one_without_are_run_alone_and_which_is_drawn() -> None:
    drawn = [asked_alone(ALL, seed) for seed in range(60)]
    assert drawn == [asked_alone(ALL, seed) for seed in range(60)]
    assert {staged for staged, _ in drawn} == {one.name for one in ALL if one.is_staged}
    assert {other for _, other in drawn} == {one.name for one in ALL if not one.is_staged}
    assert asked_alone([registration_of("table_table_join")], 0) == ["table_table_join"]
