"""The gate: draws samples, runs them, lets the laws judge, and saves a counterexample of each law that is broken.

One loop serves the check of a reference, that of an operator on Spark, and mutation testing: what differs is which
samples are drawn, which laws are asked, and whose logic runs.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from ...reference.core.errors import MissingTool
from ...reference.core.history import History
from ...reference.core.play import Played
from ..counterexamples.counterexample import NOT_RECHECKED, Counterexample, counterexample_of
from ..counterexamples.of_operators import FolderStore
from ..generators.coverage import without_neighbours
from ..generators.neighbours import neighbour_goals_of, neighbours_met
from ..laws.all import OF_REFERENCE, ON_SPARK, Subject, asked_of
from ..laws.base import OWN, Law, LawResult, Violation
from ..laws.case import Case
from ..laws.metamorphic.packing import Packing
from ..laws.metamorphic.reruns import RerunLaw
from ..laws.runs import CohortRun, Pool, ReferenceRun, Run, Sample, StagedRun, TypedRun
from ..registration.registration import Registration, registration_of
from ..witnesses.run_options import RunOptions
from ..witnesses.spark.query import stop_queries
from ..witnesses.spark.session import spark_session, use_own_session
from ..witnesses.spark.witness import QueryWitness
from .confirm import confirmed
from .pools import plan_pools
from .replays import replay
from .report import Report
from .rounds import Round, TimeIsUp
from .running import AnyRun, Progress, cohort_run, run_sample
from .samples import Draw, plan_of_reference, plan_of_their_own, plan_on_spark


def check(
    operator: str,
    store: FolderStore,
    histories: int = 2000,
    seed: int = 0,
    progress: Progress = lambda step: None,
    witness: QueryWitness = OWN,
    report: Report | None = None,
) -> Report:
    """Check an operator's Spark implementation by every law; as `check_operators`.

    Args:
        operator: The operator's name.
        store: Where counterexamples are saved; those that are there already are replayed first.
        histories: How many histories to draw; each law judges a share of them.
        seed: What they are drawn from.
        progress: Is given the name of each step before it starts.
        witness: What runs: the operator's own implementation, or one with a mutated logic.
        report: Filled as the check goes, so that an interrupted one reports what it had; made when not given.
    """
    report = report or Report(operator, [], seed)
    return check_operators([operator], store, histories, seed, progress, witness, {operator: report})[operator]


def check_operators(
    operators: Sequence[str],
    store: FolderStore,
    histories: int = 2000,
    seed: int = 0,
    progress: Progress = lambda step: None,
    witness: QueryWitness = OWN,
    reports: dict[str, Report] | None = None,
    ready: Callable[[Report], None] = lambda report: None,
    turn: Round | None = None,
    of_reference: Mapping[str, Report] | None = None,
) -> dict[str, Report]:
    """Check the Spark implementations of operators by every law; they share queries.

    Args:
        operators: The operators' names.
        store: Where counterexamples are saved; those that are there already are replayed first.
        histories: How many histories of each to draw; each law judges a share of them.
        seed: What they are drawn from in the first round; one more in each further round.
        progress: Is given the name of each step before it starts.
        witness: What runs: the operators' own implementations, or one with a mutated logic.
        reports: By operator: filled as the check goes, so that an interrupted one reports what it had.
        ready: Is given each operator's report as soon as its last sample has been judged.
        turn: The round; a further one adds to the reports of the first.
        of_reference: By operator: reports of references that are checked while the first queries run.

    Raises:
        BadInput: There is no such operator, or a saved counterexample can't be read.
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    reports, turn, of_reference = {} if reports is None else reports, turn or Round(), of_reference or {}
    checks = {}
    for name in operators:
        report = reports.setdefault(name, Report(name, [], seed))
        checks[name] = Check(registration_of(name), report, ON_SPARK, "spark", store, progress, witness, turn)
    sharing = [one for one in checks.values() if shares_queries(one.registration)]
    with contextlib.suppress(TimeIsUp), contextlib.ExitStack() as unfinished:
        for one in checks.values():
            unfinished.enter_context(one.unfinished_if_it_fails())
            one.begin()
        own_seed = seed + turn.number
        pools = plan_pools([one.registration for one in sharing], histories, own_seed, turn.records)
        alone = {
            one.registration.name: (plan_of_their_own if one in sharing else plan_on_spark)(
                one.registration, histories, own_seed
            )
            for one in checks.values()
        }
        turn.work.expect(
            steps_of_references(list(of_reference))
            + sum(_runs(checks, [one.sample for one in pool]) for pool in pools)
            + sum(map(len, alone.values()))
        )
        with query_threads(SIDE_BY_SIDE) as executor:
            references = iter(of_reference.items())
            waiting: deque[tuple[Check, Future[Ran] | None]] = deque()

            def check_references() -> None:
                for name, report in references:
                    ready(check_reference(name, store, histories, seed, progress, report, turn))

            def in_turn() -> Iterator[list[Sample]]:
                for pool in pools:
                    yield [one.drawn() for one in pool]
                    check_references()  # while the first one runs; there are none after it
                # The longest first: in the queries of a protocol each step waits for the one before it.
                by_length = sorted(checks.values(), key=lambda one: one.registration.protocol is None)
                ran = {
                    one.registration.name: [executor.submit(one.drawn, draw) for draw in alone[one.registration.name]]
                    for one in by_length
                }
                for one in checks.values():
                    waiting.extend((one, future) for future in ran[one.registration.name])
                    waiting.append((one, None))
                check_references()  # where nothing shares queries

            judge_pools(sharing, in_turn(), progress, executor)
            while waiting:
                one, run = waiting.popleft()
                if run is not None:
                    with one.timed():
                        sample, runs = run.result()
                    one.judge(sample, runs)
                    continue
                one.report.is_whole = True
                ready(one.report)
    return reports


SIDE_BY_SIDE = 2
"""So many queries run at once: one waits more than it computes."""
Ran: TypeAlias = tuple[Sample, Sequence[AnyRun]]
"""A sample and its runs."""


def shares_queries(registration: Registration) -> bool:
    """Whether the histories of an operator can share queries with others'."""
    return registration.spark is not None and registration.spark.shared is not None


def judge_pools(
    checks: Sequence[Check], pools: Iterable[Sequence[Sample]], progress: Progress, executor: Executor
) -> None:
    """Run pools of samples, the next one while one is judged, and let the laws judge each."""
    of = {one.registration.name: one for one in checks}
    waiting: Pool | None = None
    for pool in chain(map(partial(_prepared, of, executor, progress), pools), [None]):
        if waiting is not None:
            runs = _runs(of, [member.sample for member in waiting.members])
            for member in waiting.members:
                check = of[member.sample.registration.name]
                check.judge_run(member)
                check.turn.work.did(runs / len(waiting.members))
            for name in {member.sample.registration.name for member in waiting.members}:
                of[name].report.queries += waiting.queries
            waiting.let_go()
        waiting = pool
    for one in checks:
        one.show_neighbours()


def _prepared(of: Mapping[str, Check], executor: Executor, progress: Progress, samples: Sequence[Sample]) -> Pool:
    """Begin to run a pool."""
    members, alone = [], []
    for sample in samples:
        check = of[sample.registration.name]
        check.turn.go_on()
        laws = check.laws_of(sample)
        members.append(cohort_run(sample, laws, check.seed, [check.witness]))
        if any(isinstance(law, Packing) for law in laws):
            alone.append(members[-1])
    pool = Pool(members)
    progress(f"{sum(len(one.each) for one in members):,} histories of {len(members)} definitions together")
    pool.prepare([pool.plain, *_reruns(of, samples)], executor)
    for member in alone:
        member.prepare_alone(executor)
    return pool


def _reruns(of: Mapping[str, Check], samples: Sequence[Sample]) -> Sequence[RunOptions]:
    """Return the ways in which samples of a pool are run again; that doesn't depend on their histories."""
    ways = (
        way for sample in samples for law in of[sample.registration.name].reruns_of(sample) for way in law.ways(sample)
    )
    return list(dict.fromkeys(ways))


def _runs(of: Mapping[str, Check], samples: Sequence[Sample]) -> int:
    """Return in how many ways samples of a pool are run."""
    return 1 + len(_reruns(of, samples))


@contextlib.contextmanager
def query_threads(count: int) -> Iterator[Executor]:
    """Give threads for queries, each with a session of its own, beside which this thread may run some too.

    Where what is done meanwhile fails, or is interrupted, their queries are stopped.
    """
    spark_session()  # a JVM ends with the thread that starts it
    numbers = iter(range(count))
    executor = ThreadPoolExecutor(count, "queries", lambda: use_own_session(next(numbers)))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        stop_queries()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def check_reference(
    operator: str,
    store: FolderStore,
    histories: int = 1000,
    seed: int = 0,
    progress: Progress = lambda step: None,
    report: Report | None = None,
    turn: Round | None = None,
    on: str | None = None,
) -> Report:
    """Check the reference of an operator by every law that needs no Spark.

    Args:
        operator: The operator's name.
        store: Where counterexamples are saved; those that are there already are replayed first.
        histories: How many histories to draw, over all of its profiles.
        seed: What they are drawn from in the first round; one more in each further round.
        progress: Is given the name of each step before it starts.
        report: Filled as the check goes, so that an interrupted one reports what it had; made when not given.
        turn: The round; a further one adds to the report of the first.
        on: The witness whose laws alone are asked, such as `kafka`; None for all laws.

    Raises:
        BadInput: There is no such operator, or a saved counterexample can't be read or one can't be written.
    """
    registration, turn = registration_of(operator), turn or Round()
    report = report or Report(operator, [], seed, subject="the reference")
    plan = plan_of_reference(registration, histories, seed + turn.number, turn.records)
    laws = [law for law in OF_REFERENCE if on is None or on in law.between]
    check = Check(registration, report, laws, "reference", store, progress, OWN, turn)
    check.run(draw() for draw in plan)
    return report


def steps_of_references(operators: Sequence[str]) -> int:
    """Return how many steps there are in the check of operators' references."""
    return sum(len(plan_of_reference(registration_of(name), 0, 0)) for name in operators)


FOR_NEIGHBOURS = 30
"""So many histories of a sample are looked at for numbers that are off by one."""


@dataclass
class Check:
    """One check: an operator, its laws, where counterexamples are saved, and what runs on Spark."""

    registration: Registration
    report: Report
    laws: Sequence[Law]
    subject: Subject
    store: FolderStore
    progress: Progress
    witness: QueryWitness
    turn: Round = field(default_factory=Round)
    pooled: list[tuple[History, Played]] = field(default_factory=list)

    @property
    def seed(self) -> int:
        """What the histories of this round are drawn from."""
        return self.report.seed + self.turn.number

    def run(self, samples: Iterable[Sample]) -> None:
        """Ask every law, about the saved counterexamples first, until the time is up."""
        with contextlib.suppress(TimeIsUp), self.unfinished_if_it_fails():
            self.begin()
            for sample in samples:
                self.judge(sample)
            self.report.is_whole = True

    @contextlib.contextmanager
    def unfinished_if_it_fails(self) -> Iterator[None]:
        """Mark every law as unfinished where something ends the check before its last sample has been judged."""
        try:
            yield
        except BaseException:
            # What was begun may have judged only a part of its histories.
            for result in self.report.results:
                result.unfinished = not self.report.is_whole
            raise

    def begin(self) -> None:
        """Choose the laws, and ask about the saved counterexamples; a further round goes on with what there is."""
        self.turn.go_on()
        self.report.rounds += 1
        if not self.turn.is_first:
            return
        laws, self.report.not_checked = asked_of(self.registration, self.laws)
        self.report.results = [LawResult(law, law.sentence(self.registration)) for law in laws]
        with self.timed():
            self.replay_saved()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add what is done within to the time of the report."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.report.seconds += time.monotonic() - started

    def laws_of(self, sample: Sample) -> list[Law]:
        """Return the laws that are asked of a sample."""
        return [one.law for one in self.report.results if not one.skipped and one.law.is_asked_of(sample)]

    def reruns_of(self, sample: Sample) -> Iterator[RerunLaw]:
        """Yield the laws that ask to run a sample again."""
        for one in self.report.results:
            if isinstance(one.law, RerunLaw) and not one.skipped and one.law.is_asked_of(sample):
                yield one.law

    def replay_saved(self) -> None:
        """Ask about the saved counterexamples of such a check again, each by its law; that covers no goal."""
        saved = self.store.saved(self.report.operator, self.subject, self.witness.mutant)
        laws = {result.law.name: result.law for result in self.report.results}
        for one in replay(saved, laws, self.subject, self.progress, self.witness):
            result = self.report.result(one.law)
            result.judged += 1
            self.report.histories += 1
            if one.comparison.differences:
                violation = Violation(Case(one.history, one.original, one.way), one.comparison)
                result.violations.append(violation)
                self.save(self.counterexample(result, violation, "", one.seed))

    def drawn(self, draw: Draw) -> Ran:
        """Draw a sample, and run it."""
        sample = draw()
        return sample, self.runs_of(sample)

    def runs_of(self, sample: Sample) -> list[AnyRun]:
        """Run a sample for the laws that are asked of it."""
        laws = self.laws_of(sample)
        return list(run_sample(sample, laws, self.seed, [self.witness], self.progress)) if laws else []

    def judge(self, sample: Sample, runs: Sequence[AnyRun] | None = None) -> None:
        """Let each law judge a sample that is asked of it; it is run if it hasn't been."""
        self.turn.go_on()
        laws = self.laws_of(sample)
        if laws:
            self.report.covered.update(without_neighbours(sample.covered))
            with self.timed():
                for run in self.runs_of(sample) if runs is None else runs:
                    self.ask_about(sample, laws, run)
        self.turn.work.did()

    def ask_about(self, sample: Sample, laws: Sequence[Law], run: AnyRun) -> None:
        """Let laws judge a run of a sample, and count what it took."""
        if isinstance(run, ReferenceRun):
            self.report.covered.update(without_neighbours(run.covered))
        self.ask_all(laws, sample, run)
        staged = 3 * isinstance(run, StagedRun)
        own = staged + isinstance(run, TypedRun)
        self.report.queries += run.whole.pool.queries if isinstance(run, Run) else own

    def judge_run(self, whole: CohortRun) -> None:
        """Let each law judge a member of a pool."""
        self.turn.go_on()
        laws = self.laws_of(whole.sample)
        with self.timed():
            for run in whole.shares():
                self.ask_all(laws, whole.sample, run)
            self.report.covered.update(_of_histories(whole.covered))
        if whole.sample.is_pooled:
            self.pooled += zip(whole.sample.histories[:FOR_NEIGHBOURS], whole.played, strict=False)

    def show_neighbours(self) -> None:
        """Look for histories of the pools on which each number that is off by one shows."""
        histories, played = [history for history, _ in self.pooled], [own for _, own in self.pooled]
        with self.timed():
            goals = neighbour_goals_of(self.registration, [history.options for history in histories])
            found = Counter(neighbours_met(histories, played).keys())
        for result in self.report.results:
            if result.law.shows_neighbours and histories:
                self.must_cover(result, goals)
                result.covered.update(found)
        self.pooled.clear()

    def ask_all(self, laws: Sequence[Law], sample: Sample, run: AnyRun) -> None:
        """Let laws judge a run of a sample."""
        self.report.histories += len(run.histories)
        for law in laws:
            result = self.report.result(law.name)
            self.must_cover(result, law.goals(sample))
            self.progress(f"{law.name}: {len(run.histories)} histories, {sample.registration.name}, {sample.profile}")
            self.ask(result, run)

    def must_cover(self, result: LawResult, goals: Iterable[str]) -> None:
        """Add goals without which a law has shown nothing; a further round, which may be cut short, adds none."""
        if self.turn.is_first:
            result.goals = tuple(dict.fromkeys((*result.goals, *goals)))

    def ask(self, result: LawResult, run: AnyRun) -> None:
        """Let a law judge a run; of its violations the first becomes a counterexample."""
        try:
            for violation in result.law.judge(run, result):  # type: ignore[arg-type]
                # Of further rounds only the number is kept: an hour may have more than memory holds.
                is_kept = self.turn.is_first or not result.violations
                result.violations.append(violation if is_kept else result.violations[0])
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
        return counterexample_of(
            result.law.name,
            result.sentence,
            violation,
            unconfirmed,
            seed=self.seed if seed is None else seed,
            subject=self.subject,
            mutant=self.witness.mutant,
        )

    def save(self, counterexample: Counterexample) -> tuple[Counterexample, Path]:
        """Write a counterexample, and note where."""
        self.report.found.append((counterexample, self.store.save(counterexample)))
        return self.report.found[-1]


def _of_histories(covered: Mapping[str, int]) -> Counter[str]:
    """Return a count of goals without those of options and neighbours, which say nothing of single histories."""
    return Counter(
        {goal: count for goal, count in without_neighbours(covered).items() if not goal.startswith("options ")}
    )
