"""What is compared of an upgraded job: what comes after the upgrade, or all of it where batches aren't compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from streamproof import Sink
from streamproof.properties.generators.columns.model import Comparing, Expected
from streamproof.properties.laws.expected.oracles import JobOracle
from streamproof.properties.laws.expected.upgrading import UpgradeJudge
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.job.witness import RowsWitness
from streamproof.properties.witnesses.run_options import Mode

A, B, C, D = ({"n": number} for number in range(4))
EXPECTED = [[A], [B], [C], [D]]


@pytest.mark.parametrize(
    ("emitted", "stop", "mode", "comparing", "differs", "moved"),
    [
        ([[A], [B], [C], [D]], 1, "append", "batches", False, 0),
        ([[D], [], [C], [D]], 1, "append", "batches", False, 0),  # the earlier version's rows are its own
        ([[A], [B], [C], []], 1, "append", "batches", True, 0),
        ([[A], [], [B, C], [D]], 1, "append", "batches", False, 1),  # all the same, in other batches
        ([[A], [B, C], [], [D]], 1, "append", "batches", False, 1),
        ([[A], [], [B, C], [D]], 1, "update", "batches", True, 0),
        ([[A], [], [B, C], [D]], 2, "append", "batches", False, 0),
        ([[A], [], [], [D]], 2, "append", "batches", False, 0),
        ([[A], [], [C], [D]], 0, "append", "batches", True, 0),
        ([[A], [], [C], [D]], 9, "append", "batches", False, 0),
        ([[D], [C], [B], [A]], 1, "append", "end", False, 0),
        ([[D], [C], [B], []], 1, "append", "end", True, 0),
        ([[D], [C], [B], [A]], 1, "append", "cuts", False, 0),
        ([[A], [], [C], [D]], None, "append", "batches", True, 0),
    ],
)
@pytest.mark.parametrize("from_start", [True, False])
def test_rows_after_the_upgrade_are_compared_and_may_move_in_append_mode(
    emitted: Any, stop: int | None, mode: Mode, comparing: Comparing, differs: bool, moved: int, from_start: bool
) -> None:
    given = options(copy)
    run = replace(RUN, mode=mode, stop_after=() if stop is None else (stop,))
    witness = RowsWitness(given.runner, given.inputs)
    judge = UpgradeJudge(witness, JobOracle(copy), Declared(), from_start=from_start)
    rows = EXPECTED if comparing == "batches" else [[A, B, C, D]] * (4 if comparing == "cuts" else 1)
    ((expected,), (came,)) = judge.side_by_side([Expected(comparing, rows)], [emitted], Variation(run))
    found = judge.difference(expected, came, Variation(run)) is not None
    assert (found, judge.moved) == ((differs, moved) if from_start else (differs or moved > 0, 0))
    judge.side_by_side([Expected(comparing, rows)] * 2, [emitted] * 2, Variation(run))
    assert judge.moved == 3 * moved * from_start


def test_a_sink_is_compared_at_the_end_whatever_the_upgrade_is_after() -> None:
    given = options(copy)
    runner = MemoryRunner(Sink(copy, copy), given.runner.sources)
    judge = UpgradeJudge(RowsWitness(runner, given.inputs), JobOracle(copy), Declared())
    variation = Variation(replace(RUN, stop_after=(1,)))
    ((expected,), (came,)) = judge.side_by_side([Expected("batches", EXPECTED)], [[[D, C, B, A]]], variation)
    assert judge.difference(expected, came, variation) is None
    assert judge.difference(expected, [[D, C, B]], variation) is not None
