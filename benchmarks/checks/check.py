"""Measures the CPU seconds, wall time and memory of checks, and the time to their first results, in two commits.

CPU seconds count the whole process tree (Python, the JVM, its workers, and their child processes).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure, ratio
from ..processes import KINDS, CpuClock
from ..production.earlier import lay_out
from ..production.production import HERE, Program
from ..production.run import TODAYS
from ..witnesses.memory import GIB, peaks_of

EARLIER = "424353e"
"""The last commit whose `streamproof check` checked every law both on the reference and on Spark."""
MINUTES = Target("under", 5 * 60)
MEMORY = Target("under", 3)
SHARE = Target("at most", 0.7)
COMPUTES = Target("at most", 0.65)
FIRST_VERDICT = Target("under", 60)
FIRST_TOLD = Target("under", 30)
MUTANT = ("session_windows", "--mutant", "merges_one")
_HISTORIES = re.compile(r"— ([\d,]+) histories")


class Command(NamedTuple):
    """The measurements of a command.

    Attributes:
        seconds: The wall time of the command (s).
        used: The CPU seconds by kind of process.
        peak: The peak memory (GiB) of the driver: the Python process and the JVM.
        printed: The printed lines, each with its time (s).
    """

    seconds: float
    used: Mapping[str, float]
    peak: float
    printed: Sequence[tuple[float, str]]

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of all processes."""
        return sum(self.used.values())

    @property
    def histories(self) -> int:
        """Return the number of histories of all operators, on Spark and on the references."""
        found = [_HISTORIES.search(line) for _, line in self.printed]
        return sum(int(one[1].replace(",", "")) for one in found if one)

    def first(self, words: str) -> float:
        """Return the second in which a line with these words was first printed."""
        return next(second for second, line in self.printed if words in line)


def run(setting: Setting) -> list[Figure]:
    """Measure `streamproof check` of both commits in turn, the second command of `make check`, and a mutant's check."""
    rounds, histories = setting.times(), setting.size(2000, 50)
    asked = ["--histories", str(histories)] if setting.small else []
    checks: dict[str, list[Command]] = {TODAYS: [], EARLIER: []}
    compares: list[Command] = []
    mutants: list[Command] = []
    with tempfile.TemporaryDirectory(prefix=f"streamproof-{EARLIER}-") as name:
        programs = {TODAYS: HERE, EARLIER: Program(Path(name), lay_out(EARLIER, Path(name)))}
        for number in range(rounds):
            setting.progress(f"round {number + 1} of {rounds}")
            for form, runs in checks.items():
                # A small check is inconclusive (exit code 2), because few histories don't cover all coverage goals.
                runs.append(_streamproof(setting, programs[form], ["check", *asked], exits=2 if setting.small else 0))
            mutants.append(_streamproof(setting, HERE, ["check", *MUTANT, *asked], exits=1))
            if not setting.small:
                compares.append(_streamproof(setting, HERE, ["compare", "session_windows", "--data", "flights"]))
    sizes = f"{histories:,} histories an operator"
    figures = _beside_each_other(checks, sizes)
    first = figure("the first verdict on Spark", "seconds", _each(checks[TODAYS], _of_spark), sizes, FIRST_VERDICT)
    name = f"streamproof check {shlex.join(MUTANT)}: the counterexample"
    told = figure(f"{name}, found", "seconds", _each(mutants, lambda one: one.first("violated: ")), sizes, FIRST_TOLD)
    shown = figure(f"{name}, shrunk", "seconds", _each(mutants, lambda one: one.first("History:")), sizes)
    figures += [first, told, shown]
    if compares:
        walls = _each(compares, lambda one: one.seconds)
        both = [check.seconds + wall for check, wall in zip(checks[TODAYS], walls, strict=True)]
        figures += [
            figure("streamproof compare session_windows --data flights", "seconds", walls, "336,776 flights"),
            figure("make check: both", "seconds", both, f"{sizes}, 336,776 flights", MINUTES),
        ]
    return figures


def _beside_each_other(checks: Mapping[str, Sequence[Command]], sizes: str) -> list[Figure]:
    """Return the figures of each commit's checks, and the ratios of the two commits."""
    figures: list[Figure] = []
    found: dict[str, list[Figure]] = {}
    for form, runs in checks.items():
        name = f"streamproof check, {form}"
        cpu = figure(f"{name}: all processes", "CPU s", _each(runs, lambda one: one.cpu), sizes)
        wall = figure(f"{name}: wall time", "seconds", _each(runs, lambda one: one.seconds), sizes)
        rate = figure(f"{name}: a CPU second", "histories", _each(runs, lambda one: one.histories / one.cpu), sizes)
        waits = ratio(f"{name}: wall time over CPU seconds", wall, cpu, COMPUTES if form == TODAYS else None)
        peak = figure(
            f"{name}: driver, sum of the peaks of Python and JVM",
            "GiB",
            _each(runs, lambda one: one.peak),
            sizes,
            MEMORY if form == TODAYS else None,
        )
        kinds = [figure(f"{name}: {kind}", "CPU s", [one.used[kind] for one in runs], sizes) for kind in KINDS]
        found[form] = [cpu, wall, rate]
        figures += [cpu, *kinds, wall, waits, rate, peak]
    (cpu, wall, rate), (cpu_before, wall_before, rate_before) = found[TODAYS], found[EARLIER]
    return [
        *figures,
        ratio(f"streamproof check: CPU seconds over {EARLIER}'s", cpu, cpu_before, SHARE),
        ratio(f"streamproof check: wall time over {EARLIER}'s", wall, wall_before, SHARE),
        ratio(f"streamproof check: histories a CPU second over {EARLIER}'s", rate, rate_before),
    ]


def _each(runs: Sequence[Command], figure_of: Callable[[Command], float]) -> list[float]:
    return [figure_of(one) for one in runs]


def _of_spark(check: Command) -> float:
    return check.first(", on Spark: ")


def _streamproof(setting: Setting, program: Program, words: Sequence[str], exits: int = 0) -> Command:
    """Run a command in an empty folder.

    Raises:
        StreamproofError: The command exited with another code; the message contains the last printed lines.
    """
    setting.progress(f"streamproof {shlex.join(words)}" + " as of the earlier commit" * (program is not HERE))
    command = [sys.executable, "-m", "streamproof.properties.cli.entry", *words]
    # Let Python write compiled modules, because otherwise each worker compiles its imports.
    environment = {**program.environment, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    printed: list[tuple[float, str]] = []
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="streamproof-") as folder,
        subprocess.Popen(command, cwd=folder, **pipes) as process,
        CpuClock(process.pid).running() as clock,
        peaks_of(process.pid) as peaks,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            printed.append((time.perf_counter() - started, line.rstrip()))
            used = clock.read()
    if process.returncode != exits:
        last = "\n".join(line for _, line in printed[-5:])
        raise StreamproofError(f"streamproof {shlex.join(words)} exited {process.returncode}, not {exits}:\n{last}")
    return Command(printed[-1][0], used, (peaks["python"] + peaks["java"]) / GIB, printed)
