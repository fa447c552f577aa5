"""Each number of an operator shows when it is off by one, in some history of some definition."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamproof.properties.generators.coverage import emitted, neighbours
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.neighbours import neighbour_goals_of, neighbours_met
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import draw_schedules_for
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play

TIMED = ("session_windows", "window_aggregate", "range_aggregate", "stream_stream_join", "windowed_table")


def drawn(operator: str, of_each: int) -> list[History]:
    """Draw some histories of each definition under each of three schedules."""
    definitions = draw_definitions(registration_of(operator), 0, 0)
    schedules = draw_schedules_for([(operator, options) for options in definitions], 3, 0)
    return [
        history
        for schedule in schedules
        for options in definitions
        for history in draw_histories(HistorySettings(operator, options, schedule), of_each, 1)
    ]


@pytest.mark.parametrize("operator", TIMED)
def test_every_goal_is_met_by_a_few_histories_of_each_definition(operator: str) -> None:
    histories = drawn(operator, 4)
    met = neighbours_met(histories, list(map(play, histories)))
    assert set(met) == set(neighbour_goals_of(registration_of(operator)))
    for goal, history in met.items():
        shown = [
            emitted(play(replace(history, options=one.options), one.behaviour)) != emitted(play(history))
            for one in neighbours(operator, history.options)
            if one.pooled == goal
        ]
        assert any(shown), goal


def test_there_is_a_goal_for_each_number_in_both_directions_and_for_the_clock() -> None:
    assert neighbour_goals_of(registration_of("session_windows")) == (
        "a smaller gap_ms differs",
        "a larger gap_ms differs",
        "a smaller grace_ms differs",
        "a larger grace_ms differs",
        "a clock 1 ms behind differs",
        "a clock 1 ms ahead differs",
    )


def test_there_is_a_goal_for_each_kind_of_edges() -> None:
    goals = neighbour_goals_of(registration_of("window_aggregate"))
    for of in ("the end of a window", "the end of a retention", "an early emission"):
        assert {f"{of} 1 ms later differs", f"{of} 1 ms earlier differs"} <= set(goals)
    assert {"a smaller every_tuples differs", "a larger every_ms differs"} <= set(goals)


def test_only_the_definitions_that_are_asked_have_goals() -> None:
    assert neighbour_goals_of(registration_of("table_table_join")) == ()
    goals = neighbour_goals_of(registration_of("session_windows"), [{"gap_ms": 1, "grace_ms": 0}])
    assert goals == (
        "a larger gap_ms differs",
        "a larger grace_ms differs",
        "a clock 1 ms behind differs",
        "a clock 1 ms ahead differs",
    )


def test_what_no_history_shows_is_missing() -> None:
    empty = History("session_windows", {"gap_ms": 10}, (), "batch")
    assert neighbours_met([empty], [play(empty)]) == {}
    assert neighbours_met([], []) == {}


def test_a_goal_is_looked_for_in_a_history_of_each_definition_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = [History("session_windows", {"gap_ms": gap}, (), "batch", f"h{at}") for gap in (5, 6) for at in range(50)]
    played = list(map(play, empty))
    asked: list[str] = []

    def watched(history: History, behaviour: object) -> object:
        asked.append(f"{history.name} {history.options['gap_ms']}")
        return played[0]

    monkeypatch.setattr("streamproof.properties.generators.coverage.play", watched)
    goals = len(neighbour_goals_of(registration_of("session_windows"), [{"gap_ms": 5}]))
    neighbours_met(empty, played, most_plays=4)
    assert len(asked) == 4 * goals  # and no more plays than are allowed
    assert asked[:4] == ["h0 4", "h0 5", "h1 4", "h1 5"]
