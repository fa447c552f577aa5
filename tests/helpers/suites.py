"""Runs suites of pytest, each in a process of its own, forked off one that has imported what they all import."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        *("pytest", "hypothesis", "pyspark.sql.classic.dataframe"),
        *("streamproof.properties.checking.jobs.job", "streamproof.properties.report.making"),
    ]
)
SECONDS = 600


class Ran(NamedTuple):
    """How a suite ended, None where it didn't, and what it printed."""

    returncode: int | None
    stdout: str
    stderr: str


def run_suite(folder: Path, words: Sequence[str]) -> Ran:
    """Run `pytest` with words in a folder."""
    running = FORKED.Process(target=_run, args=(folder, [*words]))
    running.start()
    running.join(SECONDS)
    if running.exitcode is None:
        running.kill()
    return Ran(running.exitcode, *((folder / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")))


def _run(folder: Path, words: list[str]) -> NoReturn:
    os.chdir(folder)
    for number, name in enumerate(("stdout", "stderr"), 1):
        with open(name, "w", encoding="utf-8") as file:
            os.dup2(file.fileno(), number)
    sys.exit(pytest.main(words))
