"""The law *replay*: a batch that Spark repeats after a crash between output and commit emits the same rows again.

For jobs, the law is called *a crash*: a job's query also dies before a batch's output, and a sink's query within the
output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ...outcomes.outcomes import Difference
from ...witnesses.job.running import REPEATED, RESTORED, QueryOutput
from ...witnesses.run_options import BEFORE, BETWEEN, MIDDLE, OF_SINKS, WITHIN, Crash, Moment, RunOptions, crash_of
from ...witnesses.spark.answers import Answers
from ..base import Comparison
from ..runs import Sample
from ..variation import Variation
from .reruns import RerunLaw, numbered

ONCE, TWICE = "changes in a replayed batch", "changes in a batch replayed twice"
CRASHES = 6
"""The number of a job's histories that run with all crashes if each history runs alone, because such a query is
slow.
"""


class Replay(RerunLaw):
    """The law *replay*: the repeated batch may emit rows of different keys in another order, but each key's rows in the
    same order.

    The law also compares the output of the batches after the crash.
    """

    name, of_jobs = "replay", "a crash"
    says = "a batch replayed after a crash between output and commit changes nothing downstream"
    usual = (RunOptions(crash_in=(Crash(2),) * 2),)

    def draw_ways(self, pool: int, batches: int, generator: Random) -> Sequence[RunOptions]:
        """Crash the query of every second pool twice in a row; in the first of these pools, records arrive after the
        crashes.
        """
        if pool % 2 == 0:
            return ()
        batch = generator.randint(1, batches - 2) if pool == 1 else generator.randrange(batches)
        return (RunOptions(crash_in=(Crash(batch),) * 2),)

    def goals(self, sample: Sample) -> Sequence[str]:
        return [ONCE, TWICE]

    def covered(self, sample: Sample, again: Answers, way: RunOptions) -> Counter[str]:
        found: Counter[str] = Counter()
        for goal, least in ((ONCE, 1), (TWICE, 2)):
            crashed = {at.batch for at in way.crash_in if way.crash_in.count(at) >= least}
            if again.replayed >= least:
                found[goal] = sum(any(entry.batch in crashed for entry in one.entries) for one in again.outcomes)
        return found

    def names(self, plain: Answers, way: RunOptions) -> tuple[str, str]:
        return "Spark without a crash", f"Spark with a crash in {numbered([at.batch for at in way.crash_in])}"

    def compare(self, plain: Answers, again: Answers, way: RunOptions) -> list[Comparison]:
        """Compare the first and the second output of a crashed batch, then the final outcomes."""
        crashed = {at.batch for at in way.crash_in}
        batch = min(crashed) if len(crashed) == 1 else None
        found = [
            [Difference(batch, "written first", "written otherwise", key, after.history) for key in sorted(keys)]
            for after, keys in zip(again.outcomes, again.rewritten, strict=False)
        ]
        compared = super().compare(plain, again, way)
        return [replace(one, differences=own or one.differences) for one, own in zip(compared, found, strict=False)]

    def everywhere(self, batches: int) -> RunOptions:
        return RunOptions(crash_in=tuple(Crash(batch) for batch in range(batches) for _ in range(2)))

    def draw(self, run: RunOptions, seed: int, batches: int) -> Sequence[Crash]:
        return run.crashes_everywhere(batches)

    def variation(self, run: RunOptions, given: Sequence[Sequence[Any]]) -> Variation:
        """Return a variation in which the query dies before, within or after a batch's output, and restarts."""
        crashes = [at for at in map(crash_of, given) if at is not None]
        if len(crashes) < len(given):
            raise ValueError(given)
        where = "in each batch" if len(crashes) > 1 else f"in {crashes[0]}"

        def parts(output: QueryOutput) -> list[Variation]:
            # Try a single crash for each moment, in a batch whose repeated output contained rows.
            happened: dict[Moment, list[Crash]] = {}
            for at, has_rows in output.crashed:
                if has_rows and at.moment != BEFORE:
                    happened.setdefault(at.moment, []).append(at)
            before = [at for at in crashes if at.moment == BEFORE]
            repeated, middle, within = (happened.get(moment, []) for moment in (BETWEEN, MIDDLE, WITHIN))
            some = [repeated, middle, within, before]
            if repeated == crashes:
                some = [[at] for at in crashes]
            elif crashes in (middle, within):
                some = [crashes[: len(crashes) // 2], crashes[len(crashes) // 2 :]]
            return [self.variation(run, part) for part in some if part and part != crashes]

        return Variation(
            replace(run, crash_in=tuple(crashes)),
            self.of_jobs,
            [at.to_json() for at in crashes],
            f"dying {where}, and started again",
            "without a crash",
            goals=(REPEATED, RESTORED),
            parts=parts if len(crashes) > 1 or (crashes[0].moment in OF_SINKS and not crashes[0].step) else None,
            share=lambda number: self.variation(run, crashes[number % CRASHES :: CRASHES] or crashes),
        )
