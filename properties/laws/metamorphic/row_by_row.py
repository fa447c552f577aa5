"""The law *rows one at a time*: the result is the same if a function with state receives each row in a separate
call.
"""

from __future__ import annotations

from dataclasses import replace

from ...witnesses.run_options import RunOptions
from ..variation import Invariant, Variation


class RowsOneAtATime(Invariant):
    """Compares a default run with a run that calls functions with state once for each row of a batch, as Spark's
    real-time mode does.
    """

    of_jobs = "rows one at a time"
    given = "each in a separate call"

    def variation(self, run: RunOptions, given: str) -> Variation:
        """Return a variation that passes each row of a batch to functions with state in a separate call."""
        return Variation(
            replace(run, row_by_row=True),
            self.of_jobs,
            given,
            "with each row of a batch in a separate call",
            "with a batch's rows in one call",
            "end",
            remedy=f'If the job may depend on which rows come together, leave this out: without=["{self.of_jobs}"].',
        )
