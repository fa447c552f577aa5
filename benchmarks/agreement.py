"""Counts on how many of 10,000 random histories each operator on Spark disagrees with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.properties.cohorts import one_cohort
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.examinations import examine
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import ON_SPARK
from streamproof.reference.errors import StreamproofError

from .figures import Figure, Setting, Target, figure

LARGEST_COHORT = 5_000
FIRST_SEED = 1
"""Not the seed of the gate: these are other histories."""


def run(setting: Setting) -> list[Figure]:
    """Count, operator by operator; the histories go evenly to its definitions, and each round draws others."""
    count, rounds = setting.size(10_000, 60), setting.times(1)
    figures = []
    for operator in setting.among(ON_SPARK):
        shapes = SHAPES[operator]
        each = -(-count // len(shapes))
        runs, changes = [], 0
        for number in range(rounds):
            disagreements = 0
            for name, options in shapes.items():
                setting.progress(f"{operator}: round {number + 1} of {rounds}, {each:,} histories of {name!r}")
                found, told = examined(operator, options, each, FIRST_SEED + number, setting)
                if not told:
                    raise StreamproofError(f"{operator}, {name}: no history told anything, so nothing was compared")
                disagreements, changes = disagreements + found, changes + told
            runs.append(float(disagreements))
        sizes = (
            f"{each * len(shapes):,} histories of {len(shapes)} definitions, {changes // rounds:,} changes and drops"
        )
        figures.append(figure(f"{operator}: disagreements", "histories", runs, sizes, Target("at most", 0)))
    return figures


def examined(operator: str, options: Mapping[str, Any], count: int, seed: int, setting: Setting) -> tuple[int, int]:
    """Give how many histories broke a law, and how many changes and dropped records the reference told in all."""
    shape = Shape(options, SCHEDULE, operator=operator)
    histories = list(draw_histories(shape, count, seed=seed))
    broken: list[tuple[str, Any]] = []
    changes = 0
    for first in range(0, count, LARGEST_COHORT):
        examination = examine(one_cohort(histories[first : first + LARGEST_COHORT]))
        changes += sum(len(played.entries) for played in examination.played)
        broken += [next(iter(laws.items())) for laws in examination.broken if laws]
    if broken:
        law, (difference, *_) = broken[0]
        setting.progress(f"{operator} breaks the law {law!r} on {len(broken)} histories; the first: {difference}")
    return len(broken), changes
