from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from streamproof.properties.witnesses.spark.platform import class_archive
from streamproof.properties.witnesses.spark.platform.class_archive import archive_of, java_options
from streamproof.specs.java import JavaHome, find_java

JAVA = JavaHome(Path("/jdk"), 17, "PATH")


def test_an_archive_is_of_one_spark_one_java_and_one_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive, "version", lambda name: "4.3.0")
    assert archive_of(JAVA) == tmp_path / "share/streamproof/spark-4.3.0-java-17.jsa"


def test_java_is_told_of_an_archive_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert java_options(JAVA) == []
    archive = archive_of(JAVA)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert java_options(JAVA) == [f"-XX:SharedArchiveFile={archive}"]


def test_an_archive_that_java_cannot_read_is_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsa"
    broken.write_bytes(b"no archive")
    command = [find_java().executable, f"-XX:SharedArchiveFile={broken}", "-version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
