from __future__ import annotations

import pytest
from streamproof.properties.witnesses.kafka.divergences import (
    DIALECTS,
    DIVERGENCES,
    Divergence,
    answers_of,
    chosen,
    explained,
)
from streamproof.properties.witnesses.outcomes import Outcome, differences
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import play

pytestmark = pytest.mark.slow  # seconds in all: no part of the quick tests

PLAIN = [divergence for divergence in DIVERGENCES.values() if divergence.setting == "plain"]
EVERY = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=str)


@EVERY
def test_a_divergence_has_a_history_that_the_reference_answers(divergence: Divergence) -> None:
    assert divergence.history.operator == divergence.operator
    assert divergence.setting in DIALECTS
    assert len(divergence.history.records) <= 5
    play(divergence.history)


@EVERY
@pytest.mark.usefixtures("kafka")
def test_kafka_still_shows_every_divergence(divergence: Divergence) -> None:
    reference, kafka, why = answers_of(divergence)
    assert kafka is not None, why
    assert differences(reference, kafka)


@pytest.mark.parametrize("divergence", PLAIN, ids=str)
@pytest.mark.usefixtures("kafka")
def test_a_divergence_under_the_plain_dialect_explains_its_own_history(divergence: Divergence) -> None:
    _, kafka, why = answers_of(divergence)
    assert kafka is not None, why
    assert divergence.name in explained(divergence.history, kafka)


@EVERY
@pytest.mark.usefixtures("kafka")
def test_no_record_of_a_smallest_history_can_be_spared(divergence: Divergence) -> None:
    lines = divergence.history.lines
    for index in range(len(lines)):
        smaller = divergence.history.with_lines([*lines[:index], *lines[index + 1 :]])
        try:
            reference, kafka, _ = answers_of(_WithHistory(divergence, smaller))
        except BadInput:  # a delivery for which nothing waits any more
            continue
        assert kafka is not None
        assert not differences(reference, kafka), smaller.to_text()


class _WithHistory(Divergence):
    def __init__(self, divergence: Divergence, history: History) -> None:
        super().__init__(
            divergence.name, divergence.operator, divergence.sentence, divergence.source, divergence.setting
        )
        object.__setattr__(self, "smaller", history)

    @property
    def history(self) -> History:
        return self.smaller  # type: ignore[attr-defined, no-any-return]


LATE = parse_history(
    '{"operator": "stream_stream_join", "options": {"before_ms": 5, "after_ms": 5}}\n'
    '{"input": "left", "key": "a", "value": 1, "timestamp": 0}\n'
    '{"input": "right", "key": "z", "value": 1, "timestamp": 20}\n'
    '{"input": "right", "key": "a", "value": 1, "timestamp": 5}\n'
)


def test_an_answer_that_no_defect_gives_stays_unexplained() -> None:
    silent = Outcome.of_play("h", play(LATE))
    silent.entries = []
    other = Outcome.of_play("h", play(LATE.with_lines(LATE.lines[:1])))
    assert explained(LATE, Outcome("h", silent.grain, [*silent.entries, *other.entries])) == ()


def test_an_operator_without_known_defects_explains_nothing() -> None:
    history = parse_history('{"operator": "table_table_join", "options": {}}\n')
    assert explained(history, Outcome.of_play("h", play(history))) == ()


def test_an_unknown_divergence_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="unknown divergence 'nope': use one of session-forgotten-early, "):
        chosen(["nope"])
