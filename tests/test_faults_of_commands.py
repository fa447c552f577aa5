"""What the commands make of a machine and of files that are not as they should be: one message, the right exit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults import Fault, assert_ends_as_it_must

pytestmark = pytest.mark.exhaustive  # a process each: about a second, on Spark 10 to 20

HEADER = '{"operator": "session_windows", "options": {"gap_ms": 10}}\n'
HISTORY = HEADER + '{"input": "events", "key": "a", "value": 1, "timestamp": 100}\n'
CHECK = ("check", "table_table_join", "--only", "reference", "--histories", "5")

FAULTS = [
    # Standard output and error.
    Fault(
        "standard output is closed",
        ("run", "h.jsonl"),
        "error: standard output is closed, and what is found is reported there: .+",
        given={"h.jsonl": HISTORY},
        shell='exec "$@" >&-',
    ),
    Fault(
        "standard output is closed before a check",
        CHECK,
        "error: standard output is closed, .+",
        shell='exec "$@" >&-',
    ),
    Fault(
        "standard output is full",
        ("run", "h.jsonl"),
        r"error: standard output can't be written \(No space left on device\): send it where there is room; .+",
        given={"h.jsonl": HISTORY},
        shell='exec "$@" >/dev/full',
    ),
    Fault(
        "a report finds standard output full",
        ("doctor",),
        r"error: standard output can't be written \(No space left on device\): .+",
        shell='exec "$@" >/dev/full',
    ),
    Fault(
        "the help finds standard output full",
        ("check", "--help"),
        r"error: standard output can't be written \(No space left on device\): .+",
        shell='exec "$@" >/dev/full',
    ),
    Fault(
        "a verdict finds standard output full",
        CHECK,
        r"error: standard output can't be written \(No space left on device\): .+",
        shell='exec "$@" >/dev/full',
        after_steps=True,
    ),
    Fault("standard error is closed", ("run", "h.jsonl"), "", 0, {"h.jsonl": HISTORY}, shell='exec "$@" 2>&-'),
    Fault("standard error is closed and the file is bad", ("run", "nowhere.jsonl"), "", shell='exec "$@" 2>&-'),
    Fault("standard error is full", ("run", "nowhere.jsonl"), "", shell='exec "$@" 2>/dev/full'),
    Fault("a check has nowhere to say its steps", CHECK, "", 0, shell='exec "$@" 2>/dev/full', reports="conforms"),
    Fault("both are full", ("doctor",), "", shell='exec "$@" >/dev/full 2>/dev/full'),
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
        "the name of a missing file is not UTF-8",
        ("run", "h\udcff.jsonl"),
        r"error: h\\xff\.jsonl: can't be read \(No such file or directory\): .+",
    ),
    Fault(
        "a folder with a name that is not UTF-8 holds a bad file",
        ("run", "."),
        r"error: h\\xff\.jsonl: line 1: .+",
        given={"h\udcff.jsonl": "{}"},
    ),
    Fault(
        "a name steers the terminal",
        ("run", "\x1b[31m\x07\r\n\u202eh.jsonl"),
        r"error: \\x1b\[31m\\x07\\r\\n\\u202eh\.jsonl: can't be read .+",
    ),
    Fault(
        "an operator's name steers the terminal",
        ("check", "\x1b]0;title\x07[red]"),
        r"error: unknown operator '(\\x1b|\\\\x1b)\]0;title(\\x07|\\\\x07)\[red\]': .+",
    ),
    Fault("an option steers the terminal", ("doctor", "--\x1b[2J"), r"error: No such option: --\\x1b\[2J .+"),
    Fault(
        "a column's name steers the terminal",
        ("compare", "session_windows", "--data", "d.jsonl", "--key", "\x9b2J", "--timestamp", "t"),
        r"error: d\.jsonl: no column '\\x9b2J' for the key: the columns are \\x1b\[2J, t",
        given={"d.jsonl": json.dumps({"\x1b[2J": "a", "t": 1}) + "\n"},
    ),
    # Folders.
    Fault(
        "the working directory is gone",
        CHECK,
        "error: the working directory is gone .+: change to one that is there",
        shell='mkdir ../gone && cd ../gone && rmdir ../gone && exec "$@"',
    ),
]


CASES = [
    pytest.param(fault, marks=[getattr(pytest.mark, mark) for mark in fault.marks], id=fault.name) for fault in FAULTS
]


@pytest.mark.parametrize("fault", CASES)
def test_a_fault_ends_as_it_must(fault: Fault, tmp_path: Path) -> None:
    assert_ends_as_it_must(fault, tmp_path)
