from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.generators.cohorts import one_cohort, pack
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from streamproof.properties.generators.values import (
    KEY_SETS,
    PLAIN,
    SMALL,
    kind_named,
)
from streamproof.properties.registration.key_space import WATERMARK_DRIVER, owner
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.history import History, parse_history

OPERATORS = {name: list(one.profiles) for name, one in registered().items()}
PROFILES = [(name, profile) for name, profiles in OPERATORS.items() for profile in profiles]


def settings_of(operator: str, profile: str, **more: Any) -> HistorySettings:
    return HistorySettings(operator, registration_of(operator).profiles[profile], SCHEDULE, **more)


def drawn(operator: str, profile: str, count: int, seed: int = 1, **more: Any) -> list[History]:
    return list(draw_histories(settings_of(operator, profile, **more), count, seed, mixed=True))


def on_both_clocks(mixed: list[History]) -> list[History]:
    return [under_stream_time(one) if number % 2 else one for number, one in enumerate(mixed)]


@pytest.mark.parametrize(("operator", "profile"), PROFILES)
def test_without_a_kind_and_a_set_histories_are_those_of_small_integers_and_plain_keys(
    operator: str, profile: str
) -> None:
    plain = settings_of(operator, profile)
    said = replace(plain, kind=SMALL, key_set=PLAIN)
    assert list(draw_histories(plain, 3, seed=1)) == list(draw_histories(said, 3, seed=1))


@pytest.mark.parametrize(("operator", "profile"), PROFILES)
def test_every_kind_and_every_set_has_its_turn_in_mixed_histories(operator: str, profile: str) -> None:
    plain = settings_of(operator, profile)
    count = max(len(plain.kinds), len(KEY_SETS))
    keys = {record.key for history in drawn(operator, profile, count) for record in history.records}
    assert all(keys & set(of_set) for of_set in KEY_SETS.values())
    mixed = drawn(operator, profile, count)
    texts = {json.dumps(record.value) for history in mixed for record in history.records}
    for name in plain.kinds:
        found = [json.dumps(value) in text for value in kind_named(name).examples for text in texts]
        assert any(found), name


@pytest.mark.parametrize(("operator", "profile"), PROFILES)
@pytest.mark.parametrize("seed", [2, 3])
def test_histories_of_one_kind_fit_the_typed_columns_of_a_cohort(operator: str, profile: str, seed: int) -> None:
    registration, plain = registration_of(operator), settings_of(operator, profile)
    own = replace(plain, kind=(plain.kinds or (SMALL,))[-1], key_set=[*KEY_SETS][seed])
    assert registration.spark is not None
    cohort = one_cohort(list(draw_histories(own, 12, seed)))
    records = [record for history in cohort.histories for record in history.records]
    tables = pack(cohort, registration.spark.fields(registration.declare(cohort.options), records))
    packed = [key for table in tables for key in table.column("key").to_pylist()]
    assert packed.count(WATERMARK_DRIVER) == len(SCHEDULE)
    assert sorted(owned[1] for key in packed if (owned := owner(key)) is not None) == sorted(
        record.key or "" for record in records
    )


@pytest.mark.parametrize(("operator", "profile"), PROFILES)
@pytest.mark.parametrize("null_keys", [False, True])
def test_a_mixed_history_comes_back_from_its_file(operator: str, profile: str, null_keys: bool) -> None:
    for history in drawn(operator, profile, 20, null_keys=null_keys):
        back = parse_history(history.to_text())
        assert back == history
        assert repr(back.records) == repr(history.records)  # 1, 1.0 and true are equal, and not the same


@pytest.mark.parametrize(("operator", "profile"), PROFILES)
def test_kafkas_refusal_knows_every_value_and_key(operator: str, profile: str) -> None:
    mixed = on_both_clocks(drawn(operator, profile, 20))
    refusals = [KafkaWitness().refuses(history) for history in mixed]
    assert all(refusal is not None for refusal in refusals[::2])
    plain = draw_histories(settings_of(operator, profile), 20, seed=1)
    expected = [KafkaWitness().refuses(under_stream_time(history)) is None for history in plain]
    assert [refusal is None for refusal in refusals[1::2]] == expected[1::2]
