"""The law *an upgrade*: from its earlier version's checkpoint, a job continues as if it had run from the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ...witnesses.job.running import RESTORED, QueryOutput
from ...witnesses.run_options import RunOptions
from ..variation import Invariant, Variation

CUTS = 3
"""The number of batches after which a job is upgraded, each in a separate query."""


class Upgrade(Invariant):
    """The earlier version runs until a batch, and the job continues from its checkpoint."""

    of_jobs = "an upgrade"

    def draw(self, run: RunOptions, seed: int, batches: int) -> Sequence[int]:
        """Draw the batches after which the job takes over, in order; at least two batches follow each.

        Each batch is an argument of `variation`.
        """
        return sorted(Random(seed).sample(range(batches - 1), min(CUTS, batches - 1)))

    def variation(self, run: RunOptions, given: Any) -> Variation:
        """Run the earlier version up to a batch, and then the job."""
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
