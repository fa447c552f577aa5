"""Measures where the start page's passing check spends its seconds, in this commit and in an earlier commit.

Each commit runs in a separate process, in turn, and this commit also with an archive of classes. Without an archive of
classes (`make_class_archive`) Java loads Spark's classes from their jars, as for users without an archive.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streamproof.properties.witnesses.spark.platform.class_archive import java_options
from streamproof.reference.core.errors import StreamproofError
from streamproof.specs.java import find_java

from ..figures import Figure, Setting, Target, figure, ratio
from ..machine import ROOT
from ..processes import CpuClock
from ..production.earlier import lay_out
from ..production.production import HERE, Program
from ..production.run import TODAYS
from .check import EARLIER

SHARE = Target("at most", 0.6, aim=True)
ARCHIVED = f"{TODAYS}, with an archive of classes"
PHASES = ("importing", "starting Spark", "the first check", "a second check")
_FILE = re.compile(r"<!-- file: (\S+) -->\n(?:<!--.*-->\n)*```python\n(.*?)```", re.DOTALL)
_CHECK = """
import contextlib, io
from streamproof import check_job
from streamproof.properties.witnesses.spark import session
import test_revenue
if not {archived}:
    session.java_options = lambda java: []
print(flush=True)
session.spark_session(any_provider=True)
print(flush=True)
for _ in range(2):
    with contextlib.redirect_stdout(io.StringIO()):
        test_revenue.test_revenue(check_job)
    print(flush=True)
"""


class Phase(NamedTuple):
    """The cost of one phase of a process.

    Attributes:
        seconds: The wall time of the phase (s).
        used: The CPU seconds of the phase, by kind of process.
        threads: The JVM's CPU seconds, by the task of its threads.
    """

    seconds: float
    used: Mapping[str, float]
    threads: Mapping[str, float]

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of all processes."""
        return sum(self.used.values())


def run(setting: Setting) -> list[Figure]:
    """Measure each commit in turn, phase by phase."""
    archived = [ARCHIVED] if java_options(find_java()) else []
    found: dict[str, list[list[Phase]]] = {form: [] for form in (TODAYS, *archived, EARLIER)}
    with tempfile.TemporaryDirectory(prefix=f"streamproof-{EARLIER}-") as name:
        programs = {**dict.fromkeys(found, HERE), EARLIER: Program(Path(name), lay_out(EARLIER, Path(name)))}
        for number in range(setting.times()):
            for form, runs in found.items():
                setting.progress(f"round {number + 1} of {setting.times()}: {form}")
                runs.append(_phases(programs[form], form == ARCHIVED))
    figures = [one for form, runs in found.items() for one in _of_phases(form, runs)]
    wholes = {form: _of_first(form, runs) for form, runs in found.items()}
    figures += [one for pair in wholes.values() for one in pair]
    for form in (TODAYS, *archived):
        for kind, own, earlier in zip(("CPU seconds", "wall time"), wholes[form], wholes[EARLIER], strict=True):
            figures.append(ratio(f"the first check, {form}: {kind} over {EARLIER}'s", own, earlier, SHARE))
    return figures


def _of_phases(form: str, runs: Sequence[Sequence[Phase]]) -> list[Figure]:
    """Return the CPU seconds of each phase, and for the JVM of each kind of thread."""
    figures = []
    for name, phases in zip(PHASES, zip(*runs, strict=True), strict=True):
        figures.append(figure(f"{form}, {name}", "CPU s", [phase.cpu for phase in phases], "all processes"))
        parts = {**phases[0].used, **{f"JVM: {kind}": 0.0 for kind in phases[0].threads}}
        for part in parts:
            kind = part.removeprefix("JVM: ")
            each = [(phase.used if kind == part else phase.threads)[kind] for phase in phases]
            figures.append(figure(f"{form}, {name}: {part}", "CPU s", each, "a part"))
    return figures


def _of_first(form: str, runs: Sequence[Sequence[Phase]]) -> tuple[Figure, Figure]:
    """Return the CPU seconds and the wall time up to the end of the first check."""
    firsts = [phases[:-1] for phases in runs]
    cpu = [sum(phase.cpu for phase in phases) for phases in firsts]
    wall = [sum(phase.seconds for phase in phases) for phases in firsts]
    name = f"the first check, {form}"
    return figure(name, "CPU s", cpu, "300 histories"), figure(name, "seconds", wall, "300 histories")


def _phases(program: Program, archived: bool) -> list[Phase]:
    """Run the start page's check twice in a new process, and return its phases.

    Raises:
        StreamproofError: The check failed.
    """
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    started = time.perf_counter()
    marks: list[tuple[float, Mapping[str, float], Mapping[str, float]]] = []
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        for file, text in _FILE.findall(page):
            Path(name, file).write_text(text, encoding="utf-8")
        given: dict[str, Any] = {"cwd": name, "env": program.environment, "stdout": subprocess.PIPE, "text": True}
        command = [sys.executable, "-c", _CHECK.format(archived=archived)]
        with subprocess.Popen(command, **given) as process, CpuClock(process.pid).running() as clock:
            assert process.stdout is not None
            for _ in process.stdout:
                marks.append((time.perf_counter() - started, clock.read(), clock.threads()))
    if process.returncode or len(marks) != len(PHASES):
        raise StreamproofError(f"the start page's check exited {process.returncode}")
    nothing = (0.0, dict.fromkeys(marks[0][1], 0.0), dict.fromkeys(marks[0][2], 0.0))
    return [
        Phase(after[0] - before[0], *(_less(*pair) for pair in zip(after[1:], before[1:], strict=True)))
        for before, after in zip([nothing, *marks], marks, strict=False)
    ]


def _less(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds - before[name] for name, seconds in after.items()}
