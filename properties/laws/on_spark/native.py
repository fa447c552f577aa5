"""The law *native*: The law *native*: for the records that Spark's own operator accepts, the operator emits the same
output as the reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ....reference.core.history import History
from ....reference.core.play import play
from ....reference.core.records import Change
from ...generators.cohorts import Cohort
from ...generators.coverage import count_goals_met, coverage_goals
from ...outcomes.outcomes import Outcome, differences
from ...registration.bindings import Native as NativeBinding
from ...registration.registration import Registration, registration_of
from ...witnesses.run_options import PLAIN
from ...witnesses.spark.witness import NativeSparkWitness, QueryWitness
from ..base import REFERENCE, BrokenCase, Comparison, Law, LawResult, violations
from ..runs import Kind, Run, Sample


class NativeLaw(Law):
    """Compares the ordered changes of each key if the result is a table, and the unordered rows of each batch if it is
    a stream.
    """

    name = "native"
    between = ("reference", "spark-native")
    kinds = (Kind.NATIVE,)
    needs = "native"
    reason = "Spark has no such operator of its own"

    def sentence(self, registration: Registration) -> str:
        return f"Spark's own {registration.native.sentence}" if registration.native else ""

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals of the profile; shared queries have no histories with null keys."""
        if sample.more.without_late_data:
            return ()
        goals = [*coverage_goals(sample.registration, sample.definition), *native_of(sample.registration).goals]
        return sample.goals([goal for goal in goals if "null key" not in goal])

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each history of a run of Spark's own operator."""
        result.judged += len(run.histories)
        met = count_goals_met(run.histories, run.played)
        met.update(goal for history in run.histories for goal in native_of(run.sample.registration).met(history))
        result.covered.update(run.sample.cover(met))
        yield from violations(run.histories, map(compared, run.histories, run.outcomes))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run the histories again on Spark's own operator; the law ignores the witness, because Spark's operator has no
        mutants.
        """
        outcomes, _ = NativeSparkWitness(settings_of(cohort.operator, cohort.options)).run(cohort, PLAIN)
        return list(map(compared, cohort.histories, outcomes))


def native_of(registration: Registration) -> NativeBinding:
    """Return the binding of Spark's own operator, if Spark has such an operator."""
    assert registration.native is not None
    return registration.native


def settings_of(operator: str, options: Any) -> dict[str, str]:
    """Return Spark's settings for the profile of Spark's own operator that has these options."""
    profiles = native_of(registration_of(operator)).profiles.values()
    return next((dict(one.settings) for one in profiles if dict(one.options) == dict(options)), {})


def compared(history: History, outcome: Outcome) -> Comparison:
    """Compare the output of Spark's own operator with the reference's outcome of the records that Spark accepts."""
    accepted = native_of(registration_of(history.operator)).accepted(history)
    expected = Outcome.of_play(history.name, play(accepted))
    ours, theirs = (_in_order(one) if outcome.is_stream else one for one in (expected, outcome))
    return Comparison((REFERENCE, expected), ("Spark's own operator", outcome), differences(ours, theirs))


def _in_order(outcome: Outcome) -> Outcome:
    return replace(outcome, entries=sorted(outcome.entries, key=_by_timestamp))


def _by_timestamp(entry: Any) -> tuple[Any, ...]:
    output = entry.output
    return (output.timestamp, json.dumps(output.value, sort_keys=True)) if isinstance(output, Change) else (-1, "")
