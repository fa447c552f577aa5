"""Measures 100,000,000 records through an operator on clusters of one and of two workers, killed in the middle.

Each worker has one core of this machine. When half of the batches have ended, the process, its cluster included, is
killed by SIGKILL, and another goes on from the checkpoint. The records are made anew from a seed, in batches of
500,000, over 1,000,000 keys.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from streamproof.reference.core.errors import StreamproofError

from .figures import Figure, Setting, Target, figure, growth_exponent, ratio
from .machine import ROOT
from .processes import require_proc

OPERATORS = ("session_windows", "foreign_key_join")
WORKERS = (2, 1)
RECORDS, OF_BATCH = 100_000_000, 500_000
GROWTH = Target("at most", 1.05)
Message = Mapping[str, Any]


class Halves(NamedTuple):
    """What a run printed until it was killed, and what the run printed that went on."""

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
            for workers in WORKERS:
                words = [operator, str(workers), name, str(records), str(batches)]
                setting.progress(f"{operator}: {records:,} records, workers: {workers}")
                halves = Halves(_half(words, batches // 2), _half(words, None))
                found[workers] = figures_of(operator, workers, halves, records, batches)
                shutil.rmtree(Path(name) / "checkpoint")
            rates = [found[workers][0] for workers in WORKERS]
            figures += [
                *(one for each in found.values() for one in each),
                ratio(f"{operator}, 2 workers over 1", *rates),
            ]
    return figures


def _half(words: Sequence[str], batches: int | None) -> list[Message]:
    """Run until so many batches have ended, and kill the process in the next batch; to the end where it is None."""
    command = [sys.executable, "-m", "benchmarks.large_run", *words]
    messages: list[Message] = []
    with tempfile.TemporaryFile("w+") as errors:
        # A group of its own, so that the executors end with it.
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    messages.append(json.loads(line))
                    # This batch is repeated, for Spark has not yet noted its end.
                    if batches is not None and messages[-1].get("batch") == batches:
                        return messages
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode or "ended" not in messages[-1]:
            errors.seek(0)
            last = (errors.read().strip().splitlines() or ["?"])[-1]
            raise StreamproofError(f"`{' '.join(command)}` failed: {last}")
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
        figure(f"{name}: records a CPU second", "records/CPU s", [rows * len(cpu) / sum(cpu)], sizes),
        figure(f"{name}: a batch", "seconds", took, f"{rows:,} records"),
        figure(f"{name}: growth of the CPU seconds", "exponent", exponents, sizes, GROWTH),
        figure(f"{name}: from the restart to its first batch's end", "seconds", [recovery], sizes),
        figure(f"{name}: the same over a batch", "times", [recovery / median(took)], sizes),
        figure(f"{name}: state at the end", "MB", [halves.second[-1]["state"] / 1e6], sizes),
    ]


def _of_batches(halves: Halves, of: str) -> list[float]:
    """Return what each batch took, without the first batch of each half, which starts the query."""
    differences: list[float] = []
    for messages in halves:
        ends = [message[of] for message in messages if "batch" in message]
        differences += [after - before for before, after in pairwise(ends)]
    return differences


def _marks(count: int) -> list[int]:
    """Return the numbers of batches at which growth is looked at: all, half of them, a quarter, and so on."""
    marks = [count]
    while marks[-1] >= 4:
        marks.append(marks[-1] // 2)
    return marks[::-1]
