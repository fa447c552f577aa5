"""The base class of laws that run histories a second time with other run options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import ClassVar

from ...generators.cohorts import Cohort, cohorts_of
from ...outcomes.outcomes import differences
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.answers import Answers
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, BrokenCase, Comparison, Law, LawResult, violations
from ..case import Case
from ..runs import Kind, Run, Sample
from ..variation import Invariant


class RerunLaw(Law, Invariant):
    """A law that compares the first run of some histories with a second run under other run options.

    Attributes:
        usual: The options of the second runs, for the first sample of an operator whose samples run in their own
            queries.
    """

    usual: ClassVar[Sequence[RunOptions]]

    def draw_ways(self, pool: int, batches: int, generator: Random) -> Sequence[RunOptions]:
        """Draw the options of a pool's second runs; by default, only the first pool has a second run, with the usual
        options.

        Args:
            pool: The index of the pool.
            batches: The number of batches of the pool, at least four; the last batch contains no records.
            generator: The random generator, shared with the laws before this law.
        """
        return () if pool else self.usual

    def ways(self, sample: Sample) -> Sequence[RunOptions]:
        """Return the options of a sample's second runs; return no options if the law doesn't judge the sample."""
        if sample.kind is not Kind.RANDOM:
            return ()
        return self.usual if sample.is_first and not sample.is_pooled else sample.ways.get(self.name, ())

    def is_asked_of(self, sample: Sample) -> bool:
        return bool(self.ways(sample))

    def covered(self, sample: Sample, again: Answers, way: RunOptions) -> Mapping[str, int]:
        """Count the histories that ran a second time and met each coverage goal."""
        raise NotImplementedError

    def names(self, plain: Answers, way: RunOptions) -> tuple[str, str]:
        """Return the names by which reports call the first run and the second run."""
        raise NotImplementedError

    def compare(self, plain: Answers, again: Answers, way: RunOptions) -> list[Comparison]:
        """Compare the outcomes of the first run and the second run; only the first histories ran a second time."""
        names = self.names(plain, way)
        return [
            Comparison((names[0], before), (names[1], after), differences(before, after))
            for before, after in zip(plain.outcomes, again.outcomes, strict=False)
        ]

    def everywhere(self, batches: int) -> RunOptions:
        """Return the options of a second run that varies everything it can, for a history without saved options."""
        raise NotImplementedError

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Compare the outcomes of histories that ran a second time."""
        for way in self.ways(run.sample):
            again = run.again(way)
            result.judged += len(again.outcomes)
            result.covered.update(self.covered(run.sample, again, way))
            yield from violations(run.histories, self.compare(run.answers, again, way), way)

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Judge the law again on each case, with the case's own options; arguments as in `Law.recheck`."""
        comparisons: dict[int, Comparison] = {}
        for way in dict.fromkeys(case.way for case in cases):
            own = [index for index, case in enumerate(cases) if case.way == way]
            for cohort, indexes in cohorts_of([cases[index].history for index in own]):
                found = self.recheck_in(cohort, witness, way)
                comparisons |= zip((own[index] for index in indexes), found, strict=True)
        return [comparisons[index] for index in range(len(cases))]

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Judge the law again on each history of a cohort, with a second run under the given options; None: under the
        law's own options.
        """
        count = len(cohort.schedule)
        way = self.everywhere(count) if way is None else way.clipped(count)
        return self.compare(witness.answers(cohort.histories), witness.answers(cohort.histories, way), way)


def numbered(batches: Sequence[int]) -> str:
    """Return the words for batches in reports: `batch 1`, `batches 1 and 2`, `batch 2 (twice)`."""
    names = [f"{batch}{' (twice)' * (batches.count(batch) > 1)}" for batch in dict.fromkeys(batches)]
    return f"batch{'es' * (len(names) > 1)} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
