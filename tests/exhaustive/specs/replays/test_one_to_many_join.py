"""Behaviours of `OneToManyJoin.tla`, whose changes are replayed on the reference."""

from __future__ import annotations

import pytest
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Output, Record
from streamproof.reference.one_to_many_join import Behaviour
from streamproof.specs.pytla import ModelValue
from streamproof.specs.replay import history_of, replay
from streamproof.specs.replays import one_to_many_join
from tla_models import counterexample, graph

MODULE = "OneToManyJoin"


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
    states, constants = graph(MODULE, suffix, LeftChanges=2, RightChanges=1, LeftKeys=frozenset({"l1"}))
    traces = states.covering()
    replayed = replay(traces, constants, MODULE)
    assert replayed.disagreements == ()
    assert replayed.behaviours > 50
    monkeypatch.setattr(one_to_many_join, "Behaviour", LeavesBehind)
    assert replay(traces, constants, MODULE).disagreements


def test_where_grouping_by_left_key_loses_a_row_the_join_has_it() -> None:
    trace, constants, _ = counterexample(MODULE, "_overtaking")
    assert replay([trace], constants, MODULE).disagreements == ()
    assert play(history_of(trace, constants, MODULE)).result == {
        ('["r2", "l1"]', None): ([{"version": 2, "foreign_key": "r2"}, None], 2)
    }
    assert set(dict(trace.steps[-1].state["collected"]["l1"]).values()) == {ModelValue("None")}  # type: ignore
