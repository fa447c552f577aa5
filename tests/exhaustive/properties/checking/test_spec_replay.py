"""Behaviours of TLA+ specifications, replayed on the reference action by action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from foreign_key_models import GRAPHS, MODULE, MUTANTS, RACES, counterexample, graph
from streamproof.reference.core.errors import BadInput
from streamproof.specs.pytla import Function, Trace
from streamproof.specs.replay import ReplayResult, replay
from streamproof.specs.replays import foreign_key_mutants
from streamproof.specs.replays.foreign_key_join import contrast


@pytest.mark.parametrize("name", GRAPHS)
def test_the_reference_shares_every_behaviour_of_two_left_and_one_right_changes(name: str) -> None:
    states, constants = graph(name)
    replayed = replay(states.behaviours(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > 1_000


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutants_counterexample_is_the_same_bug_on_the_reference_and_passes_on_the_right_code(name: str) -> None:
    trace, constants, violated = counterexample(f"mutant_{name}")
    assert replay([trace], constants, MODULE) == ReplayResult(1, len(trace) - 1, ())
    found = contrast(trace, constants)
    # On the code with the bug the last step breaks what TLC says, and no step before it does.
    assert [one.arrival for one in found.broken if one.property == violated] == [len(trace) - 2]
    assert found.broken_on_right == ()


@pytest.mark.parametrize("name", RACES)
def test_a_race_of_kips_inner_join_ends_stale_on_the_reference_and_right_under_answer(name: str) -> None:
    trace, constants, violated = counterexample(name)
    assert (constants["Join"], constants["Protocol"], violated) == ("inner", "kip", "QuietIsJoined")
    assert replay([trace], constants, MODULE) == ReplayResult(1, len(trace) - 1, ())
    found = contrast(trace, constants)
    assert found.broken == (("QuietIsJoined", len(trace) - 2),)
    assert (found.right.options["protocol"], found.broken_on_right) == ("answer", ())


# The other mutant does nothing unless a schedule makes use of it.
SEEN = [name for name in foreign_key_mutants.MUTANTS if name not in ("none", "routes out of order")]


@pytest.mark.parametrize("mutant", SEEN)
def test_a_reference_with_a_bug_doesnt_share_the_right_models_behaviours(mutant: str) -> None:
    states, constants = graph("left, null keys kept" if mutant == "null key silent" else "left")
    renamed = {"r1": "r1", "r2": "r10"} if mutant == "no prefix length" else {}
    traces = [with_keys(trace, renamed) for trace in states.covering()] if renamed else states.covering()
    assert replay(traces, constants, MODULE).disagreements == ()
    assert replay(traces, {**constants, "Mutant": mutant}, MODULE).disagreements


def with_keys(trace: Trace, names: Mapping[str, str]) -> Trace:
    """The same behaviour with other right keys."""

    def renamed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return Function((renamed(key), renamed(one)) for key, one in value.items())
        if isinstance(value, (tuple, frozenset)):
            return type(value)(map(renamed, value))
        return names.get(value, value) if isinstance(value, str) else value

    states = [{name: renamed(value) for name, value in step.state.items()} for step in trace.steps]
    return Trace(tuple(step._replace(state=state) for step, state in zip(trace.steps, states, strict=True)))


def test_a_message_that_overtakes_another_is_none_of_the_right_models_behaviours() -> None:
    trace, constants, _ = counterexample("mutant_routes_out_of_order")
    with pytest.raises(BadInput, match=r"a message overtakes another: replay only behaviours of ForeignKeyJoin"):
        replay([trace], {**constants, "Mutant": "none"}, MODULE)
