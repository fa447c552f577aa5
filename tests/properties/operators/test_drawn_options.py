"""Under all options that are drawn, an operator has histories, emits something, folds to its meaning, and is packed."""

from __future__ import annotations

from itertools import chain

import pytest
from streamproof.properties.generators.cohorts import one_cohort, pack
from streamproof.properties.generators.draws import HistorySettings, draw_histories, under_stream_time
from streamproof.properties.generators.options import described, draw_definitions
from streamproof.properties.generators.schedules import draw_schedule_for
from streamproof.properties.laws.of_reference.fold_is_meaning import FoldIsMeaning
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change

LAW = FoldIsMeaning()


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_definition_emits_something_and_folds_to_its_meaning(operator: str) -> None:
    registration = registration_of(operator)
    definitions = draw_definitions(registration, 0, 0)
    schedule = draw_schedule_for([(operator, options) for options in definitions], 0)
    for options in definitions:
        histories = list(draw_histories(HistorySettings(operator, options, schedule), 6, 0))
        assert registration.spark is not None
        definition = registration.declare(options)
        records = [record for history in histories for record in history.records]
        batches = pack(one_cohort(histories), registration.spark.fields(definition, records))
        assert sum(table.num_rows for table in batches) == len(records) + len(schedule)
        histories += map(under_stream_time, histories[:1])
        played = list(map(play, histories))
        for history, own, meant in zip(histories, played, LAW.outcomes(histories), strict=True):
            assert LAW.differences(history, own, meant) == [], described(registration, options)
        more = map(play, draw_histories(HistorySettings(operator, options, schedule), 100, 1))
        outputs = (entry.output for own in chain(played, more) for entry in own.entries)
        assert any(isinstance(output, Change) for output in outputs), described(registration, options)
