"""An operator that is registered from outside is mutated and shrunk like the others; docs/own_operator.md checks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deduplicate import register_deduplicate
from paths import TESTS
from pyspark.sql import SparkSession
from shared_player import play_in_memory
from streamproof import Registration, assert_holds
from streamproof.properties.checking.mutation import check_mutants, chosen
from streamproof.properties.generators.cohorts import one_cohort
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.registration import unregister
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.play import play


@pytest.fixture(scope="module")
def deduplicate() -> Iterator[Registration]:
    yield register_deduplicate()
    unregister("deduplicate")


def test_the_registration_takes_less_than_120_lines() -> None:
    lines = (TESTS / "helpers" / "deduplicate.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120


def test_it_emits_on_spark_what_its_reference_emits(spark: SparkSession, deduplicate: Registration) -> None:
    options = deduplicate.profiles["short"]
    histories = list(draw_histories(HistorySettings("deduplicate", options, SCHEDULE), 20, seed=1))
    outcomes, _ = SparkWitness().run(one_cohort(histories))
    expected = [Outcome.of_play(history.name, play(history)) for history in histories]
    assert not any(differences(*both) for both in zip(expected, outcomes, strict=True))
    assert any(outcome.entries for outcome in outcomes)


def test_it_is_mutated_and_shrunk_like_the_ten(deduplicate: Registration, monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    kills = {kill.mutant.name: kill for kill in check_mutants(chosen("deduplicate", []), 60)}
    assert set(kills["kept_for_ever"].laws) == {"state"}
    smallest = kills["exclusive_horizon"].shrunk
    assert smallest is not None
    assert len(smallest.records) == 2
    with pytest.raises(AssertionError, match="violated: the changelog is the reference's"):
        assert_holds("changelog", smallest.to_text(), mutant="exclusive_horizon")
