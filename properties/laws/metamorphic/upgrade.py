"""The law *an upgrade*: a job continues from its earlier version's checkpoint as if it had run from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ...witnesses.job.running import RESTORED, QueryOutput
from ...witnesses.run_options import RunOptions
from ..variation import Invariant, Variation

CUTS = 3
"""The number of batches after which a job is upgraded, each upgrade in its own query."""


class Upgrade(Invariant):
    """Compares a job that continues from its earlier version's checkpoint with a run of the job from the start."""

    of_jobs = "an upgrade"

    def draw(self, run: RunOptions, seed: int, batches: int) -> Sequence[int]:
        """Draw the batches after which the job is upgraded, in order; at least two batches follow each upgrade.

        Each drawn batch is an argument of `variation`.
        """
        return sorted(Random(seed).sample(range(batches - 1), min(CUTS, batches - 1)))

    def variation(self, run: RunOptions, given: Any) -> Variation:
        """Return a variation that runs the earlier version up to a batch, and then the new version."""
        if type(given) is not int or given < 0:
            raise ValueError(given)

        def parts(output: QueryOutput) -> list[Variation]:
            return [self.variation(run, sooner) for sooner in range(given)]

        return Variation(
            replace(run, stop_after=(given,)),
            self.of_jobs,
            given,
            f"going on from the checkpoint that its earlier version left after batch {given}",
            "run from the start",
            goals=(RESTORED,),
            parts=parts if given else None,
        )
