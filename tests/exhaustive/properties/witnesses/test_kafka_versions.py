"""Releases of Kafka Streams: which can be asked, how, and what they are known to show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from streamproof.properties.models.races import races_of
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.witnesses.by_name import witness_named
from streamproof.properties.witnesses.kafka import versions
from streamproof.properties.witnesses.kafka.builder import KafkaDialect
from streamproof.properties.witnesses.kafka.divergences import DIVERGENCES, REPAIRED, KafkaDivergence
from streamproof.properties.witnesses.kafka.jvm import driver_of, find_jars, kafka_jars, kafka_jvm, stop_kafka
from streamproof.properties.witnesses.kafka.releases import answer_of, answers, cell, verdict_of
from streamproof.properties.witnesses.kafka.versions import (
    DEFAULT,
    RELEASES,
    STORES,
    Stores,
    driver_settings,
    release,
    use_version,
    version_in_use,
)
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import BadInput, MissingTool
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record


@pytest.fixture(autouse=True)
def no_version_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(versions.VERSION_VARIABLE, raising=False)
    monkeypatch.setattr(versions, "_named", None)


@pytest.fixture
def older() -> str:
    """An older release whose jars are here; without one the test is skipped, for tests fetch nothing."""
    for version in ("3.9.0", *RELEASES[:-1]):
        if find_jars(driver_of(version)) is not None:
            return version
    pytest.skip(f"no jars of Kafka {', '.join(RELEASES[:-1])} here: `streamproof divergences --table` fetches them")


def test_releases_are_in_order_and_the_default_is_the_newest() -> None:
    assert sorted(RELEASES, key=release) == [*RELEASES]
    assert RELEASES[-1] == DEFAULT


@pytest.mark.parametrize(
    "version", ["4.3", "4", "", "4.3.1-rc0", "v4.3.1", "4.03.1", "4.3.1.0", "4.\u0663.1", " 4.3.1"], ids=ascii
)
def test_what_is_no_release_is_refused(version: str) -> None:
    with pytest.raises(BadInput, match=r"isn't a release of Kafka.*use one of 3\.6\.2, .*4\.3\.1"):
        KafkaWitness(version=version)


@pytest.mark.parametrize("version", ["3.5.2", "2.8.0", "0.11.0"])
def test_an_older_release_than_can_be_asked_is_refused(version: str) -> None:
    with pytest.raises(BadInput, match=rf"Kafka {version} is too old.*use one of 3\.6\.2, "):
        release(version)


def test_the_option_comes_before_the_environment_and_that_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert version_in_use() == DEFAULT
    monkeypatch.setenv(versions.VERSION_VARIABLE, "3.8.1")
    assert version_in_use() == "3.8.1"
    use_version("3.9.0")
    assert version_in_use() == "3.9.0"
    assert witness_named("kafka") == KafkaWitness(version="3.9.0")
    use_version(None)
    assert version_in_use() == "3.8.1"


def test_reports_name_a_release_that_is_not_the_default() -> None:
    assert versions.name_in_use() == "Kafka Streams"
    use_version("3.9.0")
    assert versions.name_in_use() == "Kafka Streams 3.9.0"


def test_an_environment_that_names_no_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(versions.VERSION_VARIABLE, "newest")
    with pytest.raises(BadInput, match="'newest' isn't a release"):
        version_in_use()


@pytest.mark.parametrize("stores", STORES)
def test_a_release_is_set_up_by_the_settings_that_it_knows(stores: Stores) -> None:
    old, new = driver_settings("3.6.2", stores), driver_settings("3.7.0", stores)
    assert old["default.dsl.store"] == ("in_memory" if stores == "in memory" else "rocksDB")
    assert "dsl.store.suppliers.class" not in old
    assert "default.dsl.store" not in new
    assert ("RocksDB" in new["dsl.store.suppliers.class"]) == (stores == "RocksDB")


def test_a_divergence_is_in_a_release_from_its_first_on() -> None:
    late = DIVERGENCES["null-emitted-late"]
    assert [late.is_in(version) for version in ("3.6.2", "3.7.2", late.since, "4.3.1", "5.0.0")] == [False] * 2 + [
        True
    ] * 3


@pytest.mark.parametrize(
    ("version", "is_in"),
    [
        ("3.6.2", True),
        ("3.9.0", True),
        ("3.9.1", False),
        ("3.9.9", False),
        ("4.0.0", True),
        ("4.0.1", False),
        ("4.1.0", False),
        ("5.0.0", False),
    ],
)
def test_a_repair_is_in_its_minor_release_from_then_on_and_in_all_later(version: str, is_in: bool) -> None:
    assert REPAIRED["gained-key-ignored"].is_in(version) == is_in


OF_REPAIRED = pytest.mark.parametrize("divergence", REPAIRED.values(), ids=REPAIRED)


@OF_REPAIRED
def test_the_default_release_is_known_to_show_none_that_is_repaired(divergence: KafkaDivergence) -> None:
    assert divergence.name not in DIVERGENCES
    assert not divergence.is_in(DEFAULT)
    assert all(one.is_in(DEFAULT) for one in DIVERGENCES.values())


@OF_REPAIRED
def test_no_record_of_what_an_older_release_shows_can_be_spared(divergence: KafkaDivergence, older: str) -> None:
    shows = divergence.is_in(older)
    answer = answer_of(divergence, version=older)
    assert answer.kafka is not None
    assert answer.shows == shows
    lasts = answer.reference.result != answer.kafka.result
    lines = divergence.history.lines
    smaller = [divergence.history.with_lines([*lines[:index], *lines[index + 1 :]]) for index in range(len(lines))]
    for history, kafka in zip(smaller, KafkaWitness(version=older).evaluate(smaller), strict=True):
        reference = Outcome.of_play(history.name, play(history))
        differs = reference.result != kafka.result if lasts else differences(reference, kafka)
        assert not shows or not differs, history.to_text()


PAIR = [Record("left", "a", 1, 0), Record("right", "a", 2, 1)]


@pytest.mark.usefixtures("kafka")
def test_two_releases_are_asked_side_by_side_in_one_process(older: str) -> None:
    history = History("table_table_join", {}, tuple(PAIR))
    first = KafkaWitness().evaluate([history])
    assert KafkaWitness(version=older).evaluate([history]) == first == KafkaWitness().evaluate([history])
    both = kafka_jvm(), kafka_jvm(older)
    told = [jvm.gateway.jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion() for jvm in both]
    assert told == [DEFAULT, older]
    stop_kafka(older)
    assert [jvm.is_alive for jvm in both] == [True, False]
    assert not both[1].gateway._gateway_client.is_connected, "the collector of Python would ask it, and log an error"
    stop_kafka(older)
    assert KafkaWitness(version=older).evaluate([history]) == first
    stop_kafka(older)


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("stores", STORES)
def test_each_release_joins_streams_on_either_kind_of_store(older: str, stores: Stores) -> None:
    options = {"join": "outer", "before_ms": 5, "after_ms": 5, "grace_ms": 5, "emit": "close"}
    lines = (*PAIR, Record("left", "b", 3, 2), Record("right", "c", 4, 30))
    history = History("stream_stream_join", options, lines)
    (outcome,) = KafkaWitness(KafkaDialect(stores=stores), older).evaluate([history])
    assert not differences(Outcome.of_play(history.name, play(history)), outcome)


def test_a_release_without_jars_is_missing_and_skipped_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jar = f"kafka-streams-test-utils-{DEFAULT}.jar"
    (tmp_path / jar).touch()
    monkeypatch.setenv("STREAMPROOF_KAFKA_JARS", str(tmp_path))
    history = History("table_table_join", {}, tuple(PAIR))
    with pytest.raises(MissingTool, match=r"has no kafka-streams-test-utils-3\.8\.1\.jar"):
        KafkaWitness(version="3.8.1").evaluate([history])
    asked = answers(DIVERGENCES["zero-window"], "3.8.1")
    assert (cell(asked), verdict_of(asked)) == ("?", "inconclusive")


IN_CI = ("3.6.2", "3.9.0", DEFAULT)
"""The oldest, which is set up otherwise than all others; one that shows what is repaired; the default."""
RACES_IN_CI = IN_CI[1:]
"""Without the oldest: its schedules take half a minute, and its divergences show that it is set up."""
BETWEEN = pytest.mark.weekly("they are set up as those in CI, and what they show changes by no commit of ours")


def releases(in_ci: Sequence[str]) -> pytest.MarkDecorator:
    """Ask each release: in CI these alone."""
    marked = [pytest.param(each, marks=[BETWEEN] * (each not in in_ci)) for each in RELEASES]
    return pytest.mark.parametrize("version", marked, indirect=True)


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each release; skipped by its name where its jars can't be had."""
    try:
        kafka_jars(driver_of(request.param))
    except MissingTool as missing:
        pytest.skip(str(missing))
    yield request.param
    if request.param != DEFAULT:
        stop_kafka(request.param)


@releases(IN_CI)
@pytest.mark.usefixtures("kafka")
def test_a_release_shows_the_divergences_that_it_is_known_for(version: str) -> None:
    known = {**DIVERGENCES, **REPAIRED}
    asked = {name: answers(divergence, version) for name, divergence in known.items()}
    assert {name: cell(each) for name, each in asked.items()} == {
        name: "yes" if divergence.is_in(version) else "no" for name, divergence in known.items()
    }


@releases(RACES_IN_CI)
@pytest.mark.usefixtures("kafka")
def test_a_release_has_the_races_that_it_is_known_for(version: str) -> None:
    found = races_of(version)
    assert {one.race.name: bool(one.wrong) for one, _ in found} == {one.race.name: known for one, known in found}
