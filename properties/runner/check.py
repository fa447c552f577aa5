"""The gate: draws samples, runs them, lets the laws judge, and saves a counterexample of each law that is broken.

One loop serves the check of a reference, that of an operator on Spark, and mutation testing: what differs is which
samples are drawn, which laws are asked, and whose logic runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...reference.core.errors import MissingTool
from ..generators.coverage import without_neighbours
from ..laws.all import OF_REFERENCE, ON_SPARK, Subject, asked_of
from ..laws.base import OWN, Law, LawResult, Violation
from ..laws.case import Case
from ..laws.runs import ReferenceRun, Run, Sample, StagedRun, TypedRun
from ..registration.registration import Registration, registration_of
from ..witnesses.spark.witness import QueryWitness
from .confirm import confirmed
from .counterexample import NOT_RECHECKED, Counterexample, Progress, Store, verdict_sentence
from .replays import replay
from .report import Report
from .running import AnyRun, run_sample
from .samples import samples_of_reference, samples_on_spark


def check(
    operator: str,
    store: Store,
    histories: int = 2000,
    seed: int = 0,
    progress: Progress = lambda step: None,
    witness: QueryWitness = OWN,
    report: Report | None = None,
) -> Report:
    """Check an operator's Spark implementation by every law.

    Args:
        operator: The operator's name.
        store: Where counterexamples are saved; those that are there already are replayed first.
        histories: How many histories to draw; each law judges a share of them.
        seed: What they are drawn from.
        progress: Is given the name of each step before it starts.
        witness: What runs: the operator's own implementation, or one with a mutated logic.
        report: Filled as the check goes, so that an interrupted one reports what it had; made when not given.

    Raises:
        BadInput: There is no such operator, or a saved counterexample can't be read.
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    registration = registration_of(operator)
    report = report or Report(operator, [], seed)
    samples = samples_on_spark(registration, histories, seed)
    Check(registration, report, ON_SPARK, "spark", store, progress, witness).run(samples)
    return report


def check_reference(
    operator: str,
    store: Store,
    histories: int = 1000,
    seed: int = 0,
    progress: Progress = lambda step: None,
    report: Report | None = None,
) -> Report:
    """Check the reference of an operator by every law that needs no Spark.

    Args:
        operator: The operator's name.
        store: Where counterexamples are saved; those that are there already are replayed first.
        histories: How many histories to draw, over all of its profiles.
        seed: What they are drawn from.
        progress: Is given the name of each step before it starts.
        report: Filled as the check goes, so that an interrupted one reports what it had; made when not given.

    Raises:
        BadInput: There is no such operator, or a saved counterexample can't be read or one can't be written.
    """
    registration = registration_of(operator)
    report = report or Report(operator, [], seed, subject="the reference")
    samples = samples_of_reference(registration, histories, seed)
    Check(registration, report, OF_REFERENCE, "reference", store, progress, OWN).run(samples)
    return report


@dataclass
class Check:
    """One check: an operator, its laws, where counterexamples are saved, and what runs on Spark."""

    registration: Registration
    report: Report
    laws: Sequence[Law]
    subject: Subject
    store: Store
    progress: Progress
    witness: QueryWitness

    def run(self, samples: Iterable[Sample]) -> None:
        """Ask every law, about the saved counterexamples first."""
        laws, self.report.not_checked = asked_of(self.registration, self.laws)
        self.report.results = [LawResult(law, law.sentence(self.registration)) for law in laws]
        started = time.monotonic()
        try:
            self.replay_saved()
            for sample in samples:
                self.judge(sample)
        except BaseException:
            # What was begun may have judged only a part of its histories.
            for result in self.report.results:
                result.unfinished = True
            raise
        finally:
            self.report.seconds = time.monotonic() - started

    def replay_saved(self) -> None:
        """Ask about the saved counterexamples of such a check again, each by its law; that covers no goal."""
        saved = self.store.saved(self.report.operator, self.subject, self.witness.mutant)
        laws = {result.law.name: result.law for result in self.report.results}
        for one in replay(saved, laws, self.subject, self.progress, self.witness):
            result = self.report.result(one.law)
            result.judged += 1
            self.report.histories += 1
            if one.comparison.differences:
                violation = Violation(Case(one.history, one.original), one.comparison)
                result.violations.append(violation)
                self.save(self.counterexample(result, violation, "", one.seed))

    def judge(self, sample: Sample) -> None:
        """Run a sample, and let each law judge it that is asked of it."""
        results = [one for one in self.report.results if not one.skipped and one.law.is_asked_of(sample)]
        if not results:
            return
        self.report.covered.update(without_neighbours(sample.covered))
        laws = [result.law for result in results]
        for run in run_sample(sample, laws, self.report.seed, [self.witness], lambda _: self.witness, self.progress):
            self.report.histories += len(run.histories)
            if isinstance(run, ReferenceRun):
                self.report.covered.update(without_neighbours(run.covered))
            for result in results:
                result.goals = tuple(dict.fromkeys((*result.goals, *result.law.goals(sample))))
                self.progress(f"{result.law.name}: {len(run.histories)} histories, {sample.profile}")
                self.ask(result, run)
            staged = 3 * isinstance(run, StagedRun)
            self.report.queries += run.whole.queries if isinstance(run, Run) else staged + isinstance(run, TypedRun)

    def ask(self, result: LawResult, run: AnyRun) -> None:
        """Let a law judge a run; of its violations the first becomes a counterexample."""
        try:
            for violation in result.law.judge(run, result):  # type: ignore[arg-type]
                result.violations.append(violation)
                if len(result.violations) == 1:
                    self.violated(result, violation)
        except MissingTool as missing:
            if self.subject != "reference":
                raise
            result.skipped = f"skipped: {missing}"

    def violated(self, result: LawResult, violation: Violation) -> None:
        """Save a law's first violation, ask about it again alone, and replace it by the smallest one.

        A law that a wrong changelog breaks too makes no counterexample beside that of the changelog.
        """
        law = result.law
        if law.follows_changelog and any(one.law.name == "changelog" and one.violations for one in self.report.results):
            return
        written = self.save(self.counterexample(result, violation, NOT_RECHECKED))
        self.progress(f"asking {law.name!r} again about its first violation, alone")
        smallest, unconfirmed = confirmed(law, violation, self.witness, self.asked)
        again = self.counterexample(result, smallest, unconfirmed)
        self.report.found.remove(written)
        if self.save(again)[1] != written[1]:
            self.store.forget(written[1])

    def asked(self, histories: int) -> None:
        """Count what was asked again."""
        self.report.queries += self.subject == "spark"
        self.report.histories += histories

    def counterexample(
        self, result: LawResult, violation: Violation, unconfirmed: str, seed: int | None = None
    ) -> Counterexample:
        """Make a counterexample of a violation; `unconfirmed` says why it isn't confirmed, if it isn't."""
        case, comparison = violation.case, violation.comparison
        return Counterexample(
            result.law.name,
            verdict_sentence(result.sentence, comparison),
            case.history,
            comparison.expected,
            comparison.actual,
            comparison.differences,
            not unconfirmed,
            self.report.seed if seed is None else seed,
            subject=self.subject,
            mutant=self.witness.mutant,
            original=case.original,
            unconfirmed=unconfirmed,
        )

    def save(self, counterexample: Counterexample) -> tuple[Counterexample, Path]:
        """Write a counterexample, and note where."""
        self.report.found.append((counterexample, self.store.save(counterexample)))
        return self.report.found[-1]
