"""Jobs whose source is changed in tests of mutants, and the changes."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamproof import Input
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.mutations.source import JobSource

TOTALS = '''
from pyspark.sql import functions as F

LIMIT = 100
UNUSED = 7


def totals(clicks):
    """Totals by the "1 hour"."""
    hours = F.window("at", "1 hour")
    large = clicks.where(F.col("amount") > LIMIT)
    groups = large.withWatermark("at", "10 minutes").groupBy("user", hours)
    return groups.agg(F.sum("amount").alias("total"))


def other(clicks):
    return clicks.where("amount > 3")
'''
CLICKS = Input(
    "user string, at timestamp, amount int, other int", key="user", name="clicks", values={"amount": [1, 100, 101, 200]}
)


def job_of(folder: Path, code: str, name: str) -> Callable[..., Any]:
    """Return a function of a file that is imported, as other programs do."""
    path = folder / "job_under_test.py"
    path.write_text(textwrap.dedent(code))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    found: Callable[..., Any] = getattr(loaded, name)
    return found


def changes(folder: Path, code: str, name: str = "job") -> list[str]:
    sources = [given.source for given in resolve_all([CLICKS], 0)]
    return [str(mutant).partition(": ")[2] for mutant in JobSource.of(job_of(folder, code, name)).mutants(sources)]
