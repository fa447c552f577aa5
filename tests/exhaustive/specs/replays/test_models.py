"""Behaviours of the models, replayed on the reference action by action: all of small ones, and counterexamples."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Output, Record
from streamproof.reference.one_to_many_join import Behaviour
from streamproof.specs.pytla import ModelValue, TlaValue
from streamproof.specs.replay import ReplayResult, history_of, replay
from streamproof.specs.replays import (
    one_to_many_join,
    session_windows_mutants,
    stream_stream_join_mutants,
    table_table_join_mutants,
)
from tla_models import counterexample, graph

SESSIONS, STREAMS, TABLES, ONE_TO_MANY = "SessionWindows", "StreamStreamJoin", "TableTableJoin", "OneToManyJoin"
GRAPHS: Mapping[tuple[str, str], Mapping[str, TlaValue]] = {
    **{(SESSIONS, suffix): {"Arrivals": 3} for suffix in ("", "_close", "_own", "_revised")},
    (SESSIONS, "_batch"): {"Arrivals": 3, "LastTime": 3},
    **{(STREAMS, suffix): {"Records": 3} for suffix in ("", "_eager", "_arrival")},
    (STREAMS, "_inner"): {"Records": 2},
    (STREAMS, "_two_keys"): {"Records": 3, "MaxTimestamp": 2, "After": 0, "Grace": 0},
    (STREAMS, "_batch"): {"Records": 2, "MaxTimestamp": 3},
    **{(TABLES, suffix): {"Changes": 2} for suffix in ("", "_inner", "_outer")},
    (TABLES, "_once"): {},
}
"""Models that pass, made smaller."""


@pytest.mark.parametrize(("module", "suffix"), GRAPHS)
def test_the_reference_shares_every_behaviour_of_a_small_model(module: str, suffix: str) -> None:
    states, constants = graph(module, suffix, **GRAPHS[module, suffix])
    replayed = replay(states.behaviours(), constants, module)
    assert replayed.disagreements == ()
    assert replayed.behaviours == states.count_behaviours() > (300 if module == STREAMS else 500)


# Changes of tables overtake each other before they come to the join, so that one has no mutant of its own.
BUGS = [
    (module, mutant)
    for module, mutants in (
        (SESSIONS, session_windows_mutants.MUTANTS),
        (STREAMS, stream_stream_join_mutants.MUTANTS),
        (TABLES, table_table_join_mutants.MUTANTS),
    )
    for mutant in mutants
    if mutant not in ("none", "changes overtake")
]


@pytest.mark.parametrize(("module", "mutant"), BUGS)
def test_a_mutants_counterexample_is_the_same_bug_on_the_reference_and_not_on_the_right_code(
    module: str, mutant: str
) -> None:
    trace, constants, _ = counterexample(module, f"_mutant_{mutant.replace(' ', '_')}")
    assert constants["Mutant"] == mutant
    assert replay([trace], constants, module) == ReplayResult(1, len(trace) - 1, ())
    assert replay([trace], {**constants, "Mutant": "none"}, module).disagreements


# A record without a key changes nothing, so no state graph has one; a match is forgotten after four records alone.
# The counterexamples above have both.
SEEN = [bug for bug in BUGS if bug[1] not in ("null key moves clock", "match forgotten")]
SHOWN_BY = {
    (SESSIONS, "tells again"): "_close",
    (STREAMS, "null in any case"): "_eager",
    (STREAMS, "null again on close"): "_eager",
    (STREAMS, "left rows kept"): "_arrival",
    (TABLES, "null shown"): "_inner",
}


@pytest.mark.parametrize(("module", "mutant"), SEEN)
def test_a_reference_with_a_bug_doesnt_share_the_right_models_behaviours(module: str, mutant: str) -> None:
    suffix = SHOWN_BY.get((module, mutant), "")
    states, constants = graph(module, suffix, **GRAPHS[module, suffix])
    assert replay(states.covering(), {**constants, "Mutant": mutant}, module).disagreements


@pytest.mark.parametrize(
    ("module", "suffix"),
    [
        (SESSIONS, "_revised_final"),
        (SESSIONS, "_revised_forgets"),
        (STREAMS, "_not_late"),
        (TABLES, "_again"),
        (TABLES, "_mutant_changes_overtake"),
    ],
)
def test_a_counterexample_that_no_mutant_makes_is_one_on_the_reference_too(module: str, suffix: str) -> None:
    trace, constants, _ = counterexample(module, suffix)
    assert replay([trace], constants, module).disagreements == ()
    if suffix == "_not_late":  # a record that is not late misses a partner
        assert not play(history_of(trace, constants, module)).entries


@pytest.mark.parametrize(
    ("suffix", "sessions"),
    [("_gap_closure", {(0, 0): 1, (1, 1): 1, (3, 3): 1}), ("_overlap", {(0, 0): 1, (0, 1): 2, (3, 3): 1})],
)
def test_what_closed_is_final_costs_is_seen_on_the_reference(
    suffix: str, sessions: Mapping[tuple[int, int], int]
) -> None:
    trace, constants, _ = counterexample(SESSIONS, suffix)
    assert replay([trace], constants, SESSIONS).disagreements == ()
    table = play(history_of(trace, constants, SESSIONS)).result
    assert isinstance(table, dict)
    assert {window: count for (_, window), (count, _) in table.items()} == sessions


class LeavesBehind(Behaviour):
    """Doesn't delete a row under its old foreign key."""

    def _change_left(self, record: Record) -> list[Output]:
        rows = dict(self.rows)
        emitted = super()._change_left(record)
        self.rows = {**rows, **self.rows} if record.value is not None else self.rows
        return emitted


@pytest.mark.parametrize("suffix", ["", "_inner", "_settles"])
def test_the_reference_shares_every_edge_of_two_left_and_one_right_changes(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, constants = graph(ONE_TO_MANY, suffix, LeftChanges=2, RightChanges=1, LeftKeys=frozenset({"l1"}))
    traces = states.covering()
    replayed = replay(traces, constants, ONE_TO_MANY)
    assert replayed.disagreements == ()
    assert replayed.behaviours > 50
    monkeypatch.setattr(one_to_many_join, "Behaviour", LeavesBehind)
    assert replay(traces, constants, ONE_TO_MANY).disagreements


def test_where_grouping_by_left_key_loses_a_row_the_join_has_it() -> None:
    trace, constants, _ = counterexample(ONE_TO_MANY, "_overtaking")
    assert replay([trace], constants, ONE_TO_MANY).disagreements == ()
    assert play(history_of(trace, constants, ONE_TO_MANY)).result == {
        ('["r2", "l1"]', None): ([{"version": 2, "foreign_key": "r2"}, None], 2)
    }
    assert set(dict(trace.steps[-1].state["collected"]["l1"]).values()) == {ModelValue("None")}  # type: ignore
