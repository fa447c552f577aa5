"""How counterexamples of jobs are saved, read, kept while they are shrunk, and forgotten."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_jobs import JobStore, counterexample_of, saved_histories
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.run_options import RunOptions

CLICKS = resolve(Input("user string, at timestamp, amount decimal(5,2) not null", key="user")).source
PLAIN = RunOptions()


def counterexample(of: JobHistory, **more: Any) -> Counterexample[JobHistory]:
    given: dict[str, Any] = {"difference": Difference(0, [{"n": 1}], []), "run": PLAIN, "seed": 7, **more}
    return counterexample_of(
        job="visits (shop.py:3)",
        oracle="the SQL statement",
        history=of,
        sources=[CLICKS],
        expected=Expected("batches", [[{"n": 1}]]),
        emitted=[[]],
        unique=None,
        **given,
    )


def saved(folder: Path) -> list[JobHistory]:
    return saved_histories((), folder, [CLICKS])


def metadata(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "counterexample.json").read_text(encoding="utf-8"))
    return read


def run(script: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", script, os.fspath(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parent)},
    ).stdout


def die_at(moment: int) -> None:
    """Kill this process by SIGKILL before the file operation of that number, counted from 1."""
    left = moment

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event.startswith(("os.", "shutil.", "tempfile.", "open", "fcntl.")):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def history(rows: int, **more: Any) -> JobHistory:
    values = {"at": datetime(2024, 1, 15, 12, tzinfo=UTC), "amount": Decimal("1.00")}
    return JobHistory((tuple(Arrival("events", {"user": f"{row}", **values}) for row in range(rows)),), **more)


def store_in(folder: Path | None, seed: int = 7) -> JobStore:
    return JobStore(folder, [CLICKS], job="visits (shop.py:3)", oracle="the SQL statement", seed=seed)
