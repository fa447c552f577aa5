"""Which samples an operator is checked on, and which laws are asked of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from streamproof.properties.checking.samples import long_after, plan_on_spark
from streamproof.properties.counterexamples.counterexample import verdict_sentence
from streamproof.properties.generators.cohorts import clock_schedule
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS, ON_SPARK, asked_of
from streamproof.properties.laws.base import Comparison
from streamproof.properties.laws.runs import Kind, Sample
from streamproof.properties.outcomes.outcomes import Difference, Grain, Outcome
from streamproof.properties.registration.registration import registered, registration_of


@cache
def samples_of(operator: str) -> list[Sample]:
    registration = registration_of(operator)
    return [draw() for draw in plan_on_spark(registration, 4 * len(registration.profiles), 0)]


def of_kind(operator: str, kind: Kind) -> dict[str, Sample]:
    return {sample.profile: sample for sample in samples_of(operator) if sample.kind is kind}


@pytest.mark.parametrize("operator", registered())
def test_every_profile_has_a_random_sample_and_the_first_one_is_run_again(operator: str) -> None:
    random = of_kind(operator, Kind.RANDOM)
    assert [*random] == [*registration_of(operator).profiles]
    assert [sample.is_first for sample in random.values()] == [True, *[False] * (len(random) - 1)]


@pytest.mark.parametrize("operator", registered())
def test_the_changelog_needs_every_coverage_goal_of_every_profile(operator: str) -> None:
    for profile, sample in of_kind(operator, Kind.RANDOM).items():
        for law in ("changelog", "table at every cut", "duckdb"):
            first, *goals = LAWS["spark"][law].goals(sample)
            assert first == "empty batch"
            assert len(goals) >= 3
            assert all(goal.endswith(f" ({profile})") for goal in goals)


@pytest.mark.parametrize("operator", registered())
def test_every_profile_is_asked_for_keys_and_those_without_late_data_for_the_other_variants(operator: str) -> None:
    keys = LAWS["spark"]["keys"]
    assert all(keys.is_asked_of(sample) for sample in of_kind(operator, Kind.RANDOM).values())
    for law in ("order", "cuts", "repeats"):
        asked = [sample for sample in samples_of(operator) if LAWS["spark"][law].is_asked_of(sample)]
        assert asked
        assert all(sample.is_without_late_data for sample in asked)


def test_windows_of_tuples_are_not_asked_what_repeats_change() -> None:
    by_tuple = of_kind("window_aggregate", Kind.RANDOM)["by tuple"]
    assert [LAWS["spark"][law].is_asked_of(by_tuple) for law in ("order", "cuts", "repeats")] == [True, True, False]


def test_the_state_is_judged_where_the_definition_bounds_it_or_stores_tables() -> None:
    asked = {name: {law.name for law in asked_of(registration_of(name), ON_SPARK)[0]} for name in registered()}
    assert "state" in asked["stream_stream_join"]
    assert "state" in asked["table_table_join"]
    assert "state" not in asked["range_aggregate"]


def test_a_window_of_two_joined_windowed_tables_is_forgotten_too() -> None:
    random = of_kind("windowed_table", Kind.RANDOM)
    assert (random["outer, shifted"].bounds_state, random["with table"].bounds_state) == (True, False)


def test_long_after_a_history_the_clock_has_passed_everything() -> None:
    registration = registration_of("stream_stream_join")
    settings = HistorySettings("stream_stream_join", registration.profiles["inner"], SCHEDULE)
    (history,) = draw_histories(settings, 1, seed=1)
    assert clock_schedule(long_after(history, registration))[-1] > SCHEDULE[-1] + 400


def test_a_verdict_names_who_expected_something_else_where_that_is_not_the_reference() -> None:
    nothing = Outcome("h", Grain.END, final={})
    found = Comparison(("DuckDB", nothing), ("Spark", nothing), [Difference(None, None, None, "a", "h")])
    said = verdict_sentence("it holds", found)
    assert said == "violated: it holds; but for key a at the end DuckDB emits nothing, and Spark nothing."


def test_without_a_profile_in_which_nothing_is_late_the_variants_are_named_as_not_checked() -> None:
    without = replace(registration_of("session_windows"), without_late_data={})
    laws, reasons = asked_of(without, ON_SPARK)
    assert {name: reasons[name] for name in ("order", "cuts", "repeats")} == dict.fromkeys(
        ("order", "cuts", "repeats"), "its registration has no profile without late data"
    )
    assert "keys" in {law.name for law in laws}


def test_variants_of_session_windows_must_show_merges_and_late_records() -> None:
    (without_late_data,) = of_kind("session_windows", Kind.WITHOUT_LATE_DATA).values()
    for law in ("order", "cuts"):
        merges = {"merge of two", "merge of three or more", "exact gap", "gap + 1"}
        assert merges <= {*LAWS["spark"][law].goals(without_late_data)}
    update = of_kind("session_windows", Kind.RANDOM)["update"]
    assert {"dropped: late", "late rescued"} <= {*LAWS["spark"]["keys"].goals(update)}
