"""Creates, confirms and saves the counterexamples of a check, and replays saved counterexamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...reference.core.history import History
from ..counterexamples.counterexample import NOT_RECHECKED, Counterexample, verdict_sentence
from ..counterexamples.of_operators import FolderStore
from ..laws.all import Subject
from ..laws.base import BrokenCase, LawResult
from ..witnesses.spark.witness import QueryWitness
from .confirm import confirmed
from .replays import replay
from .report import Report
from .running import OnStep


@dataclass(frozen=True)
class CounterexampleMaker:
    """Creates counterexamples from violations of laws.

    Attributes:
        report: The report, to which rechecks add their number of histories and their counterexamples.
        subject: The implementation that the check runs: the reference, or the implementation on Spark.
        store: The store of counterexamples.
        progress: The callback that receives the name of each step before the step starts.
        witness: The witness that runs queries on Spark.
        seed: The seed of the round.
        found: The callback that receives the report after each new counterexample, and again after its recheck and
            shrinking.
    """

    report: Report
    subject: Subject
    store: FolderStore
    progress: OnStep
    witness: QueryWitness
    seed: int
    found: Callable[[Report], None]

    def replay(self) -> None:
        """Replay the saved counterexamples of this kind of check, each by the law that the counterexample broke;
        replays count for no coverage goal.
        """
        saved = self.store.saved(self.report.operator, self.subject, self.witness.mutant)
        laws = {result.law.name: result.law for result in self.report.results}
        for one, comparison in replay(saved, laws, self.subject, self.progress, self.witness):
            result = self.report.result(one.law)
            result.judged += 1
            self.report.histories += 1
            if comparison.differences:
                violation = BrokenCase(one.case, comparison)
                result.violations.append(violation)
                self._save(self._counterexample(result, violation, "", one.seed))
                self.found(self.report)

    def violated(self, result: LawResult, violation: BrokenCase) -> None:
        """Save the first violation of a law, recheck the violation alone, and replace it by the smallest violation.

        If the changelog law is broken too, laws that every wrong changelog breaks create no further counterexample.
        """
        law = result.law
        if law.follows_changelog and any(one.law.name == "changelog" and one.violations for one in self.report.results):
            return
        written = self._save(self._counterexample(result, violation, NOT_RECHECKED))
        self.found(self.report)
        self.progress(f"checking the first violation of {law.name!r} again, alone")
        smallest, unconfirmed = confirmed(law, violation, self.witness, self._asked)
        again = self._counterexample(result, smallest, unconfirmed)
        self.report.found.remove(written)
        if self._save(again)[1] != written[1]:
            self.store.forget(written[1])
        self.found(self.report)

    def _asked(self, histories: int) -> None:
        """Add the histories of a recheck to the report's count."""
        self.report.queries += self.subject == "spark"
        self.report.histories += histories

    def _counterexample(
        self, result: LawResult, violation: BrokenCase, unconfirmed: str, seed: int | None = None
    ) -> Counterexample[History]:
        """Create a counterexample from a violation. `unconfirmed` is the reason why a recheck didn't confirm the
        violation; empty if it did.
        """
        comparison = violation.comparison
        return Counterexample(
            **vars(violation.case),
            law=result.law.name,
            subject=self.subject,
            mutant=self.witness.mutant,
            confirmed=not unconfirmed,
            seed=self.seed if seed is None else seed,
            sentence=verdict_sentence(result.sentence, comparison),
            expected=comparison.expected,
            actual=comparison.actual,
            differences=comparison.differences,
            unconfirmed=unconfirmed,
        )

    def _save(self, counterexample: Counterexample[History]) -> tuple[Counterexample[History], Path]:
        """Save a counterexample, and record its folder in the report."""
        self.report.found.append((counterexample, self.store.save(counterexample)))
        return self.report.found[-1]
