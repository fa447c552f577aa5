"""A cluster of two workers on this machine, and what is reported of clusters that can't be used."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from streamproof.properties.cli.commands import doctor
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registered
from streamproof.properties.witnesses.spark import session as spark_session
from streamproof.properties.witnesses.spark.platform import cluster
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.reference.core.play import play

PROFILES = {name: registration.profiles for name, registration in registered().items()}


OPERATORS = ("session_windows", "foreign_key_join")


def streamproof(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamproof.properties.cli.entry", *map(str, words)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, encoding="utf-8", timeout=600
    )


def by_key(lines: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """What is emitted of each key in each batch, in order."""
    emitted = defaultdict(list)
    for line in lines:
        emitted[line["history"], line["batch"], line["key"], "dropped" in line].append(line)
    return emitted


@pytest.fixture
def nobody() -> Iterator[str]:
    """A port of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def python_without_streamproof(tmp_path: Path) -> Path:
    """A Python as a cluster has it: the packages that Spark needs, and no streamproof."""
    python = tmp_path / "python"
    packages = Path(pytest.__file__).parent.parent
    # What lies beside the packages to extend the path, as an editable streamproof does, isn't read in this way.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{sys._base_executable}" "$@"\n')
    python.chmod(0o755)
    elsewhere = subprocess.run([python, "-c", "import streamproof"], cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'streamproof'" in elsewhere.stderr
    return python


@pytest.mark.weekly("a cluster of its own: what is sent to it, and how its master is named, is tested without one too")
def test_two_workers_that_lack_streamproof_emit_what_the_reference_emits(
    tmp_path: Path, python_without_streamproof: Path
) -> None:
    expected: list[dict[str, Any]] = []
    for operator in OPERATORS:
        profile = HistorySettings(operator, next(iter(PROFILES[operator].values())), SCHEDULE)
        for history in draw_histories(profile, 20, seed=1):
            path = tmp_path / f"{operator}-{history.name}.jsonl"
            path.write_text(history.to_text(), encoding="utf-8")
            expected += Outcome(path.stem, Grain.BATCH, play(history).entries).to_lines()
    shared = tmp_path / "shared"
    shared.mkdir()
    words = ("run", tmp_path, "--on", "spark", "--master", "local-cluster[2,1,1024]", "--shared", shared)
    said = streamproof(*words, PYSPARK_PYTHON=str(python_without_streamproof))
    assert said.returncode == 0, said.stderr
    assert by_key(map(json.loads, said.stdout.splitlines())) == by_key(expected)
    (line,) = [line for line in said.stderr.splitlines() if line.startswith("tasks on local-cluster[2,1,1024]: ")]
    counts = [int(count.replace(",", "")) for count in re.findall(r"executor \d+ \([^)]+\) ran ([\d,]+)", line)]
    assert len(counts) == 2
    # The look at the workers takes a task of each; the queries take many more.
    assert min(counts) > 5


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[2]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "k8s://https://10.0.0.1:6443"),
        *("spark://host:7077", "spark://one:7077,two:7077", "spark://10.0.0.1:7077", "spark://[::1]:7077"),
    ],
)
def test_the_master_urls_that_spark_knows_are_taken(master: str) -> None:
    assert cluster.checked_master(master) == master


@pytest.mark.parametrize(
    "master",
    [
        *("", "here", "local[", "local[0]", "local-cluster[2,1]", "local-cluster[0,1,1024]", "k8s://", "mesos://h:1"),
        *("spark://", "spark:host:7077", "spark://host:port", "spark://user@host:7077", "http://host:8080"),
        *("spark://host:7077 ", "spark://host:7077/", "spark://one:7077,two"),
    ],
)
def test_other_master_urls_are_refused_with_the_forms_that_there_are(master: str) -> None:
    with pytest.raises(
        BadInput, match=r"isn't a master URL that Spark accepts.*: use spark://HOST:PORT, local-cluster\["
    ):
        cluster.checked_master(master)


def test_of_a_master_url_without_a_port_the_usual_one_is_named() -> None:
    with pytest.raises(BadInput, match=r"a standalone master listens on 7077, as in spark://host:7077\)"):
        cluster.checked_master("spark://host")


def test_yarn_needs_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(BadInput, match="set HADOOP_CONF_DIR to its folder"):
        cluster.checked_master("yarn")
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    assert cluster.checked_master("yarn") == "yarn"


def test_threads_of_this_process_are_no_cluster() -> None:
    masters = ("local", "local[*]", "local-cluster[2,1,1024]", "spark://host:7077", "yarn")
    assert [cluster.is_cluster(master) for master in masters] == [False, False, True, True, True]


def test_the_first_master_that_answers_says_under_which_address_this_machine_is_found(nobody: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as answering:
        master = f"spark://{nobody},127.0.0.1:{answering.getsockname()[1]}"
        assert cluster.address_towards(master) == "127.0.0.1"
    assert cluster.address_towards("local-cluster[2,1,1024]") is None


def test_a_master_that_does_not_answer_ends_the_command_at_once_by_its_url(nobody: str) -> None:
    said = streamproof("check", "session_windows", "--master", f"spark://{nobody}")
    assert (said.returncode, said.stdout) == (3, "")
    assert said.stderr.splitlines() == [
        f"starting Spark on spark://{nobody}",
        f"error: the Spark master spark://{nobody} can't be reached ({nobody}: Connection refused): start it, or name "
        "another master.",
    ]


def test_a_host_that_has_no_address_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(StreamproofError, match=r"spark://nowhere:1 can't be reached \(nowhere:1: Name or service not"):
        cluster.address_towards("spark://nowhere:1")


def test_the_environment_names_the_master_where_no_option_does(nobody: str) -> None:
    said = streamproof("check", "session_windows", STREAMPROOF_MASTER=f"spark://{nobody}")
    assert said.returncode == 3
    assert f"the Spark master spark://{nobody} can't be reached" in said.stderr


def test_where_nothing_runs_on_spark_no_master_is_connected_to(tmp_path: Path, nobody: str) -> None:
    history = tmp_path / "h1.jsonl"
    history.write_text('{"operator": "session_windows", "options": {"gap_ms": 10}}\n')
    said = streamproof("run", history, "--on", "reference", "--master", f"spark://{nobody}")
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_the_pytest_option_names_the_master(tmp_path: Path, nobody: str) -> None:
    (tmp_path / "test_job.py").write_text("def test_it(check_job):\n    pass\n")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--streamproof-master=spark://{nobody}"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert f"StreamproofError: the Spark master spark://{nobody} can't be reached" in done.stdout


def test_a_shared_folder_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"gone isn't a folder: name a folder that this machine and all workers share"):
        cluster.shared_folder(tmp_path / "gone")
    monkeypatch.setenv("STREAMPROOF_SHARED", str(tmp_path))
    assert cluster.shared_folder(None) == tmp_path
    monkeypatch.delenv("STREAMPROOF_SHARED")
    assert cluster.shared_folder(None) is None


def test_python_imports_the_code_that_is_sent(tmp_path: Path, python_without_streamproof: Path) -> None:
    packed = tmp_path / "code.zip"
    cluster.pack_code(packed)
    with zipfile.ZipFile(packed) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {"", ".py"}
    modules = "streamproof.spark_impl.runtime.keyed as keyed, streamproof.properties.registration.mutants"
    code = f"import {modules}; print(keyed.__file__)"
    done = subprocess.run(
        [python_without_streamproof, "-c", code],
        env={**os.environ, "PYTHONPATH": str(packed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == f"{packed}/streamproof/spark_impl/runtime/keyed.py", done.stderr


def test_a_worker_that_sees_the_shared_folder_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "driver").write_text("here")
    assert cluster._Look(str(tmp_path)).problem(3) == ""
    assert (tmp_path / "worker-3").exists()


def test_a_worker_that_does_not_see_the_shared_folder_says_so(tmp_path: Path) -> None:
    said = cluster._Look(str(tmp_path / "shared" / "streamproof-x")).problem(0)
    assert said.startswith(
        f"it can't use the folder {tmp_path}/shared (No such file or directory): name a writable folder that"
    )
    assert said.endswith("with --shared.")


def test_a_worker_without_a_package_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = cluster._Look(str(tmp_path)).problem(0)
    assert f"its Python {sys.executable} has no pyarrow (" in said
    assert said.endswith("install it there, or set PYSPARK_PYTHON to a Python with it.")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            "An error occurred.\n: org.apache.spark.SparkException: Job 0 cancelled because SparkContext was shut down",
            "has ended this application before a worker ran a task: see its log.",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
            "can't run Python tasks: the workers have no /opt/python; set PYSPARK_PYTHON to the path of their Python.",
        ),
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has ...",
            "can't run Python tasks: on the workers /here/python isn't Python 3.",
        ),
        (
            "An error occurred.\n: org.apache.spark.SparkException: Job aborted.\n"
            "ModuleNotFoundError: No module named 'pandas'\n\n\tat org.apache",
            "can't run Python tasks (/here/python): ModuleNotFoundError: No module named 'pandas'",
        ),
    ],
)
def test_workers_that_run_no_python_are_reported_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, failure: str, said: str
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/here/python")
    message = cluster._why_no_answer("spark://host:7077", RuntimeError(failure))
    assert message.removeprefix("the workers of ").startswith(f"spark://host:7077 {said}")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis stopped",
            "the server there isn't a master of Spark 4",
        ),
        (
            "An error occurred.\n: org.apache.spark.SparkException: Asked to launch cluster with 256 MiB/worker\n\tat",
            "Asked to launch cluster with 256 MiB/worker; the log is spark.log",
        ),
    ],
)
def test_a_master_that_takes_no_application_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, failure: str, said: str
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with (
        pytest.raises(StreamproofError) as raised,
        spark_session._reported_refusal("spark://host:7077", Path("spark.log")),
    ):
        raise Py4JError(failure)
    assert str(raised.value).startswith(f"Spark didn't start on spark://host:7077: {said}")
    assert "\n" not in str(raised.value)


def test_the_python_of_the_workers_must_be_on_this_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/nowhere/python")
    with pytest.raises(
        BadInput, match=rf"PYSPARK_PYTHON=/opt/nowhere/python: .*link it to this Python, {sys.executable}"
    ):
        cluster.worker_python()
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert cluster.worker_python() == sys.executable


def test_a_session_that_runs_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        master = "local[2]"

    class Session:
        sparkContext = Context()

    monkeypatch.setattr(spark_session, "_running_session", Session)
    with pytest.raises(BadInput, match=r"runs on local\[2\], not on spark://host:7077: stop it"):
        spark_session.spark_session(master="spark://host:7077")


def test_the_doctor_says_whether_the_master_answers(monkeypatch: pytest.MonkeyPatch, nobody: str) -> None:
    def said() -> tuple[str, str]:
        (found,) = [diagnosis for diagnosis in doctor.diagnose() if diagnosis.name == "Spark cluster"]
        return found.status, found.found

    monkeypatch.setenv("STREAMPROOF_MASTER", f"spark://{nobody}")
    assert said()[0] == "wrong"
    assert nobody in said()[1]
    with socket.create_server(("127.0.0.1", 0)) as answering:
        monkeypatch.setenv("STREAMPROOF_MASTER", f"spark://127.0.0.1:{answering.getsockname()[1]}")
        assert said()[0] == "ok"
    monkeypatch.delenv("STREAMPROOF_MASTER")
    assert said() == ("ok", "none is named: Spark runs in streamproof's own process")
