"""The law *labels* on shared queries, played in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from shared_player import play_in_memory
from streamproof import History
from streamproof.properties.checking.mutation import check_mutants, chosen
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.labels import Labels
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark import shared
from streamproof.properties.witnesses.spark.answers import Answers
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.shared import Play, run_shared
from streamproof.reference.core.history import CUT, ClockAdvance
from streamproof.reference.core.records import Record
from streamproof.spark_impl.stream_stream_join import StreamStreamLogic

LATE = History(
    "stream_stream_join",
    {"join": "inner", "before_ms": 10, "after_ms": 10},
    (Record("left", "a", 1, 100), ClockAdvance(100), CUT, Record("left", "a", 2, 5), ClockAdvance(100)),
    "batch",
    "late",
)


def test_a_dropped_row_of_another_time_is_killed_by_this_law_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    (kill,) = check_mutants(chosen("stream_stream_join", ["dropped_by_the_clock"]), histories=40, rounds=0)
    assert set(kill.laws) == {"labels"}


def test_of_a_dropped_row_the_time_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    (comparison,) = Labels().recheck([Case(LATE)])
    assert comparison.differences == []
    (label,) = [one for one in run_shared([Play(LATE)]).labels[0] if one.change == "dropped"]
    assert (label.cause, label.timestamp) == (1, 5)


def test_a_definition_whose_query_fails_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    played = shared._run_query

    def run(plays: Sequence[Play], options: RunOptions = PLAIN) -> Answers:
        if any(play.logic is not None for play in plays):
            raise QueryFailed("a worker ended")
        return played(plays, options)

    monkeypatch.setattr(shared, "_run_query", run)
    answers = run_shared([Play(LATE), Play(LATE, StreamStreamLogic)])
    (failed,) = answers.outcomes[1].entries
    assert failed.output.reason == "failed: a worker ended"  # type: ignore[union-attr]
    assert len(answers.labels[1]) == 1
    assert not [entry for entry in answers.outcomes[0].entries if "failed" in str(entry)]
    assert answers.outcomes[0].entries
