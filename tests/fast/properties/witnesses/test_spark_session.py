from __future__ import annotations

import os
import stat
import tempfile
from types import SimpleNamespace

import pytest
from streamproof.properties.witnesses.spark import session as spark_session
from streamproof.properties.witnesses.spark.platform import connect
from streamproof.reference.core.errors import BadInput, MissingTool


@pytest.fixture
def no_session(monkeypatch):
    """A process in which no Spark session runs and none can be started."""
    monkeypatch.setattr(spark_session, "_running_session", lambda: None)

    def refuse(*arguments: object) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(spark_session, "_started", refuse)


@pytest.mark.parametrize(
    ("given", "environment", "said"),
    [
        ({}, "", False),
        ({"partitions": 1}, "", True),
        ({}, "3", True),
        ({"master": "local[2]"}, "", False),
        ({"master": "local-cluster[2,1,1024]"}, "", True),  # one of its workers would have all to do
    ],
)
def test_partitions_are_said_by_the_user_or_by_a_cluster(monkeypatch, no_session, tmp_path, given, environment, said):
    monkeypatch.setattr(spark_session, "_partitions_said", not said)
    monkeypatch.setattr(spark_session, "_log", None)  # a start changes it, and the environment
    monkeypatch.setattr(os, "environ", {**os.environ, "STREAMPROOF_PARTITIONS": environment})
    with pytest.raises(AssertionError, match="a session was started"):
        spark_session.spark_session(**given, shared=tmp_path)
    assert spark_session._partitions_said is said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cores": 0}, "cores=0"),
        ({"cores": 2, "master": "local[4]"}, "give only one of the two"),
        ({"partitions": 0}, "partitions=0"),
        ({"memory": "3 gigabytes"}, "3 gigabytes"),
    ],
    ids=["no cores", "cores beside a master", "no partitions", "a memory that Spark can't read"],
)
def test_what_no_session_can_have_is_refused(no_session, given, said):
    with pytest.raises(BadInput, match=said):
        spark_session.spark_session(**given)


@pytest.mark.parametrize(
    ("variable", "value", "any_provider", "said"),
    [
        (
            *("SPARK_REMOTE", "sc://elsewhere", True),
            r"SPARK_REMOTE is sc://elsewhere, .*: set SPARK_REMOTE=local\[2\]",
        ),
        # As PySpark does where remote(…) makes a session.
        (*("SPARK_CONNECT_MODE_ENABLED", "1", True), r"a session of Spark Connect runs .* leave out remote\(…\)"),
        (
            *("SPARK_REMOTE", "local[2]", False),
            "for jobs under test, not for streamproof's own operators: `unset SPARK_REMOTE`",
        ),
    ],
    ids=["a server elsewhere", "a session of a server elsewhere", "Spark Connect for operators"],
)
def test_a_remote_session_that_cannot_be_used_is_refused(monkeypatch, no_session, variable, value, any_provider, said):
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadInput, match=said):
        spark_session.spark_session(any_provider=any_provider)


def test_a_package_that_the_client_lacks_is_named_with_the_extra(monkeypatch, no_session):
    from pyspark.errors import PySparkImportError

    def lacking(name):
        what = {"package_name": "grpcio", "minimum_version": "1.48.1"}
        raise PySparkImportError(errorClass="PACKAGE_NOT_INSTALLED", messageParameters=what)

    monkeypatch.setenv("SPARK_REMOTE", "local")
    monkeypatch.setattr(connect.importlib, "import_module", lacking)
    with pytest.raises(MissingTool, match=r"grpcio >= 1\.48\.1 must be installed.*install 'streamproof\[connect\]'`"):
        spark_session.spark_session(any_provider=True)


def test_a_running_session_with_another_state_store_is_refused_by_the_setting(monkeypatch):
    other = SimpleNamespace(conf={"spark.sql.streaming.stateStore.providerClass": "HDFSBackedStateStoreProvider"})
    monkeypatch.setattr(spark_session, "_running_session", lambda: other)
    with pytest.raises(BadInput, match=r'spark\.conf\.set\("spark\.sql\.streaming\.stateStore\.providerClass"'):
        spark_session.spark_session()


def test_a_running_session_on_rocksdb_is_used_as_it_is(monkeypatch):
    other = SimpleNamespace(conf={"spark.sql.streaming.stateStore.providerClass": spark_session.ROCKSDB})
    monkeypatch.setattr(spark_session, "_running_session", lambda: other)
    assert spark_session.spark_session() is other


@pytest.mark.parametrize(
    ("is_own", "given"), [(True, {}), (False, {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "7"})]
)
def test_another_pyspark_is_given_the_settings_of_queries_that_the_user_s_session_has(monkeypatch, is_own, given):
    started = {**given, "spark.sql.ansi.enabled": "false", "spark.app.name": "mine", "spark.sql.extensions": "Ours"}
    context = SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: [*started.items()]))
    monkeypatch.setattr(spark_session, "_running_session", lambda: SimpleNamespace(sparkContext=context))
    monkeypatch.setattr(spark_session, "_is_own", lambda session: is_own)
    assert spark_session.settings_of_users_session() == given


def test_a_log_that_cannot_be_written_is_reported_by_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=str(tmp_path / "file" / "spark.log")):
        spark_session._opened(tmp_path / "file" / "spark.log")


def test_the_default_log_of_a_process_lies_in_a_directory_that_only_its_user_reads(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log = spark_session.default_log_path()
    assert (stat.S_IMODE(log.parent.stat().st_mode), log.name) == (0o700, f"spark-{os.getpid()}.log")


def test_the_default_log_follows_no_link_that_someone_else_left(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"streamproof-{os.getuid()}").symlink_to(tmp_path / "theirs")
    assert spark_session.default_log_path().parent.resolve() != tmp_path / "theirs"
