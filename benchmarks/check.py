"""Measures the wall time of the gate, each command in a process of its own, from its start to its end."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile

from streamproof.reference.core.errors import StreamproofError

from .figures import Figure, Setting, Target, figure, seconds
from .machine import ROOT

MINUTES = Target("under", 5 * 60)


def run(setting: Setting) -> list[Figure]:
    """Measure `streamproof check`, and what `make check` runs after it."""
    rounds, histories = setting.times(), setting.size(2000, 50)
    checks: list[float] = []
    compares: list[float] = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as counterexamples:
            words = [
                "check",
                "--findings",
                counterexamples,
                *(["--histories", str(histories)] if setting.small else []),
            ]
            setting.progress(f"round {number + 1} of {rounds}: streamproof {shlex.join(words)}")
            checks.append(seconds(lambda words=words: _streamproof(*words)))  # type: ignore[misc]
        if not setting.small:
            words = ["compare", "session_windows", "--data", "flights"]
            setting.progress(f"round {number + 1} of {rounds}: streamproof {shlex.join(words)}")
            compares.append(seconds(lambda words=words: _streamproof(*words)))  # type: ignore[misc]
    sizes = f"{histories:,} histories"
    figures = [figure("streamproof check", "seconds", checks, sizes, MINUTES)]
    if compares:
        both = [check + compare for check, compare in zip(checks, compares, strict=True)]
        figures += [
            figure("streamproof compare session_windows --data flights", "seconds", compares, "336,776 flights"),
            figure("make check: both", "seconds", both, f"{sizes}, 336,776 flights", MINUTES),
        ]
    return figures


def _streamproof(*words: str) -> None:
    command = [sys.executable, "-m", "streamproof.properties.cli.entry", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise StreamproofError(f"streamproof {shlex.join(words)} exited {done.returncode}, not 0:\n{last}")
