"""Jobs that run without Spark: functions from the rows of each batch to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from streamproof import Input
from streamproof.properties.checking.jobs.arguments import CheckOptions
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.laws.expected.oracle import Oracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED, Declared, QueryOutput, Runner
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions

Batches = list[list[dict[str, Any]]]
CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
RUN = RunOptions(empty_batches=True, seconds=60)


@dataclass(frozen=True)
class MemoryRunner(Runner):
    """Runs the job, which is a function from batches of rows to batches of rows, in this process."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared()

    def run(
        self,
        batches: Sequence[Mapping[str, pa.Table]],
        clock: Sequence[int] = (),
        run: RunOptions = PLAIN,
        times_ms: Sequence[int] = (),
    ) -> QueryOutput:
        job: Any = self.job
        rows = [[row for table in batch.values() for row in table.to_pylist()] for batch in batches]
        return QueryOutput(
            job(rows), covered=frozenset({REPEATED, RESTORED}), crashed=[(at, True) for at in run.crash_in]
        )

    def as_batch(self, tables: Mapping[str, pa.Table], run: RunOptions = PLAIN) -> list[dict[str, Any]]:
        return [row for batch in self.run([tables]).batches for row in map(dict, batch)]


def copy(batches: Batches) -> Batches:
    return batches


def options(
    job: Callable[[Batches], Batches],
    runner: Callable[..., Runner] = MemoryRunner,
    clicks: Input = CLICKS,
    run: RunOptions = RUN,
    **more: Any,
) -> CheckOptions:
    resolved = resolve_all([clicks], 0)
    return CheckOptions(runner=runner(job, [given.source for given in resolved]), inputs=resolved, run=run, **more)


def checked(job: Callable[[Batches], Batches], oracle: Oracle) -> Any:
    return JobCheck(options(job), oracle, Variation(RUN)).check(40)
