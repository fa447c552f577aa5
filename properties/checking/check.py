"""The check of operators: draws samples of histories, runs them, judges laws, and saves a counterexample of each broken
law.

The same loop checks references, checks operators on Spark, and runs mutation testing. The three kinds of check differ
in their samples, their laws, and the implementation of the operator that runs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from ...reference.core.errors import MissingTool
from ...reference.core.history import History
from ...reference.core.play import Played
from ..counterexamples.of_operators import FolderStore
from ..generators.coverage import without_neighbours
from ..generators.neighbours import neighbour_goals_of, neighbours_met
from ..laws.all import AS_OF_REFERENCE, BY_REFERENCE, OF_REFERENCE, ON_SPARK, WITHOUT_REFERENCE, Subject, asked_of
from ..laws.base import OWN, Law, LawResult
from ..laws.metamorphic.packing import Packing
from ..laws.metamorphic.reruns import RerunLaw
from ..laws.runs import CohortRun, Pool, ReferenceRun, Run, Sample, StagedRun, TypedRun
from ..registration.domain import durations_not_drawn
from ..registration.registration import Registration, registration_of
from ..witnesses.run_options import RunOptions
from ..witnesses.spark.query import stop_queries
from ..witnesses.spark.session import spark_session, use_own_session
from ..witnesses.spark.witness import QueryWitness
from .findings import CounterexampleMaker
from .pools import Planned, asked_alone, plan_pools
from .report import Report
from .rounds import Round, TimeIsUp
from .running import AnyRun, OnStep, cohort_run, run_sample
from .samples import Draw, plan_of_reference, plan_of_their_own, plan_on_spark


def check_operators(
    operators: Sequence[str],
    store: FolderStore,
    histories: int = 2000,
    seed: int = 0,
    progress: OnStep = lambda step: None,
    witness: QueryWitness = OWN,
    reports: dict[str, Report] | None = None,
    ready: Callable[[Report], None] = lambda report: None,
    turn: Round | None = None,
    of_reference: Mapping[str, Report] | None = None,
) -> dict[str, Report]:
    """Check the Spark implementations of operators in shared queries, by the laws that their reports list.

    Args:
        operators: The operators' names.
        store: The store of counterexamples, whose saved counterexamples the check replays first.
        histories: The number of histories to draw for each operator; each law judges a share of these histories.
        seed: The seed of the first round's histories; each further round adds 1 to the seed.
        progress: The callback that receives the name of each step before the step starts.
        witness: The witness that runs the operators' own implementations, or their mutants.
        reports: The reports by operator, which the check fills, so that an interrupted check can report its results so
            far.
        ready: The callback that receives each operator's report as soon as the operator's last sample has been judged.
        turn: The round of the check; the results of further rounds are added to the reports of the first round.
        of_reference: The reports of the references that the check judges during the first queries, by operator.

    Raises:
        BadInput: An operator is unknown, or a saved counterexample is unreadable.
        StreamproofError: Spark doesn't start, or a query fails.
    """
    reports, turn, of_reference = {} if reports is None else reports, turn or Round(), of_reference or {}
    checks = {}
    sharing = [one for one in map(registration_of, operators) if shares_queries(one)]
    for name in operators:
        report = reports.setdefault(name, Report(name, [], seed))
        checks[name] = Check(registration_of(name), report, ON_SPARK, "spark", store, progress, witness, turn)
        if not report.all_laws and not report.only:
            checks[name].left_out = _packing_of_others(name, sharing, seed)

    def check_reference_of(name: str) -> None:
        ready(check_reference(name, store, histories, seed, progress, of_reference[name], turn))

    with contextlib.suppress(TimeIsUp), contextlib.ExitStack() as unfinished:
        for check in checks.values():
            unfinished.enter_context(check.unfinished_if_it_fails())
            check.begin()
        pools, alone = _plan(list(checks.values()), histories)
        turn.work.expect(_steps(checks, pools, alone, list(of_reference)))
        references = deque(of_reference)
        with query_threads(SIDE_BY_SIDE) as executor:
            for check in checks.values():
                check.resting = executor.resting
            for left, finished in _in_turns(checks, pools, alone, executor):
                if finished is not None:
                    ready(finished.report)
                for _ in range(max(bool(references), len(references) // left)):
                    check_reference_of(references.popleft())
    return reports


SIDE_BY_SIDE = 2
"""The number of concurrent queries; several fit because a query waits more than it computes."""
T = TypeVar("T")
RanSample: TypeAlias = tuple[Sample, Sequence[AnyRun]]
"""A sample of histories and its runs."""


def shares_queries(registration: Registration) -> bool:
    """Return whether the histories of an operator can be in one query with other operators' histories."""
    return registration.spark is not None and registration.spark.shared is not None


def _packing_of_others(operator: str, sharing: Sequence[Registration], seed: int) -> Mapping[str, str]:
    """Return the law *packing* and the reason to skip this law, if checks of other operators in the same queries cover
    the law.
    """
    alone = asked_alone(sharing, seed)
    if operator in alone or not any(one.name == operator for one in sharing):
        return {}
    return {
        Packing.name: (
            f"checked on {' and '.join(alone)} in this check, on the same runtime; --all-laws checks it on every "
            "operator"
        )
    }


def _plan(checks: Sequence[Check], histories: int) -> tuple[list[list[Planned]], dict[str, list[Draw]]]:
    """Plan the pools of samples that share queries and, by operator, the samples that run in their own queries."""
    seed, records = checks[0].seed, checks[0].turn.records
    sharing = [check.registration for check in checks if shares_queries(check.registration)]
    all_laws = any(check.report.all_laws for check in checks)
    alone = {}
    for check in checks:
        plan = plan_of_their_own if check.registration in sharing else plan_on_spark
        alone[check.registration.name] = plan(check.registration, histories, seed, all_laws)
    return plan_pools(sharing, histories, seed, records, all_laws), alone


def _in_turns(
    checks: Mapping[str, Check],
    pools: Sequence[Sequence[Planned]],
    alone: Mapping[str, Sequence[Draw]],
    executor: Executor,
) -> Iterator[tuple[int, Check | None]]:
    """In each turn, judge a pool while the next pool runs, and finish the checks of operators that no later pool
    contains.

    Yields: The number of turns left, including this turn, and the check that this turn finishes; None: this turn
        finishes no check.
    """
    ends_with = dict.fromkeys(checks, 0)
    for number, pool in enumerate(pools):
        ends_with |= {planned.sample.registration.name: number for planned in pool}
    ran: dict[str, deque[Future[RanSample]]] = {}
    running: Pool | None = None
    turns = max(1, len(pools)) + 1
    for number in range(turns):
        begun = None
        if number < len(pools):
            begun = begin_pool(checks, [planned.drawn() for planned in pools[number]], executor)
        for name in (name for name, last in ends_with.items() if last == number):
            ran[name] = deque(executor.submit(checks[name].drawn, draw) for draw in alone[name])
        if running is not None:
            judge_pool(checks, running)
        running = begun
        finished = [name for name, last in ends_with.items() if last == number - 1]
        for name in finished:
            checks[name].finish(ran.pop(name))
            yield turns - number, checks[name]
        if not finished:
            yield turns - number, None


def begin_pool(checks: Mapping[str, Check], samples: Sequence[Sample], executor: Executor) -> Pool:
    """Start the queries of a pool of samples."""
    members, alone = [], []
    for sample in samples:
        check = checks[sample.registration.name]
        check.turn.go_on()
        laws = check.laws_of(sample)
        members.append(cohort_run(sample, laws, check.seed, [check.witness]))
        if any(isinstance(law, Packing) for law in laws):
            alone.append(members[-1])
    pool = Pool(members)
    check.progress(f"{sum(len(one.each) for one in members):,} histories of {len(members)} definitions in one query")
    pool.prepare([pool.plain, *_reruns(checks, samples)], executor)
    for member in alone:
        member.prepare_alone(executor)
    return pool


def judge_pool(checks: Mapping[str, Check], pool: Pool) -> None:
    """Judge the laws on a running or finished pool, one sample after the other."""
    runs = _runs(checks, [member.sample for member in pool.members])
    for name, of_operator in groupby(pool.members, lambda member: member.sample.registration.name):
        check, members = checks[name], [*of_operator]
        check.progress(
            f"judging {sum(len(one.each) for one in members):,} histories of {len(members)} definitions, {name}"
        )
        for member in members:
            check.judge_run(member)
            check.turn.work.did(name, runs / len(pool.members))
    for name in {member.sample.registration.name for member in pool.members}:
        checks[name].report.queries += pool.queries
    pool.let_go()


def _reruns(checks: Mapping[str, Check], samples: Sequence[Sample]) -> Sequence[RunOptions]:
    """Return the run options of a pool's second runs; the histories of the samples needn't be drawn yet."""
    ways: dict[RunOptions, None] = {}
    for sample in samples:
        for result in checks[sample.registration.name].report.results:
            if isinstance(result.law, RerunLaw) and not result.skipped and result.law.is_asked_of(sample):
                ways |= dict.fromkeys(result.law.ways(sample))
    return list(ways)


def _runs(checks: Mapping[str, Check], samples: Sequence[Sample]) -> int:
    """Count the runs of a pool's histories: one with default options, and one with each other set of run options."""
    return 1 + len(_reruns(checks, samples))


class QueryThreads(ThreadPoolExecutor):
    """An executor of queries whose threads each have their own Spark session."""

    def __init__(self, count: int) -> None:
        numbers = iter(range(count))
        # Use one shuffle partition, because each partition costs a task, a worker and a commit in every batch.
        super().__init__(count, "queries", lambda: use_own_session(next(numbers), partitions=1))
        self._may_begin = threading.Event()
        self._may_begin.set()
        self._is_over = False

    def submit(self, run: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Submit a query, which starts when a thread is free and no block has paused the threads."""

        def in_turn() -> T:
            self._may_begin.wait()
            if self._is_over:
                raise CancelledError
            return run(*args, **named)

        return super().submit(in_turn)

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Start no further query while the block runs, so that the block has the whole machine; if the block fails,
        never start a query again.
        """
        self._may_begin.clear()
        yield
        self._may_begin.set()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait until the started queries end; with `cancel_futures`, drop queries that haven't started."""
        self._is_over |= cancel_futures
        self._may_begin.set()
        super().shutdown(wait, cancel_futures=cancel_futures)


@contextlib.contextmanager
def query_threads(count: int) -> Iterator[QueryThreads]:
    """Yield an executor whose threads each have their own Spark session; the calling thread may run queries too.

    If the block fails or is interrupted, stop the queries of the threads.
    """
    spark_session()  # start the JVM in this thread: the JVM ends with the thread that started it
    executor = QueryThreads(count)
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
    progress: OnStep = lambda step: None,
    report: Report | None = None,
    turn: Round | None = None,
    on: str | None = None,
) -> Report:
    """Check the reference of an operator by all laws that need no Spark.

    Args:
        operator: The operator's name.
        store: The store of counterexamples, whose saved counterexamples the check replays first.
        histories: The number of histories to draw, over all profiles (named sets of options) of the operator.
        seed: The seed of the first round's histories; each further round adds 1 to the seed.
        progress: The callback that receives the name of each step before the step starts.
        report: The report, which the check fills, so that an interrupted check can report its results so far; by
            default a new report.
        turn: The round of the check; the results of further rounds are added to the report of the first round.
        on: The only witness, such as `kafka`, whose laws are checked; None: all laws.

    Raises:
        BadInput: The operator is unknown, or a counterexample can't be read or saved.
    """
    registration, turn = registration_of(operator), turn or Round()
    report = report or Report(operator, [], seed, subject="the reference")
    plan = plan_of_reference(registration, histories, seed + turn.number, turn.records)
    laws = [law for law in OF_REFERENCE if on is None or on in law.between]
    check = Check(registration, report, laws, "reference", store, progress, OWN, turn)
    check.run(draw() for draw in plan)
    return report


def steps_of_references(operators: Sequence[str]) -> Counter[str]:
    """Count the progress steps in the check of each operator's reference."""
    return Counter({name: len(plan_of_reference(registration_of(name), 0, 0)) for name in operators})


def _steps(
    checks: Mapping[str, Check],
    pools: Sequence[Sequence[Planned]],
    alone: Mapping[str, Sequence[Draw]],
    references: Sequence[str],
) -> Mapping[str, float]:
    """Count the progress steps of each operator; the samples of a pool share the pool's steps."""
    of_references = steps_of_references(references)
    steps: dict[str, float] = {name: of_references[name] + len(alone[name]) for name in checks}
    for pool in pools:
        runs = _runs(checks, [planned.sample for planned in pool])
        for planned in pool:
            steps[planned.sample.registration.name] += runs / len(pool)
    return steps


def _durations_not_drawn(registration: Registration) -> list[str]:
    definitions = [registration.declare(options) for options in registration.profiles.values()]
    return durations_not_drawn(definitions, registration.domain)


FOR_NEIGHBOURS = 30
"""The largest number of a sample's histories in which the check searches for off-by-one numbers of options."""


@dataclass
class Check:
    """The check of an operator: runs samples of histories, and judges the laws.

    Attributes:
        registration: The operator.
        report: The report, which the check fills.
        laws: The laws to judge; the check skips laws that the operator's registration doesn't support.
        subject: The implementation that the check runs: the reference, or the implementation on Spark.
        store: The store of counterexamples.
        progress: The callback that receives the name of each step before the step starts.
        witness: The witness that runs the operator's own implementation on Spark, or a mutant of the operator.
        turn: The round.
        left_out: The laws that this check skips because the checks of other operators cover them, with the reason.
        findings: The counterexamples.
        pooled: Histories of pools with the reference's runs; `finish` searches these histories for outputs that an
            off-by-one number of an option changes, and then drops the histories.
        resting: A context manager that lets no further query of the check start, so that shrinking is faster.
    """

    registration: Registration
    report: Report
    laws: Sequence[Law]
    subject: Subject
    store: FolderStore
    progress: OnStep
    witness: QueryWitness
    turn: Round = field(default_factory=Round)
    left_out: Mapping[str, str] = field(default_factory=dict)
    findings: CounterexampleMaker = field(init=False)
    pooled: list[tuple[History, Played]] = field(default_factory=list)
    resting: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext

    def __post_init__(self) -> None:
        self.findings = CounterexampleMaker(
            self.report,
            subject=self.subject,
            store=self.store,
            progress=self.progress,
            witness=self.witness,
            seed=self.seed,
            found=self.turn.found,
        )

    @property
    def seed(self) -> int:
        """The seed of the histories in this round."""
        return self.report.seed + self.turn.number

    def run(self, samples: Iterable[Sample]) -> None:
        """Replay the saved counterexamples, then judge every law until the time is up."""
        with contextlib.suppress(TimeIsUp), self.unfinished_if_it_fails():
            self.begin()
            for sample in samples:
                self.judge(sample)
            self.report.is_whole = True

    @contextlib.contextmanager
    def unfinished_if_it_fails(self) -> Iterator[None]:
        """Mark every law as unfinished if the check ends before the last sample has been judged."""
        try:
            yield
        except BaseException:
            # If the check ends early, mark its laws as unfinished, because they may have judged only some histories.
            for result in self.report.results:
                result.unfinished = not self.report.is_whole
            raise

    def begin(self) -> None:
        """Choose the laws, and replay the saved counterexamples; a further round reuses the laws and the replays."""
        self.turn.go_on()
        self.report.rounds += 1
        if not self.turn.is_first:
            return
        laws, reasons = asked_of(self.registration, self.laws)
        left_out = [law.name for law in laws if self.report.only and law.name not in self.report.only]
        laws = [law for law in laws if law.name not in {*left_out, *self.left_out}]
        by_reference = [law.name for law in laws if law.name in AS_OF_REFERENCE and self._leaves_to_reference]
        self.report.not_checked = {
            **reasons,
            **{law: why for law, why in self.left_out.items() if law not in reasons},
            **dict.fromkeys(left_out, "left out by --law"),
            **dict.fromkeys(by_reference, BY_REFERENCE if self.report.beside_reference else WITHOUT_REFERENCE),
            **dict.fromkeys(_durations_not_drawn(self.registration), "no drawn times lie around this duration"),
        }
        laws = [law for law in laws if law.name not in by_reference]
        self.report.results = [LawResult(law, law.sentence(self.registration)) for law in laws]
        with self.timed():
            self.findings.replay()

    @property
    def _leaves_to_reference(self) -> bool:
        """Return whether this check skips laws that the check of the reference covers."""
        return self.subject == "spark" and not self.report.all_laws

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the duration of the block to the report."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.report.seconds += time.monotonic() - started

    def laws_of(self, sample: Sample) -> list[Law]:
        """Return the laws that apply to a sample."""
        return [one.law for one in self.report.results if not one.skipped and one.law.is_asked_of(sample)]

    def drawn(self, draw: Draw) -> RanSample:
        """Draw a sample of histories, and run the sample."""
        sample = draw()
        return sample, self.runs_of(sample)

    def runs_of(self, sample: Sample) -> list[AnyRun]:
        """Run a sample's histories for the laws that apply to the sample."""
        laws = self.laws_of(sample)
        return list(run_sample(sample, laws, self.seed, [self.witness], self.progress)) if laws else []

    def judge(self, sample: Sample, runs: Sequence[AnyRun] | None = None) -> None:
        """Judge each law that applies to a sample; if the sample hasn't run, run it first."""
        self.turn.go_on()
        laws = self.laws_of(sample)
        if laws:
            self.report.covered.update(without_neighbours(sample.covered))
            with self.timed():
                for run in self.runs_of(sample) if runs is None else runs:
                    if isinstance(run, ReferenceRun):
                        self.report.covered.update(_of_histories(run.covered))
                    self.ask_all(laws, sample, run)
                    self.report.queries += _queries(run)
        self.turn.work.did(self.registration.name)

    def finish(self, ran: deque[Future[RanSample]]) -> None:
        """Judge the samples that ran in their own queries, and mark the report as complete."""
        _show_neighbours(self)
        while ran:
            with self.timed():
                sample, runs = ran.popleft().result()
            self.judge(sample, runs)
        self.report.is_whole = True

    def judge_run(self, whole: CohortRun) -> None:
        """Judge each law on a sample that ran in a pool's shared queries."""
        self.turn.go_on()
        laws = self.laws_of(whole.sample)
        with self.timed():
            for run in whole.shares():
                self.ask_all(laws, whole.sample, run)
            self.report.covered.update(_of_histories(whole.covered))
        if whole.sample.is_pooled:
            self.pooled += zip(whole.sample.histories[:FOR_NEIGHBOURS], whole.played, strict=False)

    def ask_all(self, laws: Sequence[Law], sample: Sample, run: AnyRun) -> None:
        """Judge the laws that apply to a sample on a run of the sample."""
        self.report.histories += len(run.histories)
        for law in laws:
            result = self.report.result(law.name)
            self.must_cover(result, law.goals(sample))
            if not sample.is_pooled:  # `judge_pool` reports one step for all samples of a pool
                asked = f"{len(run.histories)} histories, {sample.registration.name}, {sample.profile}"
                self.progress(f"{law.name}: {asked}")
            self.ask(result, run)

    def must_cover(self, result: LawResult, goals: Iterable[str]) -> None:
        """Add coverage goals that a law requires; a further round adds no goals, because the round may end early."""
        if self.turn.is_first:
            result.goals = tuple(dict.fromkeys((*result.goals, *goals)))

    def ask(self, result: LawResult, run: AnyRun) -> None:
        """Judge a law on the histories of a run; save the law's first violation as a counterexample."""
        try:
            for violation in result.law.judge(run, result):  # type: ignore[arg-type]
                # Further rounds count violations without storing the histories, which could exceed the memory.
                is_kept = self.turn.is_first or not result.violations
                result.violations.append(violation if is_kept else result.violations[0])
                if len(result.violations) == 1:
                    with self.resting():
                        self.findings.violated(result, violation)
        except MissingTool as missing:
            if self.subject != "reference":
                raise
            if not result.violations:  # keep violations found before the tool was missing
                result.skipped = f"skipped: {missing}"


def _show_neighbours(check: Check) -> None:
    """Search the pools' histories for a history whose output changes if a number in an option is off by one."""
    histories, played = [history for history, _ in check.pooled], [own for _, own in check.pooled]
    with check.timed():
        goals = neighbour_goals_of(check.registration, [history.options for history in histories])
        found = Counter(neighbours_met(histories, played).keys())
    for result in check.report.results:
        if result.law.shows_neighbours and histories:
            check.must_cover(result, goals)
            result.covered.update(found)
    check.pooled.clear()


def _queries(run: AnyRun) -> int:
    """Count the Spark queries of a run."""
    if isinstance(run, Run):
        return run.whole.pool.queries
    return 3 * isinstance(run, StagedRun) + isinstance(run, TypedRun)


def _of_histories(covered: Mapping[str, int]) -> Counter[str]:
    """Return the counts of the coverage goals that a single history can meet, so without goals about options and
    off-by-one numbers.
    """
    return Counter(
        {goal: count for goal, count in without_neighbours(covered).items() if not goal.startswith("options ")}
    )
