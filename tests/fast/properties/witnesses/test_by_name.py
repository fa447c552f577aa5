from __future__ import annotations

from dataclasses import replace

import pytest
from streamproof.properties.cli.witnesses import WitnessName
from streamproof.properties.outcomes.outcomes import Grain
from streamproof.properties.witnesses.by_name import WITNESSES, witness_named
from streamproof.properties.witnesses.run_options import PLAIN
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history

HISTORY = parse_history(
    '{"operator": "session_windows", "options": {"gap_ms": 10}, "clock": "batch"}\n'
    '{"input": "events", "key": "a", "value": "x", "timestamp": 0}\n'
)


def test_every_witness_is_known_by_its_name_to_commands_too() -> None:
    assert [witness_named(name).name for name in WITNESSES] == list(WITNESSES) == [name.value for name in WitnessName]


def test_each_has_its_grain() -> None:
    grains = {name: witness_named(name).grain for name in WITNESSES}
    by_arrival = dict.fromkeys(("reference", "kafka", "protocol"), Grain.ARRIVAL)
    assert grains == {
        **by_arrival,
        "spark": Grain.BATCH,
        "spark-native": Grain.BATCH,
        "duckdb": Grain.END,
        "kafka-broker": Grain.END,
    }


@pytest.mark.parametrize("name", ["spark-native", "kafka", "kafka-broker", "protocol"])
def test_what_a_witness_refuses_it_does_not_answer(name: str) -> None:
    witness = witness_named(name)
    reason = witness.refuses(HISTORY)
    assert reason is not None
    with pytest.raises(BadInput) as refused:
        witness.evaluate([HISTORY], PLAIN)
    assert reason in str(refused.value)


def test_the_protocol_refuses_a_history_behind_those_that_it_answers() -> None:
    answered = History("foreign_key_join", {"foreign_key": "f"}, (), name="first")
    witness, refused = witness_named("protocol"), replace(HISTORY, name="second")
    assert [outcome.history for outcome in witness.evaluate([answered])] == ["first"]
    with pytest.raises(BadInput, match=r"^second: .* session_windows has none: use another witness$"):
        witness.evaluate([answered, refused])


@pytest.mark.parametrize("name", ["reference", "spark", "duckdb"])
def test_the_others_refuse_no_such_history(name: str) -> None:
    assert witness_named(name).refuses(HISTORY) is None


def test_a_job_and_duckdb_refuse_a_schedule_of_deliveries() -> None:
    from streamproof.properties.witnesses.spark.witness import JobWitness

    scheduled = History("foreign_key_join", {"foreign_key": "f", "delivery": "manual"}, (), name="h")
    for witness in (JobWitness(lambda frame: frame), witness_named("duckdb")):
        reason = witness.refuses(scheduled)
        assert reason is not None
        with pytest.raises(BadInput) as refused:
            witness.evaluate([scheduled])
        assert reason in str(refused.value)


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(BadInput, match="unknown witness 'nobody': use one of reference, spark, spark-native, duckdb"):
        witness_named("nobody")
