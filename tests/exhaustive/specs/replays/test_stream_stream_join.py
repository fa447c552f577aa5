"""Behaviours of `StreamStreamJoin.tla`, replayed on the reference action by action."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamproof.reference.core.play import play
from streamproof.specs.pytla import Value
from streamproof.specs.replay import Replayed, history_of, replay
from streamproof.specs.replays.stream_stream_join_mutants import MUTANTS
from tla_models import counterexample, graph

MODULE = "StreamStreamJoin"
GRAPHS: Mapping[str, Mapping[str, Value]] = {
    "": {"Records": 3},
    "_eager": {"Records": 3},
    "_arrival": {"Records": 3},
    "_inner": {"Records": 2},
    "_two_keys": {"Records": 3, "MaxTimestamp": 2, "After": 0, "Grace": 0},
    "_batch": {"Records": 2, "MaxTimestamp": 3},
}
"""Models that pass, made smaller."""


@pytest.mark.parametrize("suffix", GRAPHS)
def test_the_reference_shares_every_behaviour_of_a_few_records(suffix: str) -> None:
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    replayed = replay(states.behaviours(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > 300


BUGS = [mutant for mutant in MUTANTS if mutant != "none"]


@pytest.mark.parametrize("mutant", BUGS)
def test_a_mutants_counterexample_is_the_same_bug_on_the_reference_and_not_on_the_right_code(mutant: str) -> None:
    trace, constants, _ = counterexample(MODULE, f"_mutant_{mutant.replace(' ', '_')}")
    assert constants["Mutant"] == mutant
    assert replay([trace], constants, MODULE) == Replayed(1, len(trace) - 1, ())
    assert replay([trace], {**constants, "Mutant": "none"}, MODULE).disagreements


def test_a_record_that_is_not_late_misses_a_partner_on_the_reference_too() -> None:
    trace, constants, _ = counterexample(MODULE, "_not_late")
    assert replay([trace], constants, MODULE).disagreements == ()
    assert not play(history_of(trace, constants, MODULE)).entries


# A match is forgotten after four records alone, as in the counterexample above.
SEEN = [mutant for mutant in BUGS if mutant != "match forgotten"]
SHOWN_BY = {"null in any case": "_eager", "null again on close": "_eager", "left rows kept": "_arrival"}


@pytest.mark.parametrize("mutant", SEEN)
def test_a_reference_with_a_bug_doesnt_share_the_right_models_behaviours(mutant: str) -> None:
    suffix = SHOWN_BY.get(mutant, "")
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    assert replay(states.covering(), {**constants, "Mutant": mutant}, MODULE).disagreements
