"""Shrinking of findings, with a mutated reference in place of Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, islice
from typing import cast

import pytest
from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.judging import REFERENCE, Finding, PlanJudge
from streamproof.properties.checking.fuzzing.scripts import script_of
from streamproof.properties.checking.fuzzing.shrinking import shrunk
from streamproof.properties.generators.plans.drawing import COLUMNS, CONDITIONS, Query, keep
from streamproof.properties.generators.plans.rows import draw_rows
from streamproof.reference.spark.expressions import column
from streamproof.reference.spark.plans import Deduplication, Filter, Project, Scan, WithWatermark, pruned


class PrunedAlways:
    """A judge whose Spark prunes event times."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def again(self, finding: Finding | None, case: PlanCase) -> Finding | None:
        self.asked.append(repr(case))
        wanted, found = case.expected(), case.expected(pruned(case.query.plan))
        return None if wanted == found else Finding(REFERENCE, case, None, wanted, found)


def findings() -> Iterator[Finding]:
    """Yield a finding of each seed in which the mutant differs."""
    within = Deduplication((WithWatermark((Scan("a", COLUMNS),), "ts", 5_000_000),), ("h", "k"))
    for seed in count():
        generator = random.Random(seed)
        plan = keep(Filter((keep(within, v=column("v")),), generator.choice(CONDITIONS)))
        query = Query(Project((plan,), (("h", column("h")), ("k", column("k")))))
        case = PlanCase(query, draw_rows(generator, query, 3).batches)
        if case.columns and (one := PrunedAlways().again(None, case)):
            yield one


FOUND = [*islice(findings(), 2)]


@pytest.mark.parametrize("finding", FOUND, ids=lambda finding: str(len(repr(finding.case.query.plan))))
def test_a_shrunk_finding_is_small_and_its_script_has_at_most_25_lines(finding: Finding) -> None:
    judge = PrunedAlways()
    smallest = shrunk(cast(PlanJudge, judge), finding)
    nodes = [*smallest.case.query.plan.walk()]
    rows = [row for batch in smallest.case.batches for rows in batch.values() for row in rows]
    assert len(smallest.case.histories) <= 1
    assert len(rows) <= 4
    assert len(nodes) <= 5 + 3 * sum(isinstance(node, Scan) for node in nodes)
    assert all(row["ts"] % 1_000_000 == 0 for row in rows)
    assert len(script_of(smallest).splitlines()) <= 25
    assert len({*judge.asked}) == len(judge.asked) <= 150


def test_a_candidate_that_raises_does_not_end_the_shrinking() -> None:
    class Raising(PrunedAlways):
        def again(self, finding: Finding | None, case: PlanCase) -> Finding | None:
            if not any(isinstance(node, Deduplication) and "k" in node.by for node in case.query.plan.walk()):
                raise KeyError("k")
            return super().again(finding, case)

    finding = FOUND[0]
    smallest = shrunk(cast(PlanJudge, Raising()), finding)
    assert len(repr(smallest.case)) < len(repr(finding.case))
