"""What the laws share that run histories again, in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ...generators.cohorts import Cohort, cohorts_of
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.witness import QueryWitness
from ..base import OWN, Comparison, Law
from ..case import Case
from ..runs import Kind, Sample


class RerunLaw(Law):
    """A law that is asked of a part of the histories, run again.

    Attributes:
        usual: How the first sample of an operator that shares no queries is run again.
    """

    usual: ClassVar[Sequence[RunOptions]]

    def ways(self, sample: Sample) -> Sequence[RunOptions]:
        """Return how the histories of a sample are run again; none where the law isn't asked of it."""
        if sample.kind is not Kind.RANDOM:
            return ()
        return self.usual if sample.is_first and not sample.is_pooled else sample.ways.get(self.name, ())

    def is_asked_of(self, sample: Sample) -> bool:
        return bool(self.ways(sample))

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Ask the law again about each case, in its own way; as `Law.recheck`."""
        comparisons: dict[int, Comparison] = {}
        for way in dict.fromkeys(case.way for case in cases):
            own = [index for index, case in enumerate(cases) if case.way == way]
            for cohort, indexes in cohorts_of([cases[index].history for index in own]):
                found = self.recheck_in(cohort, witness, way)
                comparisons |= zip((own[index] for index in indexes), found, strict=True)
        return [comparisons[index] for index in range(len(cases))]

    def recheck_in(self, cohort: Cohort, witness: QueryWitness, way: RunOptions | None) -> list[Comparison]:
        """Ask the law again about each history of a cohort; with None in the law's own ways."""
        raise NotImplementedError


def numbered(batches: Sequence[int]) -> str:
    """Return what reports call batches: `batch 1`, `batches 1 and 2`, `batch 2 (twice)`."""
    names = [f"{batch}{' (twice)' * (batches.count(batch) > 1)}" for batch in dict.fromkeys(batches)]
    return f"batch{'es' * (len(names) > 1)} {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
