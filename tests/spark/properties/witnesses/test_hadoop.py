"""Hadoop in our sessions: files get the same permissions, without a process; settings stay as they are."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.witnesses.spark.platform.hadoop import forget_defaults, quicken


def file_system(spark: SparkSession) -> Any:
    jvm = spark._jvm
    return jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("file:///"), spark._jsc.hadoopConfiguration())


def entries(conf: Any) -> Iterator[tuple[str, str]]:
    rest = conf.iterator()
    while rest.hasNext():
        entry = rest.next()
        yield entry.getKey(), entry.getValue()


def test_files_have_the_permissions_that_hadoop_gives_them(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "written"))
    modes = {path.stat().st_mode & 0o7777 for path in (tmp_path / "written").iterdir()}
    assert modes == {0o644}  # its umask is 022, whatever the process's
    assert (tmp_path / "written").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("bits", [0o600, 0o751, 0o1777, 0])
def test_any_permission_can_be_set(spark: SparkSession, tmp_path: Path, bits: int) -> None:
    (tmp_path / "file").touch()
    path = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file"))
    file_system(spark).setPermission(path, spark._jvm.org.apache.hadoop.fs.permission.FsPermission(f"{bits:03o}"))
    assert (tmp_path / "file").stat().st_mode & 0o7777 == bits
    assert file_system(spark).getClass().getName() == "QuickLocalFileSystem"


def test_a_file_that_is_not_there_is_an_error_of_input_and_output(spark: SparkSession, tmp_path: Path) -> None:
    path = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path / "none"))
    with pytest.raises(Exception, match="NoSuchFileException"):
        file_system(spark).setPermission(path, spark._jvm.org.apache.hadoop.fs.permission.FsPermission("600"))


OF_CLUSTERS = ("yarn.", "mapreduce.", "map.")


def test_the_settings_stay_and_are_small_to_send(spark: SparkSession) -> None:
    """The defaults of YARN and of MapReduce alone are gone."""
    jvm, conf = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()
    assert conf.get("io.seqfile.compress.blocksize") == "1000000"  # of core-default.xml
    assert conf.getPropertySources("io.seqfile.compress.blocksize") is None
    plain = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(spark._jsc.sc().conf())
    assert plain.getPropertySources("io.seqfile.compress.blocksize") is not None
    sent = jvm.java.io.ByteArrayOutputStream()
    conf.write(jvm.java.io.DataOutputStream(sent))
    again = jvm.org.apache.hadoop.conf.Configuration(False)
    again.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(sent.toByteArray())))
    assert again.size() == conf.size() < plain.size() / 2
    settings = {name: text for name, text in entries(plain) if not name.startswith(OF_CLUSTERS)}
    assert {name: again.getRaw(name) for name in settings} == settings
    assert conf.get("yarn.acl.enable") is None
    # Spark has set this itself.
    assert conf.get("mapreduce.fileoutputcommitter.algorithm.version") == "1"
    assert plain.get("mapreduce.fileoutputcommitter.algorithm.version") == "1"


def test_a_setting_of_the_users_stays(spark: SparkSession) -> None:
    conf = spark._jvm.org.apache.hadoop.conf.Configuration(False)
    given = {"yarn.acl.enable": "true", "mapreduce.job.reduces": "7", "yarn.resourcemanager.am.max-attempts": "2"}
    for name, value in given.items():
        conf.set(name, value)
    forget_defaults(SimpleNamespace(_jvm=spark._jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: conf)))
    kept = dict(entries(conf))
    assert kept["mapreduce.job.reduces"] == "7"
    assert kept["yarn.acl.enable"] == "true"
    assert "yarn.resourcemanager.am.max-attempts" not in kept  # it is the default, given once more


def test_what_another_hadoop_refuses_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "streamproof")
    quicken(SimpleNamespace(_jvm=None))
    assert len(caplog.messages) == 2 + (os.name == "posix")
