"""What the commands make of a machine and of files that are not as they should be: one message, the right exit."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from faults import Fault, assert_ends_as_it_must

ON = ("--on", "reference", "--on", "duckdb")
COMPARE = ("compare", "session_windows", "--key", "k", "--timestamp", "t", *ON, "--data")
HEADER = '{"operator": "session_windows", "options": {"gap_ms": 10}}\n'
HISTORY = HEADER + '{"input": "events", "key": "a", "value": 1, "timestamp": 100}\n'
HOSTILE = "a\x1b[31m\u202e"
RECORDED = {
    "name": "h\x1b[2J\n",
    "on": "reference",
    "grain": "arrival",
    "history": HEADER + json.dumps({"input": "events", "key": HOSTILE, "value": 1, "timestamp": 100}) + "\n",
    "answer": [{"arrival": 0, "key": HOSTILE, "window": [100, 100], "value": 2, "timestamp": 100}],
}
CHECK = ("check", "table_table_join", "--only", "reference", "--histories", "60")

FULL = r"error: standard output can't be written \(No space left on device\): .+"
TO_FULL = 'exec "$@" >/dev/full'


def on_spark(name: str, says: str, given: Mapping[str, str] | None = None, **more: Any) -> Fault:
    """A case of a history that is to be run on Spark."""
    files = {"h.jsonl": HISTORY, **(given or {})}
    return Fault(name, ("run", "h.jsonl", "--on", "spark"), says, given=files, after_steps=True, **more)


FAULTS = [
    # Standard output and error.
    Fault(
        "standard output is closed",
        ("run", "h.jsonl"),
        "error: standard output is closed, but results are written there: .+",
        given={"h.jsonl": HISTORY},
        shell='exec "$@" >&-',
    ),
    Fault(
        "standard output is full",
        ("run", "h.jsonl"),
        r"error: standard output can't be written \(No space left on device\): redirect it .+",
        given={"h.jsonl": HISTORY},
        shell=TO_FULL,
    ),
    Fault("a verdict finds standard output full", CHECK, FULL, shell=TO_FULL, after_steps=True),
    Fault("standard error is closed", ("run", "h.jsonl"), "", 0, {"h.jsonl": HISTORY}, shell='exec "$@" 2>&-'),
    Fault("standard error is full", ("run", "nowhere.jsonl"), "", shell='exec "$@" 2>/dev/full'),
    Fault("a check has nowhere to say its steps", CHECK, "", 0, shell='exec "$@" 2>/dev/full', reports="conforms"),
    Fault("all three are closed", CHECK, "", shell='exec "$@" <&- >&- 2>&-'),
    # Names.
    Fault(
        "a file's name is not UTF-8",
        ("run", "h\udcff.jsonl"),
        "",
        0,
        {"h\udcff.jsonl": HISTORY},
        reports=r'"history": "h\\udcff"',
    ),
    Fault(
        "a name steers the terminal",
        ("run", "\x1b[31m\x07\r\n\u202eh.jsonl"),
        r"error: \\x1b\[31m\\x07\\r\\n\\u202eh\.jsonl: can't be read .+",
    ),
    Fault(
        "a recording's name and key steer the terminal",
        ("regress", "check", "r.jsonl"),
        "",
        1,
        {"r.jsonl": json.dumps(RECORDED) + "\n"},
        reports=r"h\\x1b\[2J\\n(.|\n)+≠ arrival 0 +a\\x1b\[31m\\u202e@\[100,100\]=1 +a\\x1b\[31m",
    ),
    # Folders.
    Fault(
        "the working directory is gone",
        CHECK,
        "error: the working directory no longer exists .+: change to an existing directory",
        shell='mkdir ../gone && cd ../gone && rmdir ../gone && exec "$@"',
    ),
    # Files that are none, or never end, or have another format.
    Fault(
        "a history is a pipe that never ends",
        ("run", "/dev/stdin"),
        "error: /dev/stdin: larger than 64 MB, the most that can be read at once: split it",
        shell='ulimit -v 1000000; yes | "$@"',
    ),
    Fault(
        "data is a device",
        (*COMPARE, "zero.csv"),
        "error: zero.csv: a pipe, a device or a socket, .+: write it to a file",
        prepare=lambda folder: (folder / "zero.csv").symlink_to("/dev/zero"),
    ),
    Fault(
        "data is one endless line",
        (*COMPARE, "data.jsonl"),
        "error: data.jsonl: can't be read as json: .+",
        given={"data.jsonl": ""},
        prepare=lambda folder: os.truncate(folder / "data.jsonl", 10 << 30),
        shell='ulimit -v 4000000; exec "$@"',
    ),
    Fault(
        "data is gzipped under another name",
        (*COMPARE, "data.csv"),
        "error: data.csv: a gzip file, and by its name .csv: rename it with the extension .csv.gz",
        given={"data.csv": gzip.compress(b"k,t\na,1\n")},
    ),
    Fault(
        "gzipped data is cut off",
        (*COMPARE, "data.csv.gz"),
        "error: data.csv.gz: can't be read as csv: .+ end of GZIP stream.+",
        given={"data.csv.gz": gzip.compress(b"k,t\na,1\n")[:20]},
    ),
    # Java, its limits, and Spark's own folder.
    on_spark(
        "SPARK_HOME holds another Spark",
        r"error: SPARK_HOME=old, which contains Spark 3\.5\.1, but PySpark is \S+: `unset SPARK_HOME`",
        given={"old/bin/spark-submit": "", "old/jars/spark-core_2.13-3.5.1.jar": ""},
        environment={"SPARK_HOME": "old"},
    ),
    on_spark(
        "too little address space for Java",
        r"error: .*[Jj]ava.+ and this process may have only 1\.0 GB of address space .*`ulimit -v unlimited`.*",
        shell='ulimit -v 1000000; exec "$@"',
    ),
    on_spark(
        "no temporary file can be written",
        r"error: .+(`ulimit -f`|`ulimit -f unlimited`).*",
        shell='ulimit -f 0; exec "$@"',
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.in_ci(
    "SPARK_HOME holds another Spark",
    "a name steers the terminal",
    "a file's name is not UTF-8",
    "a history is a pipe that never ends",
    "a verdict finds standard output full",
    "all three are closed",
    "data is gzipped under another name",
    "gzipped data is cut off",
    "no temporary file can be written",
    "standard error is closed",
    "standard output is full",
    "the working directory is gone",
    "too little address space for Java",
)
def test_a_fault_ends_as_it_must(fault: Fault, tmp_path: Path) -> None:
    assert_ends_as_it_must(fault, tmp_path)
