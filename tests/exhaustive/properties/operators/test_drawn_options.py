"""Under all options that are drawn, an operator has histories, emits something, folds to its meaning, and is packed."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from streamproof.properties.generators.cohorts import one_cohort, pack
from streamproof.properties.generators.coverage import count_goals_met, coverage_goals
from streamproof.properties.generators.draws import HistorySettings, draw_histories, under_stream_time
from streamproof.properties.generators.options import described, draw_definitions
from streamproof.properties.generators.schedules import draw_schedules_for
from streamproof.properties.laws.of_reference.fold_is_meaning import FoldIsMeaning
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change

LAW = FoldIsMeaning()
AGAIN = "window emitted again"


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_definition_emits_something_and_folds_to_its_meaning(operator: str) -> None:
    registration = registration_of(operator)
    definitions = draw_definitions(registration, 0, 0)
    (schedule,) = draw_schedules_for([(operator, options) for options in definitions], 1, 0)
    for options in definitions:
        histories = list(draw_histories(HistorySettings(operator, options, schedule), 3, 0))
        assert registration.spark is not None
        definition = registration.declare(options)
        records = [record for history in histories for record in history.records]
        batches = pack(one_cohort(histories), registration.spark.fields(definition, records))
        assert sum(table.num_rows for table in batches) == len(records) + len(schedule)
        histories += map(under_stream_time, histories[:1])
        played = list(map(play, histories))
        for history, own, meant in zip(histories, played, LAW.outcomes(histories, played), strict=True):
            assert LAW.differences(history, own, meant) == [], described(registration, options)
        more = map(play, draw_histories(HistorySettings(operator, options, schedule), 100, 1))
        outputs = (entry.output for own in chain(played, more) for entry in own.entries)
        assert any(isinstance(output, Change) for output in outputs), described(registration, options)


@pytest.mark.parametrize(
    ("options", "again"),
    [
        ({"size": 1, "early": {"every_tuples": 2}}, True),
        ({"size": 1, "late": "update", "retention_ms": 15}, True),
        ({"size": 1, "unit": "tuple", "early": {"every_tuples": 1}}, False),
        ({"size": 1, "unit": "tuple", "early": {"every_ms": 1}}, False),
        ({"size": 4, "unit": "tuple", "late": "update", "retention_ms": 15}, False),
        ({"size": 4, "unit": "tuple", "early": {"every_ms": 7}}, True),
    ],
)
def test_a_window_is_to_be_emitted_again_where_that_is_possible(options: dict[str, Any], again: bool) -> None:
    registration = registration_of("window_aggregate")
    (schedule,) = draw_schedules_for([("window_aggregate", options)], 1, 0)
    histories = list(draw_histories(HistorySettings("window_aggregate", options, schedule), 60, 0))
    assert (AGAIN in coverage_goals(registration, registration.declare(options))) == again
    assert bool(count_goals_met(histories)[AGAIN]) == again
