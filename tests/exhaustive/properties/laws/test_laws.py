"""The laws that no operator mutant can break by itself: each catches a mutant of a witness, a plan or a sink."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.generators.cohorts import cohorts_of
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.outcomes.outcomes import differences
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.reference.core.errors import StreamproofError

SESSIONS = registration_of("session_windows")
DRAWN = list(draw_histories(HistorySettings("session_windows", SESSIONS.profiles["update"], SCHEDULE), 60, 5))


def test_a_batch_that_crashes_before_its_output_is_written_once_and_emits_the_same(spark: SparkSession) -> None:
    cohort = cohorts_of(DRAWN[:20])[0][0]
    witness = SparkWitness()
    (expected, _), (found, output) = (
        witness.run(cohort, RunOptions(crash_in=crashes))
        for crashes in ((), (Crash(1, moment="before its output"), Crash(2)))
    )
    assert len(output.replayed) == 1
    assert not any(differences(*pair) for pair in zip(expected, found, strict=True))
    with pytest.raises(StreamproofError, match=r"should crash in batch 0 without data, .* but never reached it"):
        witness.run(cohort, RunOptions(crash_in=(Crash(0, data=False),)))
