"""A run of the fuzzer: parallel processes, each with its own Spark session, judge seeds until the time is up."""

from __future__ import annotations

import itertools
import os
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from ....reference.core.errors import BadInput, StreamproofError
from ...generators.chains import OPERATORS
from ...generators.plans.drawing import KINDS
from ...system.installed.environments import python_of, require_supported
from ...system.installed.requirements import installed
from ...witnesses.job.other_pyspark import PySparkProcess
from .chains import CHAINS
from .corpus import SEEDS
from .judging import REFERENCE
from .relations import NAMES
from .seeds import CHAIN, Begin, Judged, ReportedFinding, Seed

SEED_SECONDS = 420.0
"""The time limit (s) of a seed, including shrinking; the fuzzer kills a slower process, and the seed is a finding."""
MOST_PATIENCE = 4.0
"""The largest factor by which a busy machine extends `SEED_SECONDS`."""
PLANS_OF_A_PROCESS = 200
"""The number of seeds after which a process restarts, because a Spark session grows with each query."""
HISTORIES = 200
CHAIN_EVERY = 20
"""The distance between seeds of chains: they judge streamproof's operators, the other seeds Spark's."""
SHOWING = 0.5
"""The time for scripts of known divergences after a run, as a share of the run's time."""
AGAINST = "another PySpark"
STATEFUL = (
    *("windows", "session windows", "groups", "deduplication"),
    *(f"{kind.replace('_', ' ')} join" for kind in KINDS if kind != "full"),
)
"""The stateful operators that random plans put above and below other stateful operators."""
LAST = ("full join", "deduplication within the watermark", "limit", "transformWithState")
"""The stateful operators that random plans put only above other stateful operators."""


@dataclass(frozen=True)
class CampaignOptions:
    """The options of a run of the fuzzer.

    Attributes:
        minutes: The time limit of the run (min).
        seed: The first seed.
        jobs: The number of processes.
        only: The only metamorphic relation to check; empty: all relations.
        pyspark: The version of PySpark to judge; empty: the installed PySpark.
        against: Another version of PySpark, which also judges each seed; empty: only the installed version.
        corpus: Whether the run begins with the plans of the corpus.
        histories: The number of histories for each plan.
        shown: The divergences that already have a script, by `file_name`.
    """

    minutes: float = 10.0
    seed: int = 0
    jobs: int = 1
    only: str = ""
    pyspark: str = ""
    against: str = ""
    corpus: bool = True
    histories: int = HISTORIES
    shown: frozenset[str] = frozenset()


def file_name(named: Sequence[str]) -> str:
    """Return the file name of a finding's script, without the suffix `.py`."""
    return re.sub(r"\W+", "_", "-".join(named))


@dataclass
class Tally:
    """The results of a run of the fuzzer so far.

    Attributes:
        seconds: The duration of the run so far (s).
        plans: The number of different plans that Spark ran.
        pairs: The number of judged pairs of a plan and a history.
        skipped: The number of plans that Spark didn't run, by the reason.
        runs: The number of checks of each relation.
        refusals: The number of plans that Spark refused, by Spark's error condition.
        pairs_of_operators: The pairs of stateful operators in the plans, the operator nearer to the input first.
        differences: The findings.
        named: The number of findings that each divergence explains.
    """

    seconds: float = 0.0
    plans: set[str] = field(default_factory=set)
    pairs: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    pairs_of_operators: set[tuple[str, str]] = field(default_factory=set)
    differences: list[ReportedFinding] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)

    @property
    def unnamed(self) -> list[ReportedFinding]:
        """The findings that no known divergence explains."""
        return [one for one in self.differences if not one.named]

    @property
    def never_seen(self) -> list[str]:
        """The pairs of operators that no plan or chain contained, and the metamorphic relations that were never
        checked.
        """
        chained = itertools.product(OPERATORS, OPERATORS) if self.runs[CHAINS] else ()
        drawn = (*itertools.product(STATEFUL, (*STATEFUL, *LAST)), *chained)
        pairs = (pair for pair in drawn if pair not in self.pairs_of_operators)
        relations = (name for name in (*NAMES, CHAINS) if not self.runs[name])
        return [*(f"{above} above {below}" for below, above in pairs), *relations]

    def add(self, judged: Judged) -> None:
        """Add the result of a seed to the tally."""
        if judged.skipped:
            self.skipped[judged.skipped] += 1
            return
        self.plans.add(judged.plan)
        self.pairs += judged.pairs
        self.runs += judged.runs
        self.refusals += judged.refusals
        self.pairs_of_operators |= judged.pairs_of_operators
        self.differences += judged.differences
        self.named.update(name for one in judged.differences for name in one.named)


def run(
    options: CampaignOptions,
    tally: Tally,
    say: Callable[[str], None],
    keep: Callable[[ReportedFinding], None] = lambda found: None,
) -> None:
    """Judge seeds until the time is up; the tally keeps the findings even if the run fails.

    Args:
        options: The options.
        tally: The object that collects the findings; the findings survive a failure of the run.
        say: The callback that receives the name of each step.
        keep: The callback that receives each finding as soon as a process reports the finding.

    Raises:
        BadInput: The relation is unknown, or a PySpark is unknown or unavailable.
        StreamproofError: Spark can't be started.
    """
    known = (REFERENCE.name, CHAINS, *NAMES)
    if options.only not in ("", *known):
        raise BadInput(f"--only is {options.only!r}: give one of {', '.join(known)}")
    for name, version in (("--spark-version", options.pyspark), ("--against", options.against)):
        if version:
            require_supported(name, version)
    judged = options.pyspark or installed("pyspark")
    pysparks = {version: python_of(version) for version in (judged, options.against) if version}
    if options.against and len({*pysparks.values()}) == 1:
        raise BadInput(f"--against is {options.against}, the PySpark that is judged: give another version")
    _Campaign(options, tally, say, keep, pysparks).run()


class _Campaign:
    def __init__(
        self,
        options: CampaignOptions,
        tally: Tally,
        say: Callable[[str], None],
        keep: Callable[[ReportedFinding], None],
        pysparks: Mapping[str, Path],
    ) -> None:
        self.options, self.tally, self.say, self.keep, self.pysparks = options, tally, say, keep, pysparks
        self.started = time.monotonic()
        self.until = self.started + 60 * options.minutes
        corpus = SEEDS if options.corpus and options.only != CHAINS else ()
        drawn = (drawn_seed(number, options.only) for number in itertools.count(options.seed))
        self.seeds: Iterator[str] = itertools.chain(corpus, drawn)
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.done: queue.Queue[Judged | BaseException | None] = queue.Queue()
        self.processes: set[PySparkProcess] = set()
        self.showing: set[str] = set()

    def run(self) -> None:
        threads = [threading.Thread(target=self.work, daemon=True) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        left, said = len(threads), time.monotonic()
        try:
            while left:
                with_time = max(0.1, min(5.0, self.until - time.monotonic()))
                try:
                    done = self.done.get(timeout=with_time)
                except queue.Empty:
                    done = Judged("", skipped="")
                if done is None:
                    left -= 1
                elif isinstance(done, BaseException):
                    raise done
                self.tally.seconds = time.monotonic() - self.started
                if isinstance(done, Judged) and done.seed:
                    done.differences = [replace(one, seconds=round(self.tally.seconds)) for one in done.differences]
                    self.tally.add(done)
                    for difference in done.differences:
                        self.keep(difference)
                if time.monotonic() - said > 8:
                    said = time.monotonic()
                    self.say(progress(self.tally) + self.unwritten())
        finally:
            self.stopped.set()
            for process in [*self.processes]:
                process.end(0)

    def work(self) -> None:
        """Judge seeds in Spark processes that no other thread uses."""
        try:
            while self.goes_on():
                with ExitStack() as stack:
                    self.judge_with([stack.enter_context(self.process(one)) for one in self.pysparks])
        except BaseException as error:
            if not self.stopped.is_set():
                self.done.put(error)
        finally:
            self.done.put(None)

    def process(self, version: str) -> PySparkProcess:
        return PySparkProcess(self.pysparks[version], version, Begin({}))

    def goes_on(self) -> bool:
        return not self.stopped.is_set() and (time.monotonic() < self.until or bool(self.to_show()))

    def to_show(self) -> list[ReportedFinding]:
        """Return the first finding of each divergence that has no script; return no finding after the deadline."""
        if time.monotonic() > self.until + 60 * SHOWING * self.options.minutes:
            return []
        first = {file_name(one.named): one for one in reversed(self.tally.differences) if one.named}
        return [one for name, one in first.items() if name not in self.written | self.showing | self.options.shown]

    @property
    def written(self) -> set[str]:
        """The divergences for which this run wrote a script, by `file_name`."""
        return {file_name(one.named) for one in self.tally.differences if one.script}

    def unwritten(self) -> str:
        """Return the number of divergences whose scripts are still missing after the deadline."""
        left = len(self.to_show()) + len(self.showing - self.written) if time.monotonic() > self.until else 0
        return f"; {left} scripts of divergences are still to be written" if left else ""

    def next_seed(self) -> Seed | None:
        """Return the next seed to judge; after the deadline, return a seed whose finding still needs a script; None: no
        work is left.
        """
        if not self.goes_on():
            return None
        with self.lock:
            of_run = Seed("", self.options.histories, only=self.options.only)
            if time.monotonic() < self.until:
                return replace(of_run, seed=next(self.seeds))
            left = self.to_show()
            if not left:
                return None
            self.showing.add(file_name(left[0].named))
            return replace(of_run, seed=left[0].seed, shows=left[0].named)

    def judge_with(self, processes: Sequence[PySparkProcess]) -> None:
        """Judge seeds in the given processes, until a process ends or has judged its share of seeds."""
        with self.lock:
            self.processes.update(processes)
        try:
            for _ in range(PLANS_OF_A_PROCESS):
                seed = self.next_seed()
                if seed is None:
                    return
                answers = [self.asked(process, seed) for process in processes]
                self.done.put(_compared(seed, answers, self.options.against) if len(answers) > 1 else answers[0])
                if any(process.process.poll() is not None for process in processes):
                    return
        finally:
            with self.lock:
                self.processes.difference_update(processes)

    def asked(self, process: PySparkProcess, seed: Seed) -> Judged:
        """Judge a seed in a process; if the process dies or exceeds the time limit, the seed is a finding."""
        late, limit = threading.Event(), SEED_SECONDS * patience()

        def end() -> None:
            late.set()
            process.end(0)

        watch = threading.Timer(limit, end)
        watch.daemon = True
        watch.start()
        try:
            answer: Judged = process.ask(seed)
            return answer
        except StreamproofError as error:
            if self.stopped.is_set():
                return Judged(seed.seed, skipped="the run has ended")
            why = f"it took longer than {limit:.0f} s" if late.is_set() else error.message
            ended = ReportedFinding(seed.seed, "ended", (), seed.plan, f"PySpark {process.version}: {why}")
            return Judged(seed.seed, plan=seed.plan, differences=[ended])
        finally:
            watch.cancel()


def drawn_seed(number: int, only: str) -> str:
    """Return the seed with a number: one in `CHAIN_EVERY` is for a chain of streamproof's operators, the others for
    plans.
    """
    is_chain = only == CHAINS or (not only and number % CHAIN_EVERY == 0)
    return f"{CHAIN}{number}" if is_chain else str(number)


def patience() -> float:
    """Return the factor by which to extend time limits: this machine's load for each core, between 1 and 4."""
    return min(MOST_PATIENCE, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def _compared(seed: Seed, answers: Sequence[Judged], version: str) -> Judged:
    """Compare a seed's results on two versions of PySpark; different rows are a finding, explained by the divergences
    of both versions.

    If only one of the two versions refuses a plan, count the refusal by its error condition.
    """
    here, there = answers
    runs = here.runs + Counter({AGAINST: 1})
    alone = (
        *(f"{one} only by PySpark {version}" for one in there.refusals if here.digest and not there.digest),
        *(f"{one} not by PySpark {version}" for one in here.refusals if there.digest and not here.digest),
    )
    differences = [
        *here.differences,
        *(replace(one, relation=f"{one.relation}, {version}") for one in there.differences),
    ]
    if here.digest and there.digest and here.digest != there.digest:
        names = sorted({name for one in differences for name in one.named})
        differences.append(ReportedFinding(seed.seed, f"{AGAINST}, {version}", tuple(names), here.plan))
    pairs, refusals = here.pairs + there.pairs, here.refusals + Counter(alone)
    return replace(here, runs=runs, pairs=pairs, refusals=refusals, differences=differences)


def progress(tally: Tally) -> str:
    """Return the progress of a run as one line."""
    known, unnamed = len(tally.differences) - len(tally.unnamed), len(tally.unnamed)
    return (
        f"{len(tally.plans):,} plans and {tally.pairs:,} pairs of a plan and a history in {tally.seconds:.0f} s: "
        f"{unnamed} unexplained differences, {known} explained"
    )
