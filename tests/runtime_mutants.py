"""Mutants of what a logic doesn't decide: the runtime, columns, state types. Each is a patch of the source.

A mutant is planted in a copy of the tree, which is imported instead of the tree itself, by Spark's Python workers too.
Those that concern different operators may be planted together, for a query costs seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("properties", "reference", "spark_impl", "specs", "docs")
PATCHED = "spark_impl"
"""The one folder that is copied; the others are links."""
TEXTS, BIGINT, BATCH = 0, 1, 2
"""The layouts of columns by number."""


@dataclass(frozen=True)
class Patch:
    """A change of one file: a text that stands in it once, and what takes its place."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class RuntimeMutant:
    """A mutant, and where it shows.

    Attributes:
        name: What it does.
        patches: What is changed.
        operator: The operator that is asked.
        layouts: In which layouts of columns; none says all.
    """

    name: str
    patches: tuple[Patch, ...]
    operator: str
    layouts: tuple[int, ...] = (TEXTS,)


def planted(mutants: Sequence[RuntimeMutant], folder: Path, root: Path = ROOT) -> Path:
    """Make a tree with these mutants in a folder; return what PYTHONPATH must name.

    Raises:
        LookupError: The source of a mutant has changed: its text stands there no more, or more than once.
    """
    package = folder / "streamproof"
    package.mkdir(parents=True)
    for one in (root / "streamproof").iterdir():
        if one.suffix == ".py" or one.name == "py.typed":
            (package / one.name).symlink_to(one)
    for name in PACKAGES:
        if name == PATCHED:
            shutil.copytree(root / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (package / name).symlink_to(root / name)
    for mutant in mutants:
        for patch in mutant.patches:
            file = package / PATCHED / patch.file
            text = file.read_text(encoding="utf-8")
            if text.count(patch.old) != 1:
                raise LookupError(f"{mutant.name}: {patch.old!r} stands {text.count(patch.old)} times in {patch.file}")
            file.write_text(text.replace(patch.old, patch.new), encoding="utf-8")
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return the environment in which the planted tree is imported."""
    path = os.pathsep.join([str(folder), str(ROOT / "tests")])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def violated(mutants: Sequence[RuntimeMutant], folder: Path) -> dict[str, int]:
    """Return for each mutant in how many of the histories that a check draws the law *columns* is violated.

    They are planted together, so no two of them may be of one operator, or of what operators share.
    """
    operators = [mutant.operator for mutant in mutants]
    if len(set(operators)) < len(operators):
        raise ValueError(f"mutants of one operator can't be told apart: {operators}")
    asked = [f"{mutant.operator}:{','.join(map(str, mutant.layouts))}" for mutant in mutants]
    command = [sys.executable, "-m", "typed_samples", *asked]
    done = subprocess.run(command, env=environment(planted(mutants, folder)), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {mutant.name: found[mutant.operator] for mutant in mutants}


def checked(mutants: Sequence[RuntimeMutant], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `streamproof check` of the mutants' operators in a tree with these mutants."""
    command = [sys.executable, "-m", "streamproof", "check", *dict.fromkeys(one.operator for one in mutants)]
    findings = ("--findings", str(folder / "counterexamples"))
    env = environment(planted(mutants, folder / "tree"))
    return subprocess.run([*command, *findings, *options], env=env, capture_output=True, text=True, cwd=folder)


def _times_of_32_bits(file: str, *texts: str) -> tuple[Patch, ...]:
    return tuple(Patch(file, text, text.replace('"long"', '"integer"')) for text in texts)


KEYED = "runtime/keyed.py"
STATE_TYPES = (
    RuntimeMutant(
        "the times of sessions have 32 bits",
        _times_of_32_bits("session_windows.py", '.add("start", "long").add("end", "long").add("value"'),
        "session_windows",
    ),
    RuntimeMutant(
        "the times of windows have 32 bits",
        _times_of_32_bits("window_aggregate.py", 'T.StructType().add("start", "long").add("end", "long")'),
        "window_aggregate",
    ),
    RuntimeMutant(
        "the times of buffered records have 32 bits",
        _times_of_32_bits("stream_stream_join.py", 'T.StructType().add("timestamp", "long")'),
        "stream_stream_join",
    ),
    RuntimeMutant(
        "the times of windowed tables have 32 bits",
        _times_of_32_bits(
            "windowed_table.py", 'T.StructType().add("start", "long").add("value", result).add("timestamp", "long")'
        ),
        "windowed_table",
    ),
)
"""Planted together."""
RUNTIME = (
    RuntimeMutant(
        "emitted windows have 32 bits",
        _times_of_32_bits(KEYED, 'T.StructType().add("start", "long").add("end", "long").add("value", value_type)'),
        "session_windows",
    ),
    RuntimeMutant(
        "the clock and timers have 32 bits",
        _times_of_32_bits(KEYED, '.add("emitted", "long").add("timer", "long")'),
        "session_windows",  # a timer that is due too early does no harm; sessions that are emitted again do
    ),
    RuntimeMutant(
        "a null key moves the clock",
        (Patch(KEYED, 'F.when(keyed_rows, one.time).alias("clock")', 'one.time.alias("clock")'),),
        "session_windows",
    ),
    RuntimeMutant(
        "sums of fractions are whole",
        (Patch("runtime/columns.py", "T.LongType() if whole else T.DoubleType()", "T.LongType()"),),
        "session_windows",
    ),
    RuntimeMutant(
        "averages of fractions are of whole sums",
        (Patch("runtime/columns.py", '.add("sum", "long" if whole else "double")', '.add("sum", "long")'),),
        "window_aggregate",
    ),
    RuntimeMutant(
        "tombstones are updates",
        (
            Patch(
                KEYED,
                '        "emitted.change",\n',
                '        F.when(F.col("emitted.change") == DROPPED, DROPPED).otherwise(UPDATE).alias("change"),\n',
            ),
        ),
        "table_table_join",
    ),
    RuntimeMutant(
        "the cause of a change is lost",
        (
            Patch(
                KEYED,
                '        "emitted.cause",\n        "ordinal",\n',
                '        F.when(F.col("emitted.change") == DROPPED, F.col("emitted.cause")).alias("cause"),\n'
                '        "ordinal",\n',
            ),
        ),
        "table_table_join",
    ),
)
"""Of what all operators share: each is planted alone."""
MUTANTS = (*STATE_TYPES, *RUNTIME)
TOGETHER: tuple[tuple[RuntimeMutant, ...], ...] = (STATE_TYPES, *((mutant,) for mutant in RUNTIME))
"""What is planted in one tree each."""
