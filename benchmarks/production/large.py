"""Measures an operator over 100,000,000 records, on clusters of one and of two workers, killed once in the middle.

Each worker has one core of this machine. When half of the batches have ended, SIGKILL kills the process with its
cluster, and another process continues from the checkpoint. The records are generated again from a seed, in batches of
500,000, over 1,000,000 keys.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ..figures import Figure, Setting, figure, growth_exponent, ratio
from ..processes import require_proc
from .large_run import lay_out
from .production import GROWTH, HERE, UNIT, messages_of

OPERATORS = ("session_windows", "foreign_key_join")
WORKERS = (2, 1)
RECORDS, OF_BATCH = 100_000_000, 500_000
Message = Mapping[str, Any]


class Halves(NamedTuple):
    """The messages of a run until it was killed, and the messages of the run that continued."""

    first: Sequence[Message]
    second: Sequence[Message]


def run(setting: Setting) -> list[Figure]:
    """Measure each operator on each number of workers; all read the same files."""
    require_proc()
    records = setting.records or setting.size(RECORDS, 40_000)
    batches = max(8, records // OF_BATCH)
    figures: list[Figure] = []
    for operator in setting.among(OPERATORS):
        with tempfile.TemporaryDirectory(prefix="streamproof-", ignore_cleanup_errors=True) as name:
            found = {}
            lay_out(operator, Path(name, "inputs"), records, batches)
            for workers in WORKERS:
                words = [operator, str(workers), name]
                setting.progress(f"{operator}: {records:,} records, workers: {workers}")
                halves = Halves(_half(words, batches // 2), _half(words, None))
                found[workers] = figures_of(operator, workers, halves, records, batches)
                # Report these figures now, because the next number of workers takes as long, and may be interrupted.
                for one in found[workers]:
                    setting.progress(f"{one.name}: {one.median:,.2f} {one.unit}")
                shutil.rmtree(Path(name) / "checkpoint")
            rates = [found[workers][0] for workers in WORKERS]
            figures += [
                *(one for each in found.values() for one in each),
                ratio(f"{operator}, 2 workers over 1", *rates),
            ]
    return figures


def _half(words: Sequence[str], batches: int | None) -> list[Message]:
    """Run until this many batches have ended, and kill the process in the next batch; with None, run to the end."""
    messages: list[Message] = []
    with contextlib.closing(messages_of(HERE, "production.large_run", words)) as printed:
        for message in printed:
            messages.append(message)
            # This batch is repeated, because Spark hasn't recorded its end.
            if batches is not None and message.get("batch") == batches:
                break
    return messages


def figures_of(operator: str, workers: int, halves: Halves, records: int, batches: int) -> list[Figure]:
    """Return the figures of one run in two halves."""
    name, rows = f"{operator}, workers: {workers}", records // batches
    sizes = f"{records:,} records in {batches} batches"
    took, cpu = (_of_batches(halves, of) for of in ("at", "cpu"))
    first = halves.second[1]
    recovery = first["at"] - halves.second[0]["started"]
    exponents = [growth_exponent([(count * rows, sum(cpu[:count])) for count in _marks(len(cpu))])]
    return [
        figure(f"{name}: records a second", "records/s", [rows * len(took) / sum(took)], sizes),
        figure(f"{name}: records a CPU second", UNIT, [rows * len(cpu) / sum(cpu)], sizes),
        figure(f"{name}: a batch", "seconds", took, f"{rows:,} records"),
        figure(f"{name}: growth of the CPU seconds", "exponent", exponents, sizes, GROWTH),
        figure(f"{name}: from the restart to its first batch's end", "seconds", [recovery], sizes),
        figure(f"{name}: the same over a batch", "times", [recovery / median(took)], sizes),
        figure(f"{name}: state at the end", "MB", [halves.second[-1]["state"] / 1e6], sizes),
    ]


def _of_batches(halves: Halves, of: str) -> list[float]:
    """Return the seconds of each batch, without the first of each half, which starts the query."""
    differences: list[float] = []
    for messages in halves:
        ends = [message[of] for message in messages if "batch" in message]
        differences += [after - before for before, after in pairwise(ends)]
    return differences


def _marks(count: int) -> list[int]:
    """Return the numbers of batches for measuring growth: all, half of them, a quarter, and so on."""
    marks = [count]
    while marks[-1] >= 4:
        marks.append(marks[-1] // 2)
    return marks[::-1]
