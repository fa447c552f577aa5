from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from streamproof.properties.witnesses.kafka import jvm as kafka_jvm
from streamproof.properties.witnesses.kafka.jvm import cached_jars, driver_of, find_jars, kafka_jars
from streamproof.reference.core.errors import MissingTool
from streamproof.specs.java import JavaHome


@pytest.fixture
def no_jars(monkeypatch, tmp_path):
    """An empty cache, and no folder named."""
    monkeypatch.delenv(kafka_jvm.JARS_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def ivy(monkeypatch, no_jars):
    """Say what Ivy does: a shell script that stands in for Java, with `$JARS` for the folder that Ivy fetches into."""
    monkeypatch.setattr(kafka_jvm, "_pyspark_jar", lambda name: Path(f"{name}.jar"))

    def does(script: str) -> None:
        java = no_jars / "bin" / "java"
        java.parent.mkdir(exist_ok=True)
        find = 'while [ "$1" != -retrieve ]; do shift; done; JARS=$(dirname "$2")'
        java.write_text(f'#!/bin/sh\necho "$@" > {shlex.quote(str(no_jars / "said"))}\n{find}\n{script}\n')
        java.chmod(0o755)
        monkeypatch.setattr(kafka_jvm, "find_java", lambda: JavaHome(no_jars, 17, "PATH"))

    return does


FETCHES = 'mkdir -p "$JARS"; touch "$JARS/kafka-streams-test-utils-4.3.1.jar"'


def test_a_named_folder_may_have_a_folder_for_each_release_as_the_cache_has(monkeypatch, tmp_path):
    older = tmp_path / "kafka-streams-test-utils-3.9.0"
    older.mkdir()
    for folder, version in ((tmp_path, "4.3.1"), (older, "3.9.0")):
        (folder / f"kafka-streams-test-utils-{version}.jar").touch()
    monkeypatch.setenv(kafka_jvm.JARS_VARIABLE, str(tmp_path))
    assert (kafka_jars(driver_of("4.3.1")), kafka_jars(driver_of("3.9.0"))) == (tmp_path, older)


def test_a_named_folder_with_another_release_says_how_to_ask_that(monkeypatch, tmp_path):
    (tmp_path / "kafka-streams-test-utils-4.9.9.jar").touch()
    monkeypatch.setenv(kafka_jvm.JARS_VARIABLE, str(tmp_path))
    with pytest.raises(MissingTool) as refused:
        kafka_jars()
    assert "has no kafka-streams-test-utils-4.3.1.jar but kafka-streams-test-utils-4.9.9.jar" in str(refused.value)
    assert "--kafka-version" in str(refused.value)


def test_a_named_folder_without_the_test_driver_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv(kafka_jvm.JARS_VARIABLE, str(tmp_path))
    with pytest.raises(MissingTool, match="unset STREAMPROOF_KAFKA_JARS"):
        kafka_jars()


def test_jars_are_fetched_into_the_cache_once_by_their_coordinates(ivy, no_jars):
    ivy(FETCHES)
    assert find_jars() is None
    assert kafka_jars() == cached_jars() == find_jars()
    assert "-dependency org.apache.kafka kafka-streams-test-utils 4.3.1" in (no_jars / "said").read_text()
    assert [path.name for path in cached_jars().parent.iterdir()] == ["kafka-streams-test-utils-4.3.1"]
    ivy("exit 1")
    assert kafka_jars() == cached_jars()


def test_it_is_said_once_what_is_fetched_and_how_much_it_was(ivy, capsys):
    ivy(f'{FETCHES}; head -c 1600000 /dev/zero > "$JARS/kafka-streams-4.3.1.jar"')
    kafka_jars()
    kafka_jars()
    assert capsys.readouterr().err.splitlines() == [
        f"fetching the jars of kafka-streams-test-utils 4.3.1 into {cached_jars()}, once: up to 100 MB",
        "fetched 2 jars of kafka-streams-test-utils 4.3.1: 2 MB",
    ]


def test_other_jars_are_fetched_by_their_own_coordinates(ivy, no_jars):
    ivy('mkdir -p "$JARS"; touch "$JARS/broker-1.jar" "$JARS/logs-2.jar"')
    broker, logs = kafka_jvm.Coordinates("org", "broker", "1"), kafka_jvm.Coordinates("org", "logs", "2")
    folder = kafka_jars(broker, logs)
    assert folder == cached_jars(broker) == find_jars(broker)
    assert find_jars() is None
    assert "-dependency org logs 2" in (no_jars / "said").read_text()


def test_a_release_that_cannot_be_fetched_names_those_that_are_known(ivy):
    ivy("echo 'module not found: org.apache.kafka#kafka-streams-test-utils;3.8.99'; exit 1")
    with pytest.raises(MissingTool) as refused:
        kafka_jars(driver_of("3.8.99"))
    assert "kafka-streams-test-utils:3.8.99 are missing" in str(refused.value)
    assert "name an existing release, such as 3.6.2, " in str(refused.value)


def test_jars_that_another_process_fetched_meanwhile_are_taken(ivy):
    theirs = shlex.quote(str(cached_jars()))
    ivy(f"{FETCHES}; mkdir -p {theirs}; touch {theirs}/kafka-streams-test-utils-4.3.1.jar")
    assert [path.name for path in kafka_jars().parent.iterdir()] == ["kafka-streams-test-utils-4.3.1"]


def test_the_settings_of_the_users_ivy_are_used(ivy, monkeypatch, no_jars):
    settings = no_jars / ".ivy2" / "ivysettings.xml"
    settings.parent.mkdir()
    settings.touch()
    monkeypatch.setattr(Path, "home", lambda: no_jars)
    ivy(FETCHES)
    kafka_jars()
    assert f"-settings {settings}" in (no_jars / "said").read_text()


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (
            "module not found: org#jar;1\nServer access error (java.net.ConnectException: Connection refused)",
            1,
            "java.net.ConnectException: Connection refused",
        ),
        ("module not found: org#jar;1", 1, "module not found: org#jar;1"),
        ("", 0, "it gave no reason"),
    ],
)
def test_where_nothing_is_fetched_the_reason_and_the_remedy_are_reported(ivy, said, status, reason):
    ivy(f"printf {shlex.quote(said)}; exit {status}")
    with pytest.raises(MissingTool) as refused:
        kafka_jars()
    assert f"({reason})" in str(refused.value)
    assert "set STREAMPROOF_KAFKA_JARS to a folder with the jars" in str(refused.value)
    assert [*cached_jars().parent.iterdir()] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_cache_that_cannot_be_written_is_reported(ivy, no_jars):
    ivy(FETCHES)
    no_jars.chmod(0o500)
    with pytest.raises(MissingTool, match="set XDG_CACHE_HOME"):
        kafka_jars()


def test_a_jvm_that_does_not_start_is_reported_with_its_log(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setattr(kafka_jvm, "find_java", lambda: JavaHome(tmp_path, 17, "PATH"))
    with pytest.raises(MissingTool, match="the reason is in"):
        kafka_jvm.start_jvm(tmp_path)
