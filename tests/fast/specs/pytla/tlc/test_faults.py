"""A TLC that ends as it shouldn't, played by scripts: each end is reported as what it is, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamproof.specs.pytla import (
    EndedBySignal,
    FolderUnusable,
    LimitReached,
    Model,
    OutOfMemory,
    TlcCrashed,
    Tools,
    check,
    simulate,
    state_graph,
)
from streamproof.specs.pytla.tlc import process

MODULE = "---- MODULE M ----\nVARIABLE x\nInit == x = 0\nNext == x' = x\n====\n"
COUNTS = "2 states generated, 2 distinct states found, 0 states left on queue."
PASSED = f"""cat <<'END'
@!@!@STARTMSG 2193:0 @!@!@
Model checking completed. No error has been found.
@!@!@ENDMSG 2193 @!@!@
@!@!@STARTMSG 2199:0 @!@!@
{COUNTS}
@!@!@ENDMSG 2199 @!@!@
END
"""


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder that private folders are made in; whatever a test does, it is empty at the end."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "M.tla").write_text(MODULE)
    (tmp_path / "M.cfg").write_text("INIT Init\nNEXT Next\n")
    return Model(tmp_path / "M.tla", tmp_path / "M.cfg")


def playing(folder: Path, script: str) -> Tools:
    """A Java that runs a script instead."""
    java, jar = folder / "java", folder / "some.jar"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("nothing", "")
    return Tools(java, jar)


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        ("kill -KILL $$", OutOfMemory, r"M\.cfg: Java was killed from outside \(SIGKILL\)"),
        ("kill -SEGV $$", EndedBySignal, r"M\.cfg: Java crashed \(SIGSEGV\), which no model should make it do"),
        ("kill -TERM $$", EndedBySignal, r"M\.cfg: Another process or a person ended Java \(SIGTERM\): "),
        ("exit 143", EndedBySignal, r"SIGTERM"),
        ("echo 'java.io.IOException: No space left on device'; exit 255", FolderUnusable, r"no room is left in .*runs"),
        ("echo 'java.net.SocketException: Too many open files' >&2; exit 1", LimitReached, "`ulimit -n` shows"),
        ("echo 'OutOfMemoryError: unable to create native thread' >&2; exit 3", LimitReached, "`ulimit -u` shows"),
        ("echo '# There is insufficient memory for the Java Runtime' ; exit 1", OutOfMemory, "`ulimit -v` shows"),
        ("echo 'Could not reserve enough space for 9KB object heap'; exit 1", OutOfMemory, "JAVA_TOOL_OPTIONS"),
        ("echo 'Invalid maximum heap size: -Xmx9x'; exit 1", OutOfMemory, "of the requested size: Invalid max"),
    ],
)
def test_the_end_of_java_is_reported_as_what_it_is(
    tmp_path: Path, model: Model, script: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        check(model, playing(tmp_path, script))


def test_a_state_that_nothing_reads_is_reported_by_its_number(tmp_path: Path, model: Model) -> None:
    violated = "@!@!@STARTMSG 2110:1 @!@!@\nInvariant Low is violated.\n@!@!@ENDMSG 2110 @!@!@"
    state = "@!@!@STARTMSG 2217:4 @!@!@\n1: <Initial predicate>\nx = <lazy value>\n@!@!@ENDMSG 2217 @!@!@"
    with pytest.raises(TlcCrashed, match=r"state 1 of the behaviour that violates .* can't be read \(line 2, column 5"):
        check(model, playing(tmp_path, f"cat <<'END'\n{violated}\n{state}\nEND\nexit 12"))


NODES = 'strict digraph DiskGraph {\n1 [label="/\\\\ x = 0",style = filled]\n2 [label="/\\\\ x = 1"]\n'


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("", "TLC's dump of the state graph is truncated: is the disk full"),
        (NODES + '1 -> 2 [label="Ne', "is truncated"),
        (NODES.replace("x = 1", "x = <lazy value>") + "}", "a state of the graph, as TLC printed it, can't be read"),
        (NODES.splitlines()[0] + "\n1 -> 2\n}", "a step to a state that it didn't dump"),
        (None, "TLC dumped no state graph"),
    ],
)
def test_a_state_graph_that_is_not_whole_is_refused(tmp_path: Path, model: Model, graph: str | None, said: str) -> None:
    dumped = "" if graph is None else f"cat > graph.dot <<'END'\n{graph}\nEND\n"
    with pytest.raises(TlcCrashed, match=said):
        state_graph(model, playing(tmp_path, dumped + PASSED))


@pytest.mark.parametrize(
    ("walk", "said"),
    [
        ("STATE_1 == \n/\\\\ x = 0\n\nSTATE_2 ==\n/\\\\ x =", "TLC's behaviour in walk_0_0 is truncated"),
        ("STATE_1 == \nx = <lazy value>\n\n=====", r"a state of the behaviour walk_0_0, as TLC printed it, can't be"),
    ],
)
def test_a_behaviour_that_is_not_whole_is_refused(tmp_path: Path, model: Model, walk: str, said: str) -> None:
    with pytest.raises(TlcCrashed, match=said):
        simulate(model, playing(tmp_path, f"cat > walk_0_0 <<'END'\n{walk}\nEND\n{PASSED}"), behaviours=1)


def test_a_line_without_an_end_is_refused(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LONGEST_LINE", 1 << 20)
    with pytest.raises(TlcCrashed, match="TLC prints a line of more than 1 MiB"):
        check(model, playing(tmp_path, "exec cat /dev/zero"))


def test_of_endless_errors_the_end_is_reported(tmp_path: Path, model: Model) -> None:
    with pytest.raises(TlcCrashed, match="the last of it") as caught:
        check(model, playing(tmp_path, "head -c 3000000 /dev/zero >&2; echo; echo the last of it >&2; exit 9"))
    assert len(str(caught.value)) < 400_000


def test_no_folder_for_a_run_is_reported(tmp_path: Path, model: Model, runs: Path) -> None:
    runs.rmdir()
    with pytest.raises(FolderUnusable, match=r"can't be written to .*runs \(No such file or directory\): let TMPDIR"):
        check(model, playing(tmp_path, "exit 1"))


def test_no_more_processes_is_reported(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object, **options: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", none)
    with pytest.raises(LimitReached, match="no process can be started"):
        check(model, playing(tmp_path, "exit 1"))


def test_what_a_process_that_is_gone_has_left_is_removed_and_nothing_else(
    tmp_path: Path, model: Model, runs: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    left = runs / f"pytla-{gone.pid}-left"
    (left / "states").mkdir(parents=True)
    (left / "owner").touch()
    others = [runs / name for name in (f"pytla-{os.getpid()}-runs", "pytla-notes-of-mine", f"pytla-{gone.pid}-file")]
    for folder in others[:2]:
        folder.mkdir()
    others[2].touch()
    with pytest.raises(TlcCrashed):
        check(model, playing(tmp_path, "exit 9"))
    assert sorted(runs.iterdir()) == sorted(others)
    for folder in others[:2]:
        folder.rmdir()
    others[2].unlink()
