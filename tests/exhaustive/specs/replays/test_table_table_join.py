"""Behaviours of `TableTableJoin.tla`, replayed on the reference action by action."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamproof.specs.pytla import Value
from streamproof.specs.replay import replay
from streamproof.specs.replays.table_table_join_mutants import MUTANTS
from tla_models import counterexample, graph

MODULE = "TableTableJoin"
GRAPHS: Mapping[str, Mapping[str, Value]] = {
    "": {"Changes": 2},
    "_inner": {"Changes": 2},
    "_outer": {"Changes": 2},
    "_once": {},
}
"""Models that pass, with fewer changes than they have."""


@pytest.mark.parametrize("suffix", GRAPHS)
def test_the_reference_shares_every_behaviour_of_two_changes_of_each_table(suffix: str) -> None:
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    replayed = replay(states.behaviours(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > 500


# Changes overtake each other before they come to the join, so that one has no mutant of its own.
BUGS = [mutant for mutant in MUTANTS if mutant not in ("none", "changes overtake")]


@pytest.mark.parametrize("mutant", BUGS)
def test_a_mutants_counterexample_is_the_same_bug_on_the_reference_and_not_on_the_right_code(mutant: str) -> None:
    trace, constants, _ = counterexample(MODULE, f"_mutant_{mutant.replace(' ', '_')}")
    assert constants["Mutant"] == mutant
    assert replay([trace], constants, MODULE).disagreements == ()
    assert replay([trace], {**constants, "Mutant": "none"}, MODULE).disagreements


@pytest.mark.parametrize("suffix", ["_again", "_mutant_changes_overtake"])
def test_what_is_no_bug_of_the_join_is_shared_by_the_reference(suffix: str) -> None:
    trace, constants, _ = counterexample(MODULE, suffix)
    assert replay([trace], constants, MODULE).disagreements == ()


SHOWN_BY = {"null shown": "_inner"}


@pytest.mark.parametrize("mutant", BUGS)
def test_a_reference_with_a_bug_doesnt_share_the_right_models_behaviours(mutant: str) -> None:
    suffix = SHOWN_BY.get(mutant, "")
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    assert replay(states.covering(), {**constants, "Mutant": mutant}, MODULE).disagreements
