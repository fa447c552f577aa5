"""Behaviours of `SessionWindows.tla`, replayed on the reference action by action."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamproof.reference.core.play import play
from streamproof.specs.pytla import Value
from streamproof.specs.replay import Replayed, history_of, replay
from streamproof.specs.replays.session_windows_mutants import MUTANTS
from tla_models import counterexample, graph

MODULE = "SessionWindows"


def sets(*members: str) -> str:
    return f"{{{', '.join(members)}}}"


def sessions(*members: str) -> str:
    return f"[a |-> {sets(*members)}]"


GRAPHS: Mapping[str, Mapping[str, Value]] = {
    "": {"Arrivals": 3},
    "_close": {"Arrivals": 3},
    "_own": {"Arrivals": 3},
    "_batch": {"Arrivals": 3, "LastTime": 3},
    "_revised": {"Arrivals": 3},
}
"""Models that pass, with fewer arrivals than they have."""


@pytest.mark.parametrize("suffix", GRAPHS)
def test_the_reference_shares_every_behaviour_of_three_arrivals(suffix: str) -> None:
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    replayed = replay(states.behaviours(), constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > 500


@pytest.mark.parametrize("mutant", [mutant for mutant in MUTANTS if mutant != "none"])
def test_a_mutants_counterexample_is_the_same_bug_on_the_reference_and_not_on_the_right_code(mutant: str) -> None:
    trace, constants, _ = counterexample(MODULE, f"_mutant_{mutant.replace(' ', '_')}")
    assert constants["Mutant"] == mutant
    assert replay([trace], constants, MODULE) == Replayed(1, len(trace) - 1, ())
    assert replay([trace], {**constants, "Mutant": "none"}, MODULE).disagreements


@pytest.mark.parametrize("suffix", ["_revised_final", "_revised_forgets"])
def test_a_closed_session_that_is_revised_is_so_on_a_reference_that_revises(suffix: str) -> None:
    trace, constants, _ = counterexample(MODULE, suffix)
    assert replay([trace], constants, MODULE).disagreements == ()


@pytest.mark.parametrize(
    ("suffix", "sessions"),
    [("_gap_closure", {(0, 0): 1, (1, 1): 1, (3, 3): 1}), ("_overlap", {(0, 0): 1, (0, 1): 2, (3, 3): 1})],
)
def test_what_closed_is_final_costs_is_seen_on_the_reference(
    suffix: str, sessions: Mapping[tuple[int, int], int]
) -> None:
    trace, constants, _ = counterexample(MODULE, suffix)
    assert replay([trace], constants, MODULE).disagreements == ()
    table = play(history_of(trace, constants, MODULE)).result
    assert isinstance(table, dict)
    assert {window: count for (_, window), (count, _) in table.items()} == sessions


# A record without a key changes nothing, so no state graph has one; the counterexample above does.
SEEN = [mutant for mutant in MUTANTS if mutant not in ("none", "null key moves clock")]


@pytest.mark.parametrize("mutant", SEEN)
def test_a_reference_with_a_bug_doesnt_share_the_right_models_behaviours(mutant: str) -> None:
    suffix = "_close" if mutant == "tells again" else ""
    states, constants = graph(MODULE, suffix, **GRAPHS[suffix])
    assert replay(states.covering(), {**constants, "Mutant": mutant}, MODULE).disagreements
