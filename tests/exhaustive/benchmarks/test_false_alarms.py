"""False alarms are counted: of what is right none, and of what is wrong those that there are; without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from shared_player import play_in_memory
from streamproof.properties.laws.of_reference import judging
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.errors import StreamproofError
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play

from benchmarks.agreement import false_alarms


def test_the_reference_and_duckdb_agree_under_both_clocks_and_rounds_draw_others() -> None:
    rounds = [false_alarms.round_on_reference(["range_aggregate", "stream_stream_join"], 40, seed) for seed in (0, 1)]
    for one in rounds:
        assert one.histories >= 80
        assert 0 < one.emitted <= one.histories
        assert one.disagreements == []


def test_a_reference_that_misses_the_last_record_is_counted_with_the_seed_and_a_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgetful(history: History) -> Any:
        *records, _ = history.records
        return play(history.with_lines(records))

    monkeypatch.setattr(judging, "play", forgetful)
    shown: list[str] = []
    count = false_alarms.Count("the reference", 10, shown.append, seed=3)
    count.add(false_alarms.round_on_reference(["stream_table_join"], 20, 3))
    assert count.is_done
    assert count.broken.keys() == {"duckdb"}
    assert count.disagreements > false_alarms.SHOWN
    assert len(shown) == false_alarms.SHOWN + 1
    assert shown[0].startswith("seed 3, duckdb: ")
    assert '"operator": "stream_table_join"' in shown[0]
    assert f"{count.disagreements:,} disagreements" in shown[-1]
    disagreements, *_ = count.figures()
    assert (disagreements.median, disagreements.reached) == (count.disagreements, False)
    assert "seeds 3 to 3, duckdb" in disagreements.sizes


def test_where_nothing_is_emitted_nothing_was_compared() -> None:
    count = false_alarms.Count("the reference", 10, lambda step: None, seed=3)
    count.add(false_alarms.Round(3, 20, 0, 0.1, []))
    with pytest.raises(StreamproofError, match="no history emitted anything"):
        count.figures()


@pytest.mark.parametrize("mutant", [None, "left_drives_alone", "cause_of_row_before"])
def test_on_spark_each_law_that_a_round_breaks_is_counted(monkeypatch: pytest.MonkeyPatch, mutant: str | None) -> None:
    play_in_memory(monkeypatch)
    join = registration_of("stream_stream_join")
    asked = [join, registration_of("windowed_table"), registration_of("window_aggregate")]
    if mutant is not None:
        asked = [join]
        monkeypatch.setattr(false_alarms, "OWN", SparkWitness(join.mutants[mutant].logic))
    first, second = (one for one, _ in zip(false_alarms.rounds_on_spark(asked, 60, 1), range(2), strict=False))
    laws = {found.law for one in (first, second) for found in one.disagreements}
    assert min(first.histories, second.histories) > 0
    assert first.emitted
    assert (first.seed, second.seed) == (1, 1)
    if mutant is None:
        assert laws == set()
    elif mutant == "cause_of_row_before":
        assert laws == {"labels"}
    else:
        assert laws >= {"changelog", "duckdb"}


def test_operators_in_stages_are_told_from_the_others() -> None:
    staged = {"foreign_key_join", "one_to_many_join", "table_aggregate"}
    assert {name for name in staged if false_alarms.is_staged(registration_of(name))} == staged
    assert not false_alarms.is_staged(registration_of("session_windows"))
