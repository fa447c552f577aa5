"""Mutation testing: the laws check every mutant of an operator; a surviving mutant shows a gap in the check.

Mutation testing uses the loop of the check: a profile's mutants share a query, and each mutant processes its own copy
of the histories.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ..laws.all import AS_OF_REFERENCE, ON_SPARK, asked_of
from ..laws.base import Law, LawResult
from ..laws.case import Case
from ..laws.metamorphic.packing import Packing
from ..laws.on_spark.native import NativeLaw
from ..laws.on_spark.retention import RetentionLaw
from ..laws.runs import Pool, Run
from ..registration.mutants import Mutant
from ..registration.registration import Registration, registered, registration_of
from ..witnesses.spark.witness import QueryWitness, SparkWitness
from .check import shares_queries
from .pools import pools_on_spark
from .running import AnyRun, OnStep, cohort_run, run_sample
from .samples import random_sample, sample_without_late_data, scheduled_sample
from .shrinking import shrink_together, size

ALL_LAWS = tuple(law for law in ON_SPARK if not isinstance(law, Packing | NativeLaw | RetentionLaw))
"""The laws that can check mutants: without `Native`, and without laws that need extra queries for each mutant."""
LAWS = tuple(law for law in ALL_LAWS if law.name not in AS_OF_REFERENCE)
"""The laws that check mutants: those by which `streamproof check` judges operators on Spark."""


@dataclass
class Kill:
    """The result of checking a mutant.

    Attributes:
        mutant: The mutant.
        results: The results of the laws, by the law's name.
        shrunk: The smallest history found that breaks the law, if the law can recheck several mutants' histories in one
            query.
        drawn: The number of histories drawn for the mutant, without variants of histories.
        shown: By law, the drawn histories that broke the law, themselves or by a variant of the history.
    """

    mutant: Mutant
    results: dict[str, LawResult] = field(default_factory=dict)
    shrunk: History | None = None
    drawn: int = 0
    shown: dict[str, list[History]] = field(default_factory=lambda: defaultdict(list))

    @property
    def laws(self) -> dict[str, int]:
        """The number of histories that broke each law; the mapping lacks laws that no history broke."""
        return {name: len(result.violations) for name, result in self.results.items() if result.violations}

    @property
    def judged(self) -> dict[str, int]:
        """The number of histories that each law judged."""
        return {name: result.judged for name, result in self.results.items()}

    @property
    def killed(self) -> bool:
        """Whether the mutant broke a law."""
        return bool(self.laws)

    @property
    def law(self) -> str | None:
        """The law that the most histories broke; laws whose histories can be shrunk are preferred."""
        laws = self.laws
        ranked = sorted(laws, key=lambda law: (not self.results[law].law.is_plain, -laws[law]))
        return ranked[0] if ranked else None

    def smallest(self, law: str) -> History:
        """Return the smallest drawn history that broke the law."""
        cases = [violation.case for violation in self.results[law].violations]
        return min((case.original or case.history for case in cases), key=size)


def chosen(operator: str, names: Sequence[str]) -> list[Mutant]:
    """Return the mutants with the given names; without names, return all mutants of the operator.

    Raises:
        BadInput: The operator or a mutant is unknown.
    """
    known = registration_of(operator).mutants
    if not known:
        having = [name for name, registration in registered().items() if registration.mutants]
        raise BadInput(f"{operator} has no mutants yet: {', '.join(having)} have")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInput(f"unknown mutant {unknown[0]!r}: use one of {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def witness_of(operator: str, mutant: str | None = None) -> QueryWitness:
    """Return the witness that runs an operator's own implementation, or a mutant of the operator.

    Args:
        operator: The operator's name.
        mutant: The mutant's name.

    Raises:
        BadInput: The operator or the mutant is unknown.
    """
    if mutant is None:
        return SparkWitness()
    (found,) = chosen(operator, [mutant])
    return SparkWitness(found.logic, mutant)


def check_mutants(
    mutants: Sequence[Mutant],
    histories: int = 100,
    seed: int = 0,
    progress: OnStep = lambda step: None,
    rounds: int = 4,
    kills: dict[str, Kill] | None = None,
    all_laws: bool = False,
) -> list[Kill]:
    """Check mutants of one operator on Spark by the laws.

    Args:
        mutants: The mutants.
        histories: The number of random histories for each mutant; all mutants of a profile run the same histories.
        seed: The seed of the histories.
        progress: The callback that receives the name of each step before the step starts.
        rounds: The maximum number of shrinking rounds, each with one query; 0: no shrinking.
        kills: The results by mutant, which the run fills, so that an interrupted run can report its results so far.
        all_laws: Whether to include laws that a check judges only on the reference.

    Raises:
        StreamproofError: Spark doesn't start, or a query fails.
    """
    kills = {} if kills is None else kills
    kills.update({mutant.name: Kill(mutant) for mutant in mutants})
    registration = registration_of(mutants[0].operator)
    laws, _ = asked_of(registration, ALL_LAWS if all_laws else LAWS)
    together = [kills[mutant.name] for mutant in mutants if not mutant.scheduled]
    if together and shares_queries(registration):
        _together(registration, together, laws, histories, seed, progress, all_laws)
    alone = [mutant for mutant in mutants if mutant.scheduled or not shares_queries(registration)]
    for profile in dict.fromkeys(mutant.profile for mutant in alone):
        of_profile = [kills[mutant.name] for mutant in alone if mutant.profile == profile]
        _of_profile(registration, of_profile, laws, histories, seed, progress)
    for profile in dict.fromkeys(mutant.profile for mutant in mutants) if rounds else ():
        _shrink([kill for kill in kills.values() if kill.killed and kill.mutant.profile == profile], rounds, progress)
    return list(kills.values())


def _together(
    registration: Registration,
    kills: Sequence[Kill],
    laws: Sequence[Law],
    count: int,
    seed: int,
    progress: OnStep,
    all_laws: bool,
) -> None:
    """Check mutants in pools of shared queries: each mutant runs with its own profile, and with all drawn options."""
    of: dict[int, list[Kill]] = {}
    for samples in pools_on_spark([registration], count, seed, all_laws=all_laws):
        members = []
        for sample in samples:
            own = [kill for kill in kills if sample.is_pooled or kill.mutant.profile == sample.profile]
            if not own:
                continue
            asked = [law for law in laws if law.is_asked_of(sample)]
            witnesses = [SparkWitness(kill.mutant.logic, kill.mutant.name) for kill in own]
            members.append(cohort_run(sample, asked, seed, witnesses))
            of[id(members[-1])] = own
        count_of_all = sum(len(one.each) * len(one.witnesses) for one in members)
        progress(f"{len(kills)} mutants in one query: {count_of_all:,} histories")
        for member in Pool(members).members:
            asked = [law for law in laws if law.is_asked_of(member.sample)]
            for kill, run in zip(of[id(member)], member.shares(), strict=True):
                _judge(kill, run, asked, registration)


def _judge(kill: Kill, run: AnyRun, asked: Sequence[Law], registration: Registration) -> None:
    drawn = run.histories[: run.drawn] if isinstance(run, Run) else run.histories
    kill.drawn += len(drawn)
    for law in asked:
        result = kill.results.setdefault(law.name, LawResult(law, law.sentence(registration)))
        found = list(law.judge(run, result))  # type: ignore[arg-type]
        result.violations.extend(found)
        broken = {id(one.case.original or one.case.history) for one in found}
        kill.shown[law.name] += [history for history in drawn if id(history) in broken]


def _of_profile(
    registration: Registration, kills: Sequence[Kill], laws: Sequence[Law], count: int, seed: int, progress: OnStep
) -> None:
    """Check the mutants of one profile by all laws."""
    mutants, profile = [kill.mutant for kill in kills], kills[0].mutant.profile
    if mutants[0].scheduled:
        samples = [scheduled_sample(registration, count, seed)]
    else:
        samples = [replace(random_sample(registration, profile, count, seed), is_first=True)]
        if profile in registration.without_late_data:
            samples.append(sample_without_late_data(registration, profile, max(1, count // 4), seed))
    witnesses = [SparkWitness(mutant.logic, mutant.name) for mutant in mutants]
    for sample in samples:
        asked = [law for law in laws if law.is_asked_of(sample)]
        progress(f"{len(mutants)} mutants, {len(sample.histories)} histories each: {sample.profile}")
        for kill, run in zip(kills, run_sample(sample, asked, seed, witnesses, progress), strict=True):
            _judge(kill, run, asked, registration)


def _shrink(kills: Sequence[Kill], rounds: int, progress: OnStep) -> None:
    """Shrink the histories that killed a profile's mutants; one query runs the candidates of all these mutants."""
    plain = {kill.law for kill in kills if kill.law is not None and kill.results[kill.law].law.is_plain}
    for name in sorted(plain):
        killed = [kill for kill in kills if kill.law == name]
        law = killed[0].results[name].law

        def fails(
            asked: Sequence[Sequence[History]], killed: Sequence[Kill] = killed, law: Law = law
        ) -> list[list[bool]]:
            progress(f"shrinking: {sum(map(len, asked))} candidates in one query")
            logics = {id(one): kill.mutant.logic for kill, of_one in zip(killed, asked, strict=True) for one in of_one}
            witness = SparkWitness(logics=logics)
            cases = [Case(history) for of_one in asked for history in of_one]
            broken = iter(law.recheck(cases, witness))
            return [[bool(next(broken).differences) for _ in of_one] for of_one in asked]

        smallest = shrink_together([kill.smallest(name) for kill in killed], fails, rounds)
        for kill, history in zip(killed, smallest, strict=True):
            kill.shrunk = history
