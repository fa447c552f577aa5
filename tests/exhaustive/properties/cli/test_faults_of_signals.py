"""SIGINT, SIGTERM and SIGKILL at the moments of a check: how it ends, and what is left.

Moments are recognized by what happens, not by the clock. Those on Spark take half a minute each: a handful runs always,
all of them with STREAMPROOF_ALL_MOMENTS=1, which takes half an hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults import OLDER, Running, end_processes, listing, processes_left, processes_of
from streamproof.properties.system.work import sweep

ALL = bool(os.environ.get("STREAMPROOF_ALL_MOMENTS"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def says(text: str) -> Callable[[Running], object]:
    """When a line of standard error begins so."""
    return lambda running: any(line.startswith(text) for line in [*running.err])


def reports(text: str) -> Callable[[Running], object]:
    """When a line of the report has it."""
    return lambda running: any(text in line for line in [*running.out])


def answers_signals(running: Running) -> bool:
    """When the command answers signals: then it imports."""
    try:
        status = Path(f"/proc/{running.process.pid}/status").read_text()
    except OSError:
        return False
    caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def runs(text: str) -> Callable[[Running], object]:
    """When a process of the command has it in its command line."""

    def is_there(running: Running) -> bool:
        for process in processes_of(running.mark):
            try:
                if text.encode() in Path(f"/proc/{process}/cmdline").read_bytes():
                    return True
            except OSError:
                continue
        return False

    return is_there


def has(pattern: str) -> Callable[[Running], object]:
    """When there is a file in the temporary directory whose path ends so."""

    def is_there(running: Running) -> bool:
        # Path.rglob raises where Spark removes a folder while it is read; os.walk passes over it.
        walked = os.walk(running.temporary)
        return any(Path(folder, name).match(pattern) for folder, _, files in walked for name in files)

    return is_there


@dataclass(frozen=True)
class Moment:
    """A moment of a command, whether it is one on Spark, and the signals that are always sent in it."""

    name: str
    command: str
    comes: Callable[[Running], object]
    on_spark: bool = True
    always: Sequence[signal.Signals] = ()


SHOP = """\
from streamproof import Input

CLICKS = Input("user string, at timestamp", key="user", name="clicks")


def visits(clicks):
    return clicks.select("user", "at")
"""
JOB = "check shop:visits --input shop:CLICKS --expect batch"
CHECK = "check table_table_join --histories 60"
ON_SPARK = "check table_table_join --histories 20 --only spark"
MUTANT = "check table_table_join --histories 20 --mutant sides_swapped"
STARTS = runs("org.apache.spark.deploy.SparkSubmit")
MOMENTS = [
    Moment("importing", CHECK, answers_signals, False, SIGNALS),
    Moment("the meaning", "check table_table_join --histories 600", says("fold is meaning"), False, SIGNALS),
    Moment("DuckDB", "check table_table_join --histories 600", says("duckdb"), False, SIGNALS),
    Moment("Kafka Streams", CHECK, says("kafka"), False, SIGNALS),
    Moment("the JVM starts", ON_SPARK, STARTS, True, (signal.SIGINT, signal.SIGKILL)),
    Moment("the session starts", ON_SPARK, has("connection"), True, (signal.SIGINT,)),
    Moment("a query runs", ON_SPARK, has("offsets/1"), True, (signal.SIGTERM, signal.SIGKILL)),
    Moment("a job is imported", JOB, answers_signals, False, (signal.SIGINT,)),
    Moment("the JVM starts for a job", JOB, STARTS, True, (signal.SIGTERM,)),
    Moment("a job's query runs", JOB, has("offsets/1"), True, (signal.SIGINT,)),
    Moment("restart", ON_SPARK, says("restart: ")),
    Moment("alone", ON_SPARK, says("packing: ")),
    Moment("partitions", ON_SPARK, says("partitions: ")),
    Moment("shrinking", MUTANT, says("asking"), True, (signal.SIGINT,)),
    Moment(
        "leaving", "run .streamproof/counterexamples/range_aggregate/older/history.jsonl --on spark", reports('"value"')
    ),
]
CASES = [
    pytest.param(moment, number, id=f"{number.name} - {moment.name}")
    for moment in MOMENTS
    for number in SIGNALS
    if ALL or number in moment.always
]


@pytest.mark.parametrize(("moment", "number"), CASES)
@pytest.mark.in_ci(
    "SIGINT - a job's query runs",
    "SIGINT - the meaning",
    "SIGKILL - a query runs",
    "SIGTERM - the JVM starts for a job",
    "SIGTERM - DuckDB",
)
def test_a_signal_leaves_the_counterexamples_and_nothing_else(
    moment: Moment, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(moment.command.split(), tmp_path, given={"shop.py": SHOP})
    try:
        running.wait_until(moment.comes)
        running.process.send_signal(number)
        code = running.ended()
        printed = running.printed()
        killed, leaving = number is signal.SIGKILL, moment.name == "leaving"
        assert code == (-number if killed else 3) or (leaving and code == 0), printed
        assert "Traceback" not in printed
        if not killed and code == 3:
            assert running.err[-1].startswith("interrupted"), printed
            says_it = re.search("on Spark|the reference", "".join(running.out))
            assert moment.name == "importing" or moment.command == JOB or leaving or says_it, printed
        assert not processes_left(running.mark), printed
        saved = whole_counterexamples(running)
        assert saved >= written(running), printed
        if moment.name == "shrinking":
            assert len(saved) == 2, printed
            assert killed or len(written(running)) == 1, printed
        assert {path.name: path.read_text() for path in running.older.iterdir()} == OLDER
        monkeypatch.setattr(tempfile, "tempdir", str(running.temporary))
        if killed:
            sweep()
        assert [name for name in listing(running.temporary) if not name.endswith(".log")] in (
            [],
            [f"streamproof-{os.getuid()}/"],
        )
    finally:
        end_processes(running.mark)


def written(running: Running) -> set[Path]:
    """The folders that the report names: lines are wrapped nowhere."""
    return {running.work / line.removeprefix("Written to ").strip() for line in running.out if "Written to " in line}


def whole_counterexamples(running: Running) -> set[Path]:
    """The folders of counterexamples that are there, of which each is whole."""
    folders = [*(running.work / ".streamproof" / "counterexamples").glob("*/[!.]*")]
    for folder in folders:
        if folder != running.older:
            names: Mapping[str, int] = {path.suffix: path.stat().st_size for path in folder.iterdir()}
            assert all(names.get(suffix) for suffix in (".jsonl", ".txt")), f"{folder}: {names}"
    return {*folders}


def test_a_second_ctrl_c_while_leaving_changes_nothing(tmp_path: Path) -> None:
    running = Running(CHECK.split(), tmp_path)
    try:
        running.wait_until(says("kafka"))
        running.process.send_signal(signal.SIGINT)
        while running.process.poll() is None:
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        printed = (running.ended(), running.printed())[1]
        assert running.process.returncode == 3, printed
        assert "Traceback" not in printed
        assert not processes_left(running.mark), printed
    finally:
        end_processes(running.mark)


def test_a_terminal_that_is_closed_ends_a_check_as_ctrl_c_does(tmp_path: Path) -> None:
    running = Running(CHECK.split(), tmp_path)
    try:
        running.wait_until(says("kafka"))
        running.process.send_signal(signal.SIGHUP)
        assert running.ended() == 3, running.printed()
        assert running.err[-1].startswith("interrupted by SIGHUP"), running.printed()
        assert not processes_left(running.mark), running.printed()
    finally:
        end_processes(running.mark)


def mount(folder: Path) -> None:
    """Return a folder a small disk of its own, where this user may."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400m", "none", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no disk of its own can be mounted: {mounted.stderr.strip()}")


def fill(folder: Path) -> None:
    """Leave no room on the disk of a folder."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb") as file:  # it may be full already
        while True:
            file.write(bytes(1 << 16))
            file.flush()


# A check of few histories may end before the disk is full.
@pytest.mark.parametrize("command", [ON_SPARK, f"{JOB} --histories 2000"], ids=["an operator", "a job"])
def test_a_disk_that_fills_midway_is_named_and_nothing_is_left_on_it(command: str, tmp_path: Path) -> None:
    running = None
    try:
        running = Running(command.split(), tmp_path, mount, given={"shop.py": SHOP})
        running.wait_until(has("offsets/1"))
        fill(running.temporary)
        printed = (running.ended(), running.printed())[1]
        assert running.process.returncode == 3, printed
        assert "Traceback" not in printed
        assert re.search(rf"^error: .*no space left in {re.escape(str(running.temporary))}", printed, re.MULTILINE), (
            printed
        )
        assert not processes_left(running.mark), printed
        assert {path.name: path.read_text() for path in running.older.iterdir()} == OLDER
        left = [name for name in listing(running.temporary) if not name.endswith(".log")]
        assert left == ["filler", f"streamproof-{os.getuid()}/"], printed
    finally:
        if running is not None:
            end_processes(running.mark)
        subprocess.run(["umount", "--lazy", tmp_path / "tmp"], capture_output=True)
