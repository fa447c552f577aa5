"""Run a sample and the variants that laws add in one query, and yield the outcomes for each subject (an operator or a
mutant).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ..generators.cohorts import cohorts_of
from ..laws.base import Law
from ..laws.metamorphic.variants import VariantLaw
from ..laws.on_spark.columns import answers_in
from ..laws.on_spark.native import settings_of
from ..laws.on_spark.retention import with_retention
from ..laws.runs import CohortRun, Kind, ReferenceRun, Run, Sample, StagedRun, TypedRun, Variant
from ..witnesses.spark.witness import NativeSparkWitness, QueryWitness

OnStep: TypeAlias = Callable[[str], None]
"""The callback that receives the name of each step before the step starts."""
AnyRun: TypeAlias = Run | StagedRun | ReferenceRun | TypedRun

SHARE_WITH_VARIANTS, OF_MUTANTS = 6, 2
"""Shares of random histories that get variants: a sixth, or a half in mutation testing; all histories without late
data.
"""
SHARE_OF_REFERENCE = 5
"""The share of a profile's histories that get variants in a check of the reference: a fifth; all other histories do."""


def run_sample(
    sample: Sample, laws: Sequence[Law], seed: int, witnesses: Sequence[QueryWitness], progress: OnStep
) -> Iterator[AnyRun]:
    """Run a sample once for all subjects (operators or mutants), and yield the run of each subject.

    Args:
        sample: The sample.
        laws: The laws; a law that applies to the sample may add variants of the histories.
        seed: The seed of the drawn variants.
        witnesses: The witness for each subject, an operator or a mutant.
        progress: The callback that receives the name of each step before the step starts.
    """
    if sample.kind in (Kind.REFERENCE, Kind.DEFINITIONS, Kind.IN_TIME):
        yield ReferenceRun(sample, variants_of(sample, laws, seed, SHARE_OF_REFERENCE))
        return
    if sample.kind is Kind.SCHEDULED:
        yield from _staged(sample, witnesses, progress)
        return
    if sample.kind is Kind.COLUMNS:
        progress(f"{len(sample.histories)} histories in one query: {sample.profile}")
        for witness in witnesses:
            ((cohort, _),) = cohorts_of(sample.histories, null_keys_alone=False)
            yield TypedRun(sample, answers_in(sample.more.layout, cohort, witness))
        return
    whole = cohort_run(sample, laws, seed, witnesses)
    progress(f"{len(witnesses) * len(whole.each)} histories in one query: {sample.profile}, {sample.kind.value}")
    yield from whole.shares()


def cohort_run(sample: Sample, laws: Sequence[Law], seed: int, witnesses: Sequence[QueryWitness]) -> CohortRun:
    """Return a sample with the laws' variants, and the function that runs it; arguments as in `run_sample`."""
    variants = variants_of(sample, laws, seed, SHARE_WITH_VARIANTS if len(witnesses) == 1 else OF_MUTANTS)
    return CohortRun(sample, variants, [_of_kind(sample, one) for one in witnesses])


def variants_of(sample: Sample, laws: Sequence[Law], seed: int, share: int) -> list[Variant]:
    """Return variants of one in `share` histories of a random sample, and of all histories of other samples."""
    asked = [law for law in laws if isinstance(law, VariantLaw) and law.is_asked_of(sample)]
    varied = range(len(sample.histories))
    if sample.kind is Kind.RANDOM:
        varied = varied[: max(1, len(varied) // share)]
    elif sample.kind is Kind.REFERENCE:
        varied = varied[::share]
    return [variant for law in asked for variant in law.variants(sample, varied, seed)]


def _of_kind(sample: Sample, witness: QueryWitness) -> QueryWitness:
    """Return the function that runs a kind of sample."""
    name = sample.registration.name
    match sample.kind:
        case Kind.NATIVE:
            return NativeSparkWitness(settings_of(name, sample.options))
        case Kind.RETENTION:
            return with_retention(name, sample.options, sample.more, witness)
    return witness


def _staged(sample: Sample, witnesses: Sequence[QueryWitness], progress: OnStep) -> Iterator[StagedRun]:
    histories = [history for _ in witnesses for history in sample.histories]
    progress(f"{len(histories)} histories in three queries, message by message")
    own = all(witness.logic is None for witness in witnesses)
    logics = None if own else [witness.logic for witness in witnesses for _ in sample.histories]
    assert sample.registration.protocol is not None
    staged = sample.registration.protocol.staged()(histories, logics, strict=own)
    for subject in range(len(witnesses)):
        first = subject * len(sample.histories)
        yield StagedRun(sample, staged[first : first + len(sample.histories)])
