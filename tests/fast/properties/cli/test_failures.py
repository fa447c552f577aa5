"""Failures that come up anywhere: the machine's name the thing and the remedy, ours a file to report."""

from __future__ import annotations

import errno
import subprocess
import sysconfig
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from streamproof.properties.cli.failures import explained
from streamproof.properties.system.installed import requirements
from streamproof.properties.witnesses.kafka import jvm as kafka_jvm
from streamproof.properties.witnesses.spark import failures, query
from streamproof.properties.witnesses.spark import session as spark_session
from streamproof.properties.witnesses.spark.platform import disk
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.spark_impl.runtime import checkpoints

Usage = namedtuple("Usage", ["free"])


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_what_is_streamproofs_own_is_said_as_it_is() -> None:
    error = BadInput("file: line 3: no number")
    assert explained(error) is error


def test_an_error_of_ours_is_said_in_one_line_and_its_traceback_is_in_a_file() -> None:
    try:
        raise KeyError("a\nb")
    except KeyError as error:
        said = explained(error).message
    assert "\n" not in said
    assert said.startswith("a fault of streamproof itself, and no verdict: KeyError: ")
    assert "(test_failures.py, line " in said
    path = Path(said.rpartition(" with ")[2])
    assert "Traceback" in path.read_text()


def test_an_error_of_ours_is_said_where_no_file_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "default_log_path", lambda: Path("/nowhere/log"))
    assert explained(KeyError("a")).message.endswith("; please report it")


@pytest.mark.parametrize(
    ("error", "parts"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), ("/x/y: no space left in ", "TMPDIR")),
        (OSError(errno.EFBIG, "File too large", "/x/y"), ("/x/y: ", "`ulimit -f unlimited`")),
        (OSError(errno.EMFILE, "Too many open files", "/x"), ("/x: Too many open files", "`ulimit -n 4096`")),
        (OSError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), ("['/tmp']: set TMPDIR to ",)),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), ("/x: Permission denied: check the path",)),
        (MemoryError(), ("out of memory (MemoryError): ", "memory")),
        (ImportError("failed to map segment from shared object"), ("out of memory (ImportError): ",)),
    ],
)
def test_a_failure_of_the_machine_names_the_thing_and_the_remedy(error: Exception, parts: tuple[str, ...]) -> None:
    said = explained(error).message
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    "broken", [ConnectionRefusedError(111, "Connection refused"), EOFError(), Py4JNetworkError("x")]
)
def test_a_dead_jvm_of_kafka_streams_is_named_with_its_log(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["false"]) as process:
        died = kafka_jvm.KafkaJvm(None, Path("/k.log"), process)
        monkeypatch.setattr(kafka_jvm, "_jvms", {"3.9.0": died})
        said = explained(broken).message
    assert said.startswith("the JVM of Kafka Streams died, ")
    assert said.endswith("; the log is /k.log")


def test_only_the_folder_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: Usage(0 if folder == shared else 1 << 40))
    said = disk.no_space("java.io.IOException: No space left on device\n\tat x", shared)
    assert said is not None
    assert said.startswith(f"no space left in {shared}: free some space, or name another folder with --shared")


def test_other_failures_are_no_full_disk() -> None:
    assert disk.no_space("java.io.IOException: Broken pipe") is None


def test_a_query_that_filled_the_disk_names_the_folder(tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamproofError, match=r"no space left in .+: free some"), failures.reported_failures():
        raise StreamingQueryException("Caused by: java.io.IOException: No space left on device")


@pytest.mark.parametrize("content", [None, "", "nonsense", "v1\n{}", "v1\n[1]", '{"logOffset": "x"}'])
def test_a_damaged_offset_names_the_checkpoint(tmp_path: Path, content: str | None) -> None:
    run: Any = SimpleNamespace(checkpoint=tmp_path)
    (tmp_path / "offsets").mkdir()
    if content is not None:
        (tmp_path / "offsets" / "0").write_text(content)
    with pytest.raises(StreamproofError, match=rf"^the checkpoint {tmp_path} is damaged: offsets/0: .+: .+|.+; .+"):
        query.OperatorQuery.place(run, 0)


@pytest.mark.parametrize("content", ["", "nonsense", "{}", "[]", "1"])
def test_a_damaged_identity_names_the_checkpoint(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(checkpoints, "text_of", lambda spark, path: content)
    with pytest.raises(BadInput, match="checkpoint: /c is damaged: its file metadata doesn't contain the query's id: "):
        checkpoints.query_of(None, "/c")  # type: ignore[arg-type]


def test_a_spark_home_of_this_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bin/spark-submit", f"jars/spark-core_2.13-{requirements.version('pyspark')}-vendor-1.jar"):
        path = tmp_path / name
        path.parent.mkdir()
        path.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert requirements.spark_home().status == "ok"


def test_of_a_failure_in_the_jvm_the_innermost_cause_is_said() -> None:
    text = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred
py4j.protocol.Py4JJavaError: An error occurred while calling o607.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:44)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\t... 1 more
Caused by: java.io.EOFException: the stream of the worker ended
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:398)
"""
    assert failures._cause(text) == "EOFException: the stream of the worker ended"


WORKER = """\
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 10, in main
    process()
  File "/home/me/jobs/visits.py", line 12, in half
    return 1 / x
           ~~^~~
  File "{stdlib}/contextlib.py", line 158, in __exit__
    self.gen.throw(typ, value, traceback)
ZeroDivisionError: division by zero
"""


def test_the_innermost_line_of_the_users_own_is_named() -> None:
    text = WORKER.format(stdlib=sysconfig.get_path("stdlib"))
    assert failures._user_line(text) == ", in half (/home/me/jobs/visits.py:12): `return 1 / x`"


def test_a_failure_outside_of_the_users_code_names_no_line() -> None:
    text = WORKER.format(stdlib=sysconfig.get_path("stdlib")).replace("/home/me/jobs/", "/x/site-packages/y/")
    assert failures._user_line(text) == ""
