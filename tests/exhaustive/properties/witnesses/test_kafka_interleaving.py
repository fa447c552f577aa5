"""Kafka's own foreign-key join under schedules of delivery, in a test driver whose messages are held back."""

from __future__ import annotations

import json
import random

import pytest
from paths import GOLDEN
from streamproof.properties.checking.samples import reference_sample
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from streamproof.properties.laws.base import LawResult, Verdict
from streamproof.properties.laws.of_reference.kafka_schedules import SchedulesOnKafka
from streamproof.properties.laws.runs import ReferenceRun
from streamproof.properties.laws.scheduling import scheduled
from streamproof.properties.models.races import raced
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.kafka import interleaving
from streamproof.properties.witnesses.kafka.builder import KafkaDialect
from streamproof.properties.witnesses.kafka.divergences import explained
from streamproof.properties.witnesses.kafka.interleaving import play_held
from streamproof.properties.witnesses.kafka.versions import version_in_use
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.properties.witnesses.messages import staged_by_protocol, staged_differences
from streamproof.reference import foreign_key_protocol
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, parse_history
from streamproof.reference.core.records import Record, fold
from streamproof.specs.races import RACES, chosen, values_of

pytestmark = pytest.mark.usefixtures("kafka")
ANSWERS = GOLDEN / "foreign_key_join-inner.jsonl"
INNER = {"foreign_key": "fk", "delivery": "manual"}
LEFT = {**INNER, "join": "left", "null_foreign_key": "keep"}


def left(key, foreign_key, timestamp, **more):
    return Record("left", key, {"fk": foreign_key, **more}, timestamp)


def gone(key, timestamp):
    return Record("left", key, None, timestamp)


def right(key, value, timestamp):
    return Record("right", key, value, timestamp)


def ask(foreign_key):
    return Delivery("subscription", foreign_key, None)


def answer(foreign_key, key):
    return Delivery("response", foreign_key, key)


def history(options, *lines, name="history"):
    return History("foreign_key_join", options, lines, name=name)


SHOWN = [right("r", "x", 0), left("l", "r", 1), ask("r"), answer("r", "l")]


def test_an_empty_route_is_an_error_that_names_the_arrival_and_what_waits():
    lines = [left("a", "r", 0), CUT, ask("s")]
    with pytest.raises(
        BadInput,
        match=r"^late: arrival 1: no message waits on subscription s: deliver from "
        r"a route with messages \(subscription r\)$",
    ):
        KafkaWitness().evaluate([history(INNER, *lines, name="late")])


def test_an_empty_route_is_an_error_that_names_the_line_of_the_file():
    from_file = History("foreign_key_join", INNER, (answer("r", "l"),), name="file", numbers=(7,))
    with pytest.raises(BadInput, match=r"^file: line 7: no message waits on response r l: .*\(none\)$"):
        KafkaWitness().evaluate([from_file])


def test_where_it_is_not_strict_a_delivery_from_an_empty_route_does_nothing():
    (staged,) = play_held(version_in_use(), [history(INNER, ask("s"), *SHOWN)], KafkaDialect(), strict=False)
    assert [entry.arrival for entry in staged.outcome.entries] == [4]


def test_cuts_clock_advances_and_null_keys_are_arrivals_as_elsewhere():
    lines = [right("r", "x", 0), CUT, ClockAdvance(5), Record("left", None, {"fk": "r"}, 1), *SHOWN[1:3], CUT, SHOWN[3]]
    (outcome,) = KafkaWitness().evaluate([history(INNER, *lines)])
    assert [(entry.arrival, entry.batch) for entry in outcome.entries] == [(5, 2)]


def test_histories_of_other_options_and_without_a_schedule_are_answered_together_as_alone():
    several = [
        history(INNER, *SHOWN),
        history({"foreign_key": "fk"}, right("r", "x", 0), left("l", "r", 1)),
        history(LEFT, left("l", "r", 1), ask("r"), answer("r", "l")),
        history(INNER, *SHOWN, gone("l", 2)),
        history(LEFT),
    ]
    assert KafkaWitness().evaluate(several * 2) == [KafkaWitness().evaluate([one])[0] for one in several] * 2


def test_keys_and_values_of_any_text_come_back_as_they_went_in():
    awkward = 'a|1/2]\n\t"\\é💧\x00'
    value = {"fk": awkward, "more": [awkward, 1.5, None, 10**30]}
    lines = [right(awkward, awkward, 0), Record("left", awkward, value, 1), ask(awkward), answer(awkward, awkward)]
    (outcome,) = KafkaWitness().evaluate([history(INNER, *lines)])
    assert [entry.output for entry in outcome.entries] == [(awkward, None, [value, awkward], 1)]


def drawn(options, count, seed=3):
    settings = HistorySettings("foreign_key_join", options, SCHEDULE, arrivals=8)
    generator = random.Random(seed)
    return [scheduled(under_stream_time(one), generator) for one in draw_histories(settings, count, seed=seed)]


@pytest.mark.parametrize("more", [{}, {"join": "left", "null_foreign_key": "keep"}], ids=["inner", "left"])
def test_under_random_schedules_kafka_emits_and_leaves_waiting_what_the_protocol_does(more):
    histories = drawn({"foreign_key": "artist", **more}, 150)
    unexplained = []
    for one, staged in zip(
        histories, play_held(version_in_use(), histories, KafkaDialect(), watched=True), strict=True
    ):
        differs = staged_differences(one, staged) and not explained(one, staged.outcome)
        if differs or staged.waiting != staged_by_protocol(one).waiting:
            unexplained.append(one.to_text())
    assert unexplained == []


def test_a_message_that_waits_too_long_is_a_difference():
    histories = [one for one in drawn({"foreign_key": "artist"}, 20) if any(isinstance(x, Delivery) for x in one.lines)]
    shorter = [one.with_lines(one.lines[:-1]) for one in histories]
    played = play_held(version_in_use(), shorter, KafkaDialect(), watched=True)
    assert all(
        staged.waiting[-1] != staged_by_protocol(one).waiting[-1]
        for one, staged in zip(histories, played, strict=True)
        if isinstance(one.lines[-1], Delivery)
    )


def test_with_keyless_messages_that_wait_a_row_without_key_is_not_shown():
    lines = [left("l", None, 0)]
    assert fold(e.output for e in KafkaWitness().evaluate([history(LEFT, *lines)])[0].entries)
    assert not KafkaWitness(KafkaDialect(keyless_waits=True)).evaluate([history(LEFT, *lines)])[0].entries


def judged():
    registration = registration_of("foreign_key_join")
    result = LawResult(SchedulesOnKafka())
    for profile in ("inner", "left, null kept"):
        sample = reference_sample(registration, profile, 15, seed=0)
        assert result.law.is_asked_of(sample)
        result.goals += tuple(result.law.goals(sample))
        result.violations += result.law.judge(ReferenceRun(sample), result)
    return result


def test_the_law_conforms_on_kafkas_own_processors():
    result = judged()
    assert (result.verdict, result.missing) == (Verdict.CONFORMS, [])
    assert set(result.divergences) <= {"unshown-row-deleted", "deleted-row-deleted-again"}


def test_the_law_is_broken_where_the_newest_message_goes_first(monkeypatch):
    class Stack(interleaving.deque):
        popleft = interleaving.deque.pop

    monkeypatch.setattr(interleaving, "deque", Stack)
    assert judged().verdict is Verdict.VIOLATED


def test_the_law_is_broken_where_the_protocol_checks_no_hash(monkeypatch):
    def receive(self, response):
        return self._emit(response.key, response.value, response.timestamp)

    monkeypatch.setattr(foreign_key_protocol.Left, "receive", receive)
    result = judged()
    assert result.verdict is Verdict.VIOLATED
    (again,) = SchedulesOnKafka().recheck([result.violations[0].case])
    assert again.differences == result.violations[0].comparison.differences


def test_the_law_is_not_asked_of_a_protocol_that_kafka_does_not_have():
    registration = registration_of("foreign_key_join")
    assert not SchedulesOnKafka().is_asked_of(reference_sample(registration, "inner, answer", 5, seed=0))


def test_every_race_ends_stale_on_kafkas_own_processors_and_right_in_a_left_join():
    for join, wrong in (("inner", 1), ("left", 0)):
        races = chosen([], join)
        assert [(one.played, one.wrong) for one in raced(races, "kafka", join)] == [(1, wrong)] * len(races)


def test_every_interleaving_of_every_race_ends_as_in_the_protocol():
    races = chosen([])
    on_kafka, in_protocol = (raced(races, on, every=True) for on in ("kafka", "reference"))
    assert on_kafka == in_protocol
    assert sum(one.played for one in on_kafka) == 868


def test_kafkas_left_join_has_messages_without_key_and_ends_right_in_every_order():
    found = raced([RACES["lose-delete"], RACES["move"]], "kafka", "left", every=True)
    assert [(one.played, one.wrong) for one in found] == [(800, 0), (35, 0)]


def test_where_every_change_is_answered_the_recorded_results_stay_and_only_tombstones_are_added():
    recorded = [json.loads(line)["history"] for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    histories = [parse_history(text) for text in recorded]
    before, after = (
        KafkaWitness(dialect=KafkaDialect(answers=answers)).evaluate(histories) for answers in (False, True)
    )
    added = emitted = 0
    for one, other in zip(before, after, strict=True):
        assert values_of(one.result) == values_of(other.result)
        values, more = ([(e.arrival, e.output.key, e.output.value) for e in of.entries] for of in (one, other))
        for change in values:
            more.remove(change)
        assert {value for _, _, value in more} <= {None}
        added, emitted = added + len(more), emitted + len(values)
    assert (len(histories), emitted, added) == (34, 126, 94)


def test_every_order_is_played_once():
    (plays,) = interleaving.every_interleaving(version_in_use(), [RACES["lose-update"].history()], KafkaDialect())
    assert len({tuple(map(str, play.lines)) for play in plays}) == len(plays) == 21


def test_where_other_messages_are_sent_deliveries_are_left_out_and_what_waits_is_handed_on():
    one = history(LEFT, left("l", "r", 0), answer("s", "l"))
    (outcome,) = KafkaWitness().complete([one])
    assert outcome.result == {("l", None): ([{"fk": "r"}, None], 0)}


def test_kafkas_inner_join_ends_right_in_every_order_once_every_change_is_answered():
    found = raced([RACES["move-update"], RACES["lose-update"]], "kafka", every=True, answered=True)
    assert [(one.played, one.wrong) for one in found] == [(800, 0), (800, 0)]
