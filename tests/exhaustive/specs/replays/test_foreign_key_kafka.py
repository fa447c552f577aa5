"""Kafka's instructions of the foreign-key join: what TLC finds of them, and the same on the protocol in Python."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import tla_models
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import Delivery, Line
from streamproof.specs.catalogue import catalogue
from streamproof.specs.pytla import TlaValue, Trace
from streamproof.specs.replay import ReplayResult, history_of, replay
from streamproof.specs.replays.common import steps_of
from streamproof.specs.replays.foreign_key_join import MODULE, ForeignKeyJoinReplay, contrast
from streamproof.specs.replays.foreign_key_kafka import WITHOUT_KEY

FAILING = [
    model.name.removeprefix(MODULE)
    for specification in catalogue()
    if specification.name == MODULE
    for model in specification.models
    if ("_kafka_4_3_" in model.name or "_kafka_3_9_" in model.name) and model.fails and model.size == "small"
]
GRAPHS = {
    "4.3, inner": ("_race_any", {"Protocol": "kafka 4.3"}),
    "4.3, left": ("_kafka_4_3_left", {}),
    "4.3, inner, answered": ("_kafka_4_3_answer", {}),
    "3.9, inner": ("_race_any", {"Protocol": "kafka 3.9"}),
    "3.9, left": ("_kafka_4_3_left", {"Protocol": "kafka 3.9"}),
}
SMALL: Mapping[str, TlaValue] = {"LeftChanges": 2, "RightChanges": 1}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_protocol_of_kafka_shares_every_behaviour_of_two_left_and_one_right_changes(name: str) -> None:
    suffix, constants = GRAPHS[name]
    states, all_ = tla_models.graph(MODULE, suffix, **{**SMALL, **constants})
    replayed = replay(states.behaviours(), all_, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > 1_000


@pytest.mark.parametrize("name", ["4.3, left", "4.3, inner"])
def test_the_protocol_of_another_kafka_doesnt_share_them(name: str) -> None:
    suffix, constants = GRAPHS[name]
    states, all_ = tla_models.graph(MODULE, suffix, **{**SMALL, **constants})
    assert replay(states.covering(), {**all_, "Protocol": "kafka 3.9"}, MODULE).disagreements


@pytest.mark.parametrize("suffix", [*FAILING, "_repeats_inner", "_repeats_inner_accepted"])
def test_a_counterexample_of_kafkas_is_one_on_its_protocol_and_none_where_all_is_answered(suffix: str) -> None:
    trace, constants, violated = tla_models.counterexample(MODULE, suffix)
    assert violated == "QuietIsJoined"
    assert replay([trace], constants, MODULE) == ReplayResult(1, len(trace) - 1, ())
    found = contrast(trace, constants)
    assert [one.arrival for one in found.broken if one.property == violated] == [len(trace) - 2]
    assert found.broken_on_right == ()


def test_a_message_without_a_key_is_no_line_of_a_history() -> None:
    states, constants = tla_models.graph(MODULE, "_kafka_4_3_left", **SMALL)
    trace = next(
        trace
        for trace in states.covering()
        if any(isinstance(line, Delivery) and line.foreign_key == WITHOUT_KEY for line in lines_read(trace, constants))
    )
    with pytest.raises(BadInput, match=r"^step \d+: a message without a foreign key is forwarded, which no"):
        history_of(trace, constants, MODULE)


def lines_read(trace: Trace, constants: Mapping[str, TlaValue]) -> list[Line]:
    return [action.line for _, action in steps_of(trace, ForeignKeyJoinReplay(constants))]
