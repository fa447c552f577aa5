from __future__ import annotations

from functools import partial

import pytest
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.witnesses.kafka.builder import KafkaDialect
from streamproof.properties.witnesses.kafka.divergences import (
    DIALECTS,
    DIVERGENCES,
    KafkaDivergence,
    KafkaStreamStreamJoin,
    chosen,
    explained,
)
from streamproof.properties.witnesses.kafka.releases import answer_of
from streamproof.properties.witnesses.kafka.versions import STORES, Stores
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record

PLAIN = [divergence for divergence in DIVERGENCES.values() if divergence.setting == "plain"]
EVERY = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=str)
ON_STORES = pytest.mark.parametrize("stores", STORES)


@EVERY
@ON_STORES
def test_a_divergence_has_a_history_that_the_reference_answers(divergence: KafkaDivergence, stores: Stores) -> None:
    history = divergence.history_on(stores)
    assert history.operator == divergence.operator
    assert divergence.setting in DIALECTS
    assert len(history.records) <= 5
    play(history)


BY_STORES = [one for one in DIVERGENCES.values() if one.history_on("RocksDB") != one.history_on("in memory")]


def test_what_on_window_close_emits_depends_on_the_stores() -> None:
    assert [one.name for one in BY_STORES] == ["closed-sessions-not-emitted", "closed-windows-not-emitted"]


@pytest.mark.parametrize("divergence", BY_STORES, ids=str)
@pytest.mark.usefixtures("kafka")
def test_on_rocksdb_what_the_stores_in_memory_lose_is_emitted(divergence: KafkaDivergence) -> None:
    assert answer_of(_WithHistory(divergence, divergence.history), "RocksDB").shows is False


def lost(operator: str, options: dict[str, int], records: list[tuple[str, int]], stores: Stores) -> bool:
    """Whether Kafka doesn't emit what closes, with `onWindowClose` and the default retention."""
    lines = [Record("events", key, 1, timestamp) for key, timestamp in records]
    history = History(operator, {**options, "emit": "close"}, tuple(lines))
    (kafka,) = KafkaWitness(KafkaDialect(exact_retention=True, stores=stores)).evaluate([history])
    return bool(differences(Outcome.of_play("history", play(history)), kafka))


@pytest.mark.parametrize("grace", [0, 5, 10, 20])
@pytest.mark.parametrize(("stores", "further"), [("in memory", 0), ("RocksDB", 1)])
@pytest.mark.usefixtures("kafka")
def test_a_closed_window_is_lost_where_it_starts_the_retention_before_the_newest(
    stores: Stores, further: int, grace: int
) -> None:
    options, retention = {"size_ms": 10, "grace_ms": grace}, 10 + grace
    newest = range(-(-retention // 10) * 10, 60, 10)  # a window that starts then closes the one at 0
    found = [lost("windowed_table", options, [("a", 0), ("b", start)], stores) for start in newest]
    assert found == [start >= retention + further for start in newest]
    assert True in found


@pytest.mark.parametrize(
    ("end", "clock", "is_lost"), [(0, 60009, False), (0, 60010, True), (59999, 60010, True), (60000, 120009, False)]
)
@pytest.mark.usefixtures("kafka")
def test_a_closed_session_is_lost_on_rocksdb_where_its_segment_has_expired(end: int, clock: int, is_lost: bool) -> None:
    assert lost("session_windows", {"gap_ms": 10}, [("a", end), ("b", clock)], "RocksDB") == is_lost
    assert lost("session_windows", {"gap_ms": 10}, [("a", end), ("b", clock)], "in memory")


@pytest.mark.parametrize("divergence", PLAIN, ids=str)
@pytest.mark.usefixtures("kafka")
def test_a_divergence_under_the_plain_dialect_explains_its_own_history(divergence: KafkaDivergence) -> None:
    answer = answer_of(divergence)
    assert answer.kafka is not None, answer.why
    assert divergence.name in explained(divergence.history, answer.kafka)


@EVERY
@ON_STORES
@pytest.mark.usefixtures("kafka")
def test_no_record_of_a_smallest_history_can_be_spared(divergence: KafkaDivergence, stores: Stores) -> None:
    history = divergence.history_on(stores)
    lines = history.lines
    for index in range(len(lines)):
        smaller = history.with_lines([*lines[:index], *lines[index + 1 :]])
        try:
            answer = answer_of(_WithHistory(divergence, smaller), stores)
        except BadInput:  # a delivery for which nothing waits any more
            continue
        assert answer.shows is False, smaller.to_text()


class _WithHistory(KafkaDivergence):
    def __init__(self, divergence: KafkaDivergence, history: History) -> None:
        super().__init__(
            divergence.name, divergence.operator, divergence.sentence, divergence.source, divergence.setting
        )
        object.__setattr__(self, "smaller", history)

    def history_on(self, stores: Stores) -> History:
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


def test_a_release_may_be_without_what_came_later() -> None:
    late = DIVERGENCES["null-emitted-late"]
    lines = [*late.history.lines, *late.history.lines[:1]]  # at the end a row that is out of order, and over
    history = late.history.with_lines(lines)
    without = Outcome.of_play("h", play(history, partial(KafkaStreamStreamJoin, without=[late.name])))
    assert explained(history, without, "4.3.1") == ()
    assert explained(history, without, "3.7.2") != ()
    assert late.name not in explained(history, without, "3.7.2")


def test_an_operator_without_known_defects_explains_nothing() -> None:
    history = parse_history('{"operator": "table_table_join", "options": {}}\n')
    assert explained(history, Outcome.of_play("h", play(history))) == ()


def test_an_unknown_divergence_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="unknown divergence 'nope': use one of session-forgotten-early, "):
        chosen(["nope"])
