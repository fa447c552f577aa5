"""Counterexamples of jobs: their text, where they are saved, and the histories that are run first the next time."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...reference.core.errors import BadInput
from ...reference.core.files import read_text
from ..system.files import write_whole
from .comparison import RowDifference, canonical, flat, table_of
from .histories.text import parse, to_text
from .model import Expected, JobHistory, Row, Source, from_microseconds
from .queries.running import RunOptions

HISTORY, REPORT = "history.jsonl", "counterexample.txt"


@dataclass(frozen=True)
class JobCounterexample:
    """A history on which a job differs from what is expected.

    Attributes:
        job: The job's name and line.
        oracle: What says what is expected.
        history: The smallest history that was found.
        sources: The job's inputs.
        expected: What is expected of it.
        emitted: The rows of each batch that the job emitted; of a sink one list, of the end.
        difference: Where they differ first; None where it didn't differ any more.
        run: How the query was run.
        unique: The columns that tell the rows of an updated table apart.
        seed: What the history was drawn from.
    """

    job: str
    oracle: str
    history: JobHistory
    sources: Sequence[Source]
    expected: Expected
    emitted: Sequence[Sequence[Row]]
    difference: RowDifference | None
    run: RunOptions
    unique: Sequence[str]
    seed: int

    @property
    def text(self) -> str:
        """The verdict in a sentence, the history, and both results side by side."""
        return "\n".join([self.sentence, "", *self._arrivals(), "", *self._both(), "", self._origin()])

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        found = self.difference
        if found is None:
            return f"violated: {self.job} differs from {self.oracle}, but not each time that it runs."
        where = "at the end" if found.batch is None else f"in batch {found.batch}"
        missing, surplus = list(map(shown_row, found.missing)), list(map(shown_row, found.surplus))
        came = surplus[0] if surplus else "no such row"
        if missing and missing[0] == came:
            missing[0], came = typed_row(found.missing[0]), typed_row(found.surplus[0])
        wanted = missing[0] if missing else "no such row"
        return f"violated: {where} {self.oracle} expects {wanted}, and {self.job} emits {came}."

    def _arrivals(self) -> list[str]:
        lines = ["What arrives:"]
        for number, batch in enumerate(self.history.batches):
            clock = ""
            if self.history.clock:
                clock = f"   (the event time has reached {shown(from_microseconds(self.history.clock[number]))})"
            lines.append(f"  batch {number}{clock}")
            several = len(self.sources) > 1
            lines += [f"    {f'{name}: ' if several else ''}{shown_row(row)}" for name, row in batch]
        return lines

    def _both(self) -> list[str]:
        expected, came = [flat(rows) for rows in self.expected.rows], [flat(rows) for rows in self.emitted]
        if self.expected.comparing != "batches" or len(expected) != len(came):
            found = self.difference
            at = -1 if found is None or found.batch is None else found.batch
            table = table_of(came, self.run.mode, self.unique)[min(at, len(came) - 1)] if came else []
            when = "at the end" if at < 0 else f"after batch {at}"
            return [
                *_side(f"Expected by {self.oracle}, {when}:", [expected[at]], [table]),
                *_side(f"What {self.job} has emitted by then:", [table], [expected[at]]),
            ]
        return [
            *_side(f"Expected by {self.oracle}:", expected, came, "in batch"),
            *_side(f"Emitted by {self.job}:", came, expected, "in batch"),
        ]

    def _origin(self) -> str:
        packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "duckdb", "pyarrow"))
        return (
            f"Seed {self.seed}, mode {self.run.mode}, trigger {self.run.trigger}; "
            f"streamproof {version('streamproof')}, {packages}, Python {platform.python_version()}."
        )


def _side(head: str, batches: Sequence[Sequence[Row]], others: Sequence[Sequence[Row]], words: str = "") -> list[str]:
    """Return rows under a head; a row that the other side lacks is marked.

    Args:
        head: The head.
        batches: The rows of this side.
        others: Those of the other side, batch by batch where it has as many, else all together.
        words: What comes before a batch's number; without, none is shown.
    """
    by_batch = len(others) == len(batches)
    all_rows = [row for rows in (*batches, *others) for row in rows]
    columns = sorted(set(all_rows[0]).intersection(*all_rows)) if all_rows else []
    lines = [head]
    together = Counter(_compared(row, columns) for rows in others for row in rows)
    for number, rows in enumerate(batches):
        there = Counter(_compared(row, columns) for row in others[number]) if by_batch else together
        for row in rows:
            same = there[_compared(row, columns)] > 0
            there[_compared(row, columns)] -= 1
            lines.append(f"  {' ' if same else '≠'} {f'{words} {number}: ' if words else ''}{shown_row(row)}")
    return lines if len(lines) > 1 else [f"{head} nothing"]


def _compared(row: Row, columns: Sequence[str]) -> Any:
    return tuple(canonical(row.get(column)) for column in columns or sorted(row))


def shown_row(row: Row) -> str:
    """Return a row as text: `user a, total 3`."""
    return ", ".join(f"{name} {shown(value)}" for name, value in row.items()) or "a row without columns"


def typed_row(row: Row) -> str:
    """Return a row as text, with the types of its values, where others print alike."""
    return ", ".join(f"{name} {shown(value)} ({type(value).__name__})" for name, value in row.items())


def shown(value: Any) -> str:
    """Return a value as text that tells null, text and numbers apart."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ", "microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.removesuffix(".000") + ("Z" if value.tzinfo else "")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {shown(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value) if isinstance(value, Decimal) else repr(value)


def violation(counterexample: JobCounterexample, head: str, folder: Path | None) -> str:
    """Return the message of a violation; save the counterexample, if there is a folder for it."""
    lines = [head, counterexample.text]
    text = to_text(counterexample.history, counterexample.sources)
    if folder is not None:
        saved = folder / f"job-{sha256(text.encode()).hexdigest()[:12]}"
        saved.mkdir(parents=True, exist_ok=True)
        write_whole(saved / HISTORY, text)
        write_whole(saved / REPORT, counterexample.text + "\n")
        lines += ["", f"Saved in {saved}, and run first the next time."]
    lines += ["", "To run it first in every run of the test, give check_job these examples:", ""]
    lines += ["    examples=['''", *("    " + line for line in text.splitlines()), "    ''']"]
    return "\n".join(lines)


@contextlib.contextmanager
def kept_meanwhile(history: JobHistory, sources: Sequence[Source], folder: Path | None) -> Iterator[None]:
    """Keep a history that fails on disk while it is shrunk, so that a check which is interrupted doesn't lose it."""
    if folder is None:
        yield
        return
    kept = folder / "job-unshrunk"
    kept.mkdir(parents=True, exist_ok=True)
    write_whole(kept / HISTORY, to_text(history, sources))
    try:
        yield
    except AssertionError:  # the violation, whose smaller history is saved
        shutil.rmtree(kept)
        raise
    shutil.rmtree(kept)


def saved_histories(examples: Sequence[str | Path], folder: Path | None, sources: Sequence[Source]) -> list[JobHistory]:
    """Return the histories of examples, and those that are saved in a folder.

    Raises:
        BadInput: One can't be read; the message names it and the line.
    """
    found = []
    for number, example in enumerate(examples):
        if isinstance(example, Path) or "\n" not in example:
            path = Path(example)
            found.append(parse(read_text(path), sources, os.fspath(path)))
        else:
            found.append(parse(example, sources, f"example {number}"))
    for path in sorted(folder.glob(f"*/{HISTORY}")) if folder is not None else ():
        try:
            found.append(parse(read_text(path), sources, os.fspath(path)))
        except BadInput as error:
            raise BadInput(f"{error}; or remove {path.parent}, if the job's inputs have changed since") from None
    return found
