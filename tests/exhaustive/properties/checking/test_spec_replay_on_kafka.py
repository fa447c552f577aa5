"""Behaviours of the foreign-key join's specification, replayed on Kafka's own processors."""

from __future__ import annotations

from typing import Any

import pytest
import tla_models
from foreign_key_models import MODULE, MUTANTS, RACES, SMALL, counterexample, graph
from streamproof.properties.models import spec_replay_on_kafka
from streamproof.properties.models.spec_replay_on_kafka import replay_on_kafka
from streamproof.properties.witnesses.kafka import interleaving
from streamproof.properties.witnesses.kafka.builder import KafkaDialect
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.records import Change

pytestmark = pytest.mark.usefixtures("kafka")


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_the_same_on_kafka_step_by_step(name: str) -> None:
    trace, constants, _ = counterexample(name)
    assert replay_on_kafka([trace], constants, MODULE) == (1, len(trace) - 1, (), {})


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != "routes_out_of_order"])
def test_kafka_has_none_of_the_bugs(name: str) -> None:
    trace, constants, _ = counterexample(f"mutant_{name}")
    assert replay_on_kafka([trace], constants, MODULE).disagreements == ()


@pytest.mark.parametrize("name", ["left", "left, null keys kept", "inner, kip"])
def test_kafka_shares_a_cover_of_every_edge_of_the_kips(name: str) -> None:
    states, constants = graph(name)
    replayed = replay_on_kafka(states.covering(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours > 100


def test_kafka_shares_a_cover_of_every_edge_of_its_own_left_join_with_messages_without_key() -> None:
    states, constants = tla_models.graph(MODULE, "_kafka_4_3_left", **SMALL)
    replayed = replay_on_kafka(states.covering(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours > 500


def test_kafka_with_the_change_that_closes_the_races_is_the_proved_protocol_and_without_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states, constants = tla_models.graph(MODULE, "_kafka_4_3_answer", **SMALL)
    behaviours = [*states.sample(300, seed=0)]
    assert replay_on_kafka(behaviours, constants, MODULE).disagreements == ()
    monkeypatch.setattr(spec_replay_on_kafka, "KafkaDialect", lambda answers: KafkaDialect())
    assert replay_on_kafka(behaviours, constants, MODULE).disagreements


def test_a_row_that_is_deleted_again_differs_by_a_divergence_with_a_name() -> None:
    states, constants = tla_models.graph(
        MODULE, "", LeftChanges=3, RightChanges=0, LeftKinds=frozenset({"insert", "delete"})
    )
    replayed = replay_on_kafka(states.covering(), constants, MODULE)
    assert (replayed.disagreements, set(replayed.divergences)) == ((), {"deleted-row-deleted-again"})


def test_another_kafkas_instructions_are_seen_to_differ() -> None:
    states, constants = tla_models.graph(MODULE, "_kafka_3_9_safe_left", **SMALL)
    disagreements = replay_on_kafka(states.covering(), constants, MODULE).disagreements
    assert any(one.what.startswith("waiting subscription r1") for one in disagreements)


def test_a_kafka_that_answers_otherwise_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, constants, _ = counterexample("race_delete_insert")
    right = interleaving._Tables._change

    def wrong(self: Any, *record: Any) -> Change:
        change = right(self, *record)
        return change if change.value is None else change._replace(value=[change.value[0], "another"])

    monkeypatch.setattr(interleaving._Tables, "_change", wrong)
    (found,) = replay_on_kafka([trace], constants, MODULE).disagreements
    assert found.what == "result l"


def test_what_kafka_has_no_counterpart_for_is_refused() -> None:
    trace, constants, _ = counterexample("mutant_routes_out_of_order")
    with pytest.raises(BadInput, match=r"step \d+: a message overtakes another on its route, but Kafka's topics keep"):
        replay_on_kafka([trace], constants, MODULE)
    with pytest.raises(BadInput, match="no Kafka Streams has the protocol 'answer'"):
        replay_on_kafka([trace], {**constants, "Mutant": "none", "Join": "inner", "Protocol": "answer"}, MODULE)
    with pytest.raises(BadInput, match="the behaviours of Life can't be replayed on Kafka Streams: use ForeignKeyJoin"):
        replay_on_kafka([], {}, "Life")
