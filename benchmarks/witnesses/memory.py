"""Measures the peak resident memory of a process that checks a cohort (many histories in one query).

`python -m benchmarks.witnesses.memory COUNT` runs one check in this process, and prints the peaks (bytes) as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import typer
from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure
from ..machine import ROOT
from ..processes import EVERY_SECONDS, KINDS, peak_of, processes, require_proc, tree_of

GIB = 2**30


def run(setting: Setting) -> list[Figure]:
    """Measure each check in a fresh process."""
    require_proc()
    count, rounds = setting.size(20_000, 300), setting.times()
    found: list[dict[str, int]] = []
    for number in range(rounds):
        setting.progress(f"round {number + 1} of {rounds}: {count:,} histories in a process of its own")
        words = [sys.executable, "-m", "benchmarks.witnesses.memory", str(count)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise StreamproofError(f"`{' '.join(words)}` failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        found.append(json.loads(done.stdout.splitlines()[-1]))
    sizes = f"{count:,} histories of 20 arrivals in 4 batches"

    def peak(name: str, *kinds: str, target: Target | None = None) -> Figure:
        return figure(name, "GiB", [sum(peaks[kind] for kind in kinds) / GIB for peaks in found], sizes, target)

    return [
        peak("Python process (draws, packs, plays, judges)", "python"),
        peak("JVM", "java"),
        peak("driver: Python process and JVM, sum of the peaks", "python", "java", target=Target("under", 4)),
        peak("Spark's Python workers, sum of the peaks", "workers"),
    ]


def watch(root: int, peaks: dict[int, tuple[str, int]], done: threading.Event) -> None:
    """Record the peak memory (bytes) of a process and all its descendants, until `done` is set."""
    while True:
        stop = done.wait(EVERY_SECONDS)
        for number, kind in tree_of(root, processes()).items():
            peaks[number] = (kind, max(peak_of(number), peaks.get(number, (kind, 0))[1]))
        if stop:
            return


@contextlib.contextmanager
def peaks_of(root: int) -> Iterator[dict[str, int]]:
    """Measure the peak memory (bytes) of a process, its JVM and its workers in the block, and then add them to the
    result.
    """
    sums = dict.fromkeys(KINDS, 0)
    peaks: dict[int, tuple[str, int]] = {}
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(root, peaks, done))
    watcher.start()
    try:
        yield sums
    finally:
        done.set()
        watcher.join()
        for kind, peak in peaks.values():
            sums[kind] += peak


def measure(count: int) -> None:
    """Judge one cohort of this many histories, and print the peaks."""
    from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
    from streamproof.properties.laws.case import Case
    from streamproof.properties.laws.on_spark.changelog import Changelog
    from streamproof.properties.registration.registration import registration_of

    with peaks_of(os.getpid()) as sums:
        settings = HistorySettings("session_windows", registration_of("session_windows").profiles["update"], SCHEDULE)
        Changelog().recheck([Case(history) for history in draw_histories(settings, count, seed=0)])
    print(json.dumps(sums))


if __name__ == "__main__":
    typer.run(measure)
