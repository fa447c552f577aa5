"""Metamorphic variants: their laws hold on the reference, and are broken where something is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from given_answers import Given, judged
from streamproof.properties.checking.samples import STANDING, long_after
from streamproof.properties.generators.cohorts import clock_schedule
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic.keys import concerning, independence_of
from streamproof.properties.laws.metamorphic.variants import VariantLaw
from streamproof.properties.laws.runs import Kind, Sample, Variant
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Dropped


def at_batch_grain(history: History) -> Outcome:
    """The reference's outcome, emitted as Spark emits it."""
    played = play(history)
    entries = [entry._replace(arrival=-1) for entry in played.entries]
    return Outcome(history.name, Grain.BATCH, entries, is_stream=played.definition.is_stream)


def law(name: str) -> VariantLaw:
    found = LAWS["spark"][name]
    assert isinstance(found, VariantLaw)
    return found


def drawn(operator: str, options: Any, count: int = 8) -> list[History]:
    registration = registration_of(operator)
    histories = list(draw_histories(HistorySettings(operator, options, STANDING), count, 3))
    by_clock = registration.by_clock(registration.declare(options))
    return [long_after(one, registration) for one in histories] if by_clock else histories


def variants_of(operator: str, profile: str) -> list[Variant]:
    registration = registration_of(operator)
    options = {**registration.profiles[profile], **registration.without_late_data.get(profile, {})}
    sample = Sample(registration, Kind.WITHOUT_LATE_DATA, profile, options, drawn(operator, options))
    laws = [law(name) for name in ("order", "cuts", "repeats")]
    return [variant for one in laws if one.is_asked_of(sample) for variant in one.variants(sample, range(8), 4)]


def variant(name: str, operator: str, profile: str) -> Case:
    return next(one.case for one in variants_of(operator, profile) if one.law == name and one.changed)


def original(case: Case) -> History:
    assert case.original is not None
    return case.original


def differs(name: str, case: Case, lost: Any = None) -> Any:
    """Where the reference's outcomes of a case aren't related by a law; `lost` replaces the variant's entries."""
    outcome = at_batch_grain(case.history)
    if lost is not None:
        outcome = replace(outcome, entries=lost)
    return law(name).compare(case, at_batch_grain(original(case)), outcome).differences


def test_rows_of_a_table_are_reordered_only_across_keys_and_inputs() -> None:
    case = variant("order", "table_table_join", "outer")

    def line(history: History, key: str, side: str) -> list[Any]:
        return [record for record in history.records if (record.key, record.input) == (key, side)]

    for key in "abc":
        for side in ("left", "right"):
            assert line(case.history, key, side) == line(original(case), key, side)
    assert case.history.records != original(case).records
    assert clock_schedule(case.history) == clock_schedule(original(case))


def test_a_history_that_is_cut_elsewhere_has_the_same_records_in_the_same_order() -> None:
    case = variant("cuts", "range_aggregate", "list")
    assert case.history.records == original(case).records
    assert clock_schedule(case.history) == clock_schedule(original(case))


def test_a_left_row_goes_alone_with_all_right_rows() -> None:
    (history,) = drawn("foreign_key_join", registration_of("foreign_key_join").profiles["inner"], 1)
    records = concerning(history, "a").records
    assert records == [one for one in history.records if one.input == "right" or one.key == "a"]


def test_a_group_goes_alone_with_the_changes_that_enter_it_or_leave_it() -> None:
    (history,) = drawn("table_aggregate", registration_of("table_aggregate").profiles["sum"], 1)
    groups = independence_of(history).keys(history)
    assert groups == sorted({one.value["group"] for one in history.records if one.value} - {None})
    for group in groups:
        changes = [entry for entry in play(history).entries if entry.output.key == group]
        assert len(concerning(history, group).records) == len(changes)


def test_windows_of_tuples_have_no_law_of_repeats() -> None:
    assert {one.law for one in variants_of("window_aggregate", "by tuple")} == {"order", "cuts"}


@pytest.mark.parametrize("name", ["order", "cuts", "repeats", "keys"])
def test_the_variants_by_which_a_history_is_shrunk_are_the_same_each_time(name: str) -> None:
    (history,) = drawn("table_table_join", {"join": "outer"}, 1)
    cases = law(name).cases_of(history)
    assert cases == law(name).cases_of(history) != []


def test_a_lost_dropped_record_is_noticed_where_a_key_holds_the_sign_before_a_window() -> None:
    options = {"size_ms": 10, "emit": "close", "with": "table", "to_stream": "window_in_key"}
    settings = HistorySettings("windowed_table", options, SCHEDULE, key_set="windows")
    histories = list(draw_histories(settings, 40, 3))
    sample = Sample(registration_of("windowed_table"), Kind.RANDOM, "with table, close", options, histories)
    cases = [one.case for one in law("keys").variants(sample, range(40), 4)]
    lost = 0
    for case in cases:
        entries = at_batch_grain(case.history).entries
        kept = [entry for entry in entries if not isinstance(entry.output, Dropped)]
        if len(kept) < len(entries):
            assert differs("keys", case, lost=kept)
            lost += 1
    assert lost


@pytest.mark.parametrize("name", ["order", "cuts", "repeats", "keys"])
def test_a_variant_with_another_outcome_breaks_the_law_and_no_other_one(name: str) -> None:
    registration, options = registration_of("table_table_join"), {"join": "outer"}
    histories = drawn("table_table_join", options)
    kind = Kind.RANDOM if name == "keys" else Kind.WITHOUT_LATE_DATA
    sample = Sample(registration, kind, "outer", options, histories)
    variants = law(name).variants(sample, range(8), 4)
    right = {one.name: at_batch_grain(one) for one in (*histories, *(variant.case.history for variant in variants))}
    assert judged(law(name), sample, Given(right), variants) == (len(variants), [])
    wrong = variants[3].case.history.name
    given = Given({**right, wrong: replace(right[wrong], entries=[])})
    assert judged(law(name), sample, given, variants) == (len(variants), [wrong])
