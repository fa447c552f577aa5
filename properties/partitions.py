"""Examines a cohort once more with another number of shuffle partitions: the same must come out.

The keys of a partition share a task, a Python worker and a state store; another number of partitions mixes them anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .examinations import Examination
from .laws import same_entries
from .outcomes import Difference, Outcome
from .spark_witness import Plan, run_cohort

PARTITIONS = (1, 2, 7)
"""The numbers that are held against each other: one worker for all keys, and more partitions than cores or keys."""


def named_count(partitions: int) -> str:
    """How a number of partitions is told."""
    return f"{partitions} partition{'s' * (partitions != 1)}"


@dataclass
class Repartitioned:
    """A cohort that was run with another number of partitions than before.

    Attributes:
        partitions: In how many partitions its state lay.
        outcomes: The outcome of each history.
        broken: How each parts from the outcome of the run before.
    """

    partitions: int
    outcomes: list[Outcome]
    broken: list[list[Difference]]


def examine_partitions(plain: Examination, plan: Plan, partitions: int) -> Repartitioned:
    """Run a cohort again, with so many partitions, and judge each history against its run before."""
    outcomes, output = run_cohort(plain.cohort, replace(plan, partitions=partitions, read_state=False))
    broken = [same_entries(before, now) for before, now in zip(plain.outcomes, outcomes, strict=True)]
    return Repartitioned(output.partitions, outcomes, broken)
