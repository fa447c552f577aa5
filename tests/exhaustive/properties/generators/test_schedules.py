"""Clock schedules of queries in which many definitions ride hit the edges of each, and move in every way."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import pytest
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import (
    FEWEST_BATCHES,
    MOST_BATCHES,
    OnBoard,
    draw_schedules_for,
    edge_goals,
    edges_met,
)
from streamproof.properties.registration.registration import registered

ALL = [(name, options) for name, one in registered().items() for options in draw_definitions(one, 0, 0)]
TUMBLING = ("windowed_table", {"size_ms": 10, "grace_ms": 5})
LATE = ("window_aggregate", {"size": 10, "step": 4, "late": "update", "retention_ms": 15, "early": {"every_ms": 7}})
SESSIONS = ("session_windows", {"gap_ms": 10})
PLACES = ("clock at", "clock 1 ms before", "clock 1 ms after")


def edges_met_by(one: OnBoard, schedules: list[tuple[int, ...]]) -> set[str]:
    return {goal for schedule in schedules for goal in edges_met(one, schedule)}


@pytest.mark.parametrize("seed", range(5))
def test_six_queries_hit_and_flank_an_edge_of_every_definition(seed: int) -> None:
    schedules = draw_schedules_for(ALL, 6, seed)
    for one in ALL:
        assert edges_met_by(one, schedules) == set(edge_goals(one))


def test_the_seed_decides_what_is_drawn() -> None:
    assert draw_schedules_for(ALL, 3, 1) == draw_schedules_for(ALL, 3, 1)
    assert draw_schedules_for(ALL, 3, 1) != draw_schedules_for(ALL, 3, 2)


def test_every_process_draws_the_same_whatever_order_its_sets_have() -> None:
    program = (
        "from streamproof.properties.generators.options import draw_definitions\n"
        "from streamproof.properties.generators.schedules import draw_schedules_for\n"
        "from streamproof.properties.registration.registration import registration_of\n"
        "drawn = draw_definitions(registration_of('windowed_table'), 40, 0)\n"
        "print(draw_schedules_for([('windowed_table', options) for options in drawn], 3, 0))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_a_clock_never_falls_and_moves_in_every_way() -> None:
    schedules = [schedule for seed in range(10) for schedule in draw_schedules_for(ALL, 4, seed)]
    steps = {later - earlier for schedule in schedules for earlier, later in pairwise(schedule)}
    assert min(steps) == 0
    assert 1 in steps
    assert any(1 < step < 10 for step in steps)
    assert max(steps) > 4 * 52  # past all that is open in the definition of the longest retention
    assert {len(schedule) for schedule in schedules} == set(range(FEWEST_BATCHES, MOST_BATCHES + 1))


def test_each_kind_of_edges_has_goals_of_its_own() -> None:
    kinds = ("the end of a window", "the end of a retention", "an early emission")
    assert edge_goals(LATE) == tuple(f"{place} {kind}" for kind in kinds for place in PLACES)
    assert edge_goals(TUMBLING) == tuple(f"{place} the end of a window" for place in PLACES)
    assert edge_goals(SESSIONS) == ()


@pytest.mark.parametrize(
    ("schedule", "places"),
    [
        ((15, 500), {"clock at"}),
        ((24, 500), {"clock 1 ms before"}),
        ((14, 26, 500), {"clock 1 ms before", "clock 1 ms after"}),
        ((5, 6, 500), set()),  # no window ends before 15
        ((30, 25), set()),  # the last doesn't count
    ],
)
def test_edges_are_met_by_the_ends_of_windows(schedule: tuple[int, ...], places: set[str]) -> None:
    assert edges_met(TUMBLING, schedule) == {f"{place} the end of a window" for place in places}


def test_one_schedule_misses_some_edges_of_many_definitions() -> None:
    odd = [("windowed_table", {"size_ms": size, "grace_ms": grace}) for size in (97, 101, 103) for grace in (0, 11, 23)]
    schedules = draw_schedules_for([SESSIONS, *odd], 1, 0)
    assert all(edges_met_by(one, schedules) <= set(edge_goals(one)) for one in odd)
    assert any(edges_met_by(one, schedules) < set(edge_goals(one)) for one in odd)


def test_definitions_without_edges_of_the_clock_have_schedules_too() -> None:
    (schedule,) = draw_schedules_for([SESSIONS, ("table_table_join", {})], 1, 3)
    assert FEWEST_BATCHES <= len(schedule) <= MOST_BATCHES
    assert schedule[0] > 10


def test_months_are_drawn_as_fast_as_milliseconds() -> None:
    month = 30 * 24 * 3600 * 1000
    of_months = ("windowed_table", {"size_ms": month, "grace_ms": 7})
    schedules = draw_schedules_for([of_months, SESSIONS], 3, 0)
    assert edges_met_by(of_months, schedules) == set(edge_goals(of_months))
    assert all(schedule[0] > month for schedule in schedules)
