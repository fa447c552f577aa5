"""What public functions declare to Spark under drawn options: the definition, types that hold its state, a clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from declared_stages import INITIAL_STATE, Declared, declared, played
from memory_runtime import Groups
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import draw_schedule
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record
from streamproof.spark_impl.runtime.codec import column_of
from streamproof.spark_impl.runtime.processor import Stage

NAMED = {
    **{name: name for name in ("foreign_key", "group_by", "window_start")},
    **{"sequence_by": "sequence", "ties": "tie", "track": ["tracked"]},
}
"""How public functions name the fields of values that are columns on Spark."""
IN_PLAN = ("columns", "deletes")
"""The options of which a logic knows nothing."""
NOW_MS = 2520 * 10**9
"""A time that 32 bits don't hold, and at which windows of all drawn sizes start."""


def drawn(operator: str) -> Iterator[tuple[History, Declared]]:
    for options in draw_definitions(registration_of(operator), 1, 0):
        settings = HistorySettings(operator, options, draw_schedule(operator, options, 0), 12)
        for history in draw_histories(settings, 2, 0):
            if options.get("window_start") is None:  # else it stands in values
                lines = (
                    line if line is CUT else line._replace(timestamp=line.timestamp + NOW_MS) for line in history.lines
                )
                history = history.with_lines(lines)
            yield history, declared(operator, options, history.records)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_option_reaches_the_logic_the_types_the_clock_and_the_declaration(operator: str) -> None:
    for history, one in drawn(operator):
        columns: dict[str, Any] = {name: own for name, own in NAMED.items() if history.options.get(name) is not None}
        if operator == "table_aggregate":  # a count needs no column, and others always have one
            columns["field"] = None if one.definition.aggregate.name == "count" else "value"
        (definition,) = one.definitions
        options = {name: own for name, own in {**history.options, **columns}.items() if name not in IN_PLAN}
        assert definition == registration_of(operator).declare(options)
        for name, value in vars(definition).items():
            is_text = name not in (*NAMED, *IN_PLAN) and not callable(value)
            assert not is_text or f"{name.removesuffix('_')}={getattr(value, 'name', value)}" in one.declaration
        assert one.initial_state == INITIAL_STATE

        def see(stage: Stage, groups: Groups) -> None:
            column_of([fields for _, fields in groups.stored().values()], stage.state)

        assert not differences(Outcome.of_play(history.name, play(history)), played(history, one, see)), history


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_new_checkpoint_goes_on_from_a_state_as_the_old_one_would(operator: str) -> None:
    for history, one in drawn(operator):
        ours, theirs = Outcome.of_play(history.name, play(history)), played(history, one, handed_over=(1, 3))
        assert not differences(ours, theirs), history


@pytest.mark.parametrize("operator", OPERATORS)
def test_records_without_a_key_are_taken_as_the_reference_takes_them(operator: str) -> None:
    for history, one in islice(drawn(operator), 1, None, 2):
        key = history.records[0].key
        lines = (
            line._replace(key=None) if isinstance(line, Record) and line.key == key else line for line in history.lines
        )
        history = history.with_lines(lines)
        assert not differences(Outcome.of_play(history.name, play(history)), played(history, one)), history


@pytest.mark.parametrize("operator", OPERATORS)
def test_rows_without_a_time_are_dropped_and_change_nothing(operator: str) -> None:
    for history, one in islice(drawn(operator), 0, None, 4):
        found = played(history, one, timeless=True)
        dropped = [entry for entry in found.entries if getattr(entry.output, "reason", "") == "null timestamp"]
        assert len(dropped) == len(history.records)
        rest = replace(found, entries=[entry for entry in found.entries if entry not in dropped])
        assert not differences(Outcome.of_play(history.name, play(history)), rest), history


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_nan_is_a_key_a_group_and_a_foreign_key_like_any_other(operator: str) -> None:
    for rank, (history, one) in enumerate(islice(drawn(operator), 0, None, 3)):
        ours, theirs = Outcome.of_play(history.name, play(history)), played(history, one, nan=rank)
        assert not differences(ours, theirs), history


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_stream_beside_a_batch_dataframe_is_a_stream_whichever_of_the_inputs_it_is(operator: str) -> None:
    for options in registration_of(operator).profiles.values():
        inputs = registration_of(operator).declare(options).inputs
        for side in inputs if len(inputs) > 1 else ():
            one = declared(operator, options, still=[side])
            assert one.stages
            assert not any(stage.ended for stage in one.stages)
