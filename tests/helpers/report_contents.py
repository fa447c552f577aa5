"""Reports for tests: what a check might have found, made without one."""

from __future__ import annotations

from collections.abc import Container, Sequence

from streamproof.properties.checking.checked import Checked, LawCount
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.report.content import Content, Found
from streamproof.properties.report.making import counterexample_found
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change, Record

OPTIONS = {"gap_ms": 7, "grace_ms": 0, "aggregate": "count", "late": "own"}
SUBJECT = "session_windows, on Spark"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></svg></style></script><h1>owned</h1>",
    "\x1b[31mred\x1b]8;;http://evil.example\x07link",
    "a\x00b\x08\x7f\x9b31m",
    "one\r\n::error::owned",
    "]]>&amp;{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066",
    "| [x](javascript:alert(1)) `code` |",
    "\ufffe\uffff half \ud800 pair",
]
"""Keys that a page, a terminal, XML, Markdown or a workflow command could take for something of their own."""


def history_of(keys: Sequence[str] = ("a",), records: int = 3) -> History:
    """Return a history with cuts, a clock advance and a late record."""
    lines = [Record("events", keys[number % len(keys)], number, 10 * number) for number in range(records)]
    end = 10 * records
    more = [CUT, ClockAdvance(end + 50), Record("events", keys[0], 0, end), CUT, Record("events", keys[0], 1, 0)]
    return History("session_windows", OPTIONS, (*lines, *more), "batch")


def counterexample_of(history: History, confirmed: bool = True, lost: Container[int] = (1,)) -> Counterexample:
    """Return the counterexample of a Spark that emits nothing in some batches."""
    played = play(history)
    expected = Outcome.of_play("history", played)
    entries = [
        Entry(-1, batch, output)
        for _, batch, output in played.entries
        if batch not in lost or not isinstance(output, Change)
    ]
    actual = Outcome("history", Grain.BATCH, entries, is_stream=played.definition.is_stream)
    found = differences(expected, actual)
    said = "violated: the changelog is the reference's; but for key a in batch 1 it isn't."
    unconfirmed = "" if confirmed else "the check ended before it rechecked the law"
    return Counterexample(
        law="changelog",
        sentence=said,
        history=history,
        expected=("reference", expected),
        actual=("Spark", actual),
        differences=found,
        confirmed=confirmed,
        seed=7,
        unconfirmed=unconfirmed,
    )


def found_of(history: History) -> Found:
    """Return that counterexample as a report shows it."""
    return counterexample_found(counterexample_of(history), SUBJECT, "found/changelog-1")


def content_of(*found: Found, missing: Sequence[str] = (), name: str = SUBJECT, histories: int = 100) -> Content:
    """Return a report with a law of each verdict, and counterexamples."""
    laws = [
        LawCount(
            "changelog", "it is the reference's", ("reference", "spark"), "violated", histories, 34, "", {"late": 3}
        ),
        LawCount("duckdb", "it folds to DuckDB's", ("duckdb", "spark"), "inconclusive", 2, 0, "unmet", {}, ["gap + 1"]),
        LawCount("restart", "a restart changes nothing", ("spark",), "conforms", 64),
        LawCount("schedules", "", (), "not checked", why="it sends no messages"),
    ]
    unfinished = "not finished" if missing else ""
    check = Checked(name, "violated", laws, histories, 23, 132.0, "seed 7", {"late": 3}, ["A note."], unfinished)
    other = Checked("session_windows, the reference", "conforms", [LawCount("x", "y", ("kafka",), "conforms", 5)], 5)
    return Content("violated", [check, other], found, (), "streamproof 0", "streamproof check", missing)
