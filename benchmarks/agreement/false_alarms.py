"""Counts false alarms: histories of correct operators on which a law of a check finds a difference.

Histories are drawn as in `streamproof check`, with random definitions, clock schedules, values and keys. Each round
draws new histories, with its own seed.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple

from streamproof.properties.checking.check import query_threads, shares_queries
from streamproof.properties.checking.mutation import ALL_LAWS
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.checking.running import cohort_run
from streamproof.properties.generators.draws import under_stream_time
from streamproof.properties.laws.all import asked_of
from streamproof.properties.laws.base import OWN, Comparison, Law, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic.reruns import RerunLaw
from streamproof.properties.laws.of_reference.duckdb import DuckDBOfReference
from streamproof.properties.laws.runs import Pool
from streamproof.properties.registration.registration import Registration, registered, registration_of
from streamproof.reference.core.errors import StreamproofError
from streamproof.reference.core.history import History

from ..figures import Figure, Setting, Target, figure

REFERENCE, SPARK = "reference", "spark"
FULL = {REFERENCE: 5_000_000, SPARK: 1_000_000}
SMALL = {REFERENCE: 2_000, SPARK: 500}
A_ROUND = {REFERENCE: 2_000, SPARK: 10_000}
"""The number of histories drawn at once per operator: few for the reference, because each core has its own rounds."""
STAGED = "operators in stages"
SHARE_OF_STAGED = 10
"""The number of histories of one-stage operators for each history of an operator in stages."""
SHOWN = 3
HOUR = Target("under", 3600)
NONE = Target("at most", 0)


class Disagreement(NamedTuple):
    """A history with a difference.

    Attributes:
        seed: The seed of the history's round.
        law: The violated law.
        history: The history.
        difference: The first difference.
    """

    seed: int
    law: str
    history: str
    difference: str


class Round(NamedTuple):
    """The numbers of histories and differences in a round, or in a part of a round.

    Attributes:
        seed: The seed of the histories.
        histories: The number of compared histories, including variants.
        emitted: The number of histories with expected output.
        cpu: The CPU seconds of this process.
        disagreements: Where something differs.
    """

    seed: int
    histories: int
    emitted: int
    cpu: float
    disagreements: list[Disagreement]


@dataclass
class Count:
    """The counts of all rounds so far.

    Attributes:
        name: What is compared.
        wanted: The smallest number of histories to compare.
        progress: A function that is called after each round.
        seed: The seed of the first round.
        last_seed: The seed of the last round.
    """

    name: str
    wanted: int
    progress: Callable[[str], None]
    seed: int
    histories: int = 0
    emitted: int = 0
    cpu: float = 0
    last_seed: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    @property
    def is_done(self) -> bool:
        """Return whether the benchmark has compared enough histories."""
        return self.histories >= self.wanted

    @property
    def disagreements(self) -> int:
        """Return the number of disagreements."""
        return self.broken.total()

    def add(self, one: Round) -> None:
        """Add a round, and print its first disagreements immediately."""
        for found in one.disagreements[: max(0, SHOWN - self.disagreements)]:
            self.progress(f"seed {found.seed}, {found.law}: {found.difference}\n{found.history}")
        self.broken.update(found.law for found in one.disagreements)
        self.histories, self.emitted = self.histories + one.histories, self.emitted + one.emitted
        self.cpu += one.cpu
        self.last_seed = max(self.last_seed, one.seed)
        seconds = time.monotonic() - self.started
        left = max(0.0, seconds * (self.wanted / max(self.histories, 1) - 1))
        self.progress(
            f"{self.name}: {self.histories:,} of {self.wanted:,} histories, {self.disagreements:,} disagreements, "
            f"{self.histories / seconds:,.0f} histories/s, {left / 60:.0f} min left"
        )

    def figures(self) -> list[Figure]:
        """Return the figures: the counts, and the time.

        Raises:
            StreamproofError: No history has output, so the benchmark compared nothing.
        """
        if not self.emitted:
            raise StreamproofError(f"{self.name}: no history emitted anything, so nothing was compared")
        seconds = time.monotonic() - self.started
        sizes = f"{self.histories:,} histories, seeds {self.seed} to {self.last_seed}"
        by_law = "".join(f", {law} {count:,}" for law, count in self.broken.items())
        return [
            figure(f"{self.name}: disagreements", "histories", [float(self.disagreements)], sizes + by_law, NONE),
            figure(f"{self.name}: time", "seconds", [seconds], sizes, HOUR),
            figure(f"{self.name}: rate", "histories/s", [self.histories / seconds], sizes),
            figure(f"{self.name}: Python", "CPU ms/history", [1000 * self.cpu / self.histories], sizes),
        ]


def run(setting: Setting) -> list[Figure]:
    """Count false alarms: of the reference against DuckDB, on all cores, or of Spark under the laws."""
    assert setting.on is not None
    names = setting.among([*registered()])
    wanted = setting.histories or setting.size(FULL[setting.on], SMALL[setting.on])
    if setting.on == REFERENCE:
        count = Count("the reference against DuckDB", wanted, setting.progress, setting.seed)
        _on_reference(names, count)
        return count.figures()
    figures = []
    for kind, share in {"operators of one stage": 1, STAGED: SHARE_OF_STAGED}.items():
        chosen = [one for one in map(registration_of, names) if shares_queries(one) and is_staged(one) is (share > 1)]
        if chosen:
            fewer = wanted if len(names) == 1 else -(-wanted // share)
            count = Count(f"Spark, {kind}", fewer, setting.progress, setting.seed)
            for one in rounds_on_spark(chosen, fewer, setting.seed):
                count.add(one)
                if count.is_done:
                    break
            figures += count.figures()
    return figures


def is_staged(registration: Registration) -> bool:
    """Return whether an operator has several stages on Spark."""
    return registration.spark is not None and bool(registration.spark.shared and registration.spark.shared.hops)


def a_round(on: str, operators: int, wanted: int, processes: int = 1) -> int:
    """Return the number of histories drawn at once per operator; each process has at least one round."""
    return min(A_ROUND[on], -(-wanted // (operators * processes)))


def _on_reference(names: Sequence[str], count: Count) -> None:
    """Count with one process per core; each round belongs to one process."""
    each = a_round(REFERENCE, len(names), count.wanted, cores())
    # Don't fork, because a fork of a process with threads, such as DuckDB's, isn't safe.
    with ProcessPoolExecutor(cores(), get_context("spawn"), initializer=_ends_at_interrupt) as processes:
        running: set[Future[Round]] = set()
        number = 0
        try:
            while running or not count.is_done:
                # Queue one round more than can run, so that at the end no unneeded round starts.
                while len(running) <= cores() and count.histories + len(running) * each * len(names) < count.wanted:
                    running.add(processes.submit(round_on_reference, names, each, count.seed + number))
                    number += 1
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    count.add(one.result())
        finally:
            processes.shutdown(wait=True, cancel_futures=True)


def _ends_at_interrupt() -> None:
    """Let Ctrl-C end a worker process immediately and silently, because the parent process prints the report."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def round_on_reference(names: Sequence[str], each: int, seed: int) -> Round:
    """Compare the reference with DuckDB on a round of histories.

    Every second round uses stream time, because `streamproof check` checks the reference under both clocks.

    Args:
        names: The operators.
        each: The number of histories per definition.
        seed: The seed of the draws.
    """
    started = time.process_time()
    law = DuckDBOfReference()
    registrations = [one for one in map(registration_of, names) if law.not_checked(one) is None]
    total = emitted = 0
    found: list[Disagreement] = []
    for pool in pools_on_spark(registrations, each, seed):
        drawn = [history for sample in pool for history in sample.histories]
        histories = list(map(under_stream_time, drawn)) if seed % 2 else drawn
        comparisons = law.recheck([Case(history) for history in histories])
        total += len(histories)
        emitted += sum(bool(comparison.expected[1].result) for comparison in comparisons)
        for history, comparison in zip(histories, comparisons, strict=True):
            if comparison.differences:
                found.append(disagreement(seed, law, history, comparison))
    return Round(seed, total, emitted, time.process_time() - started, found)


def rounds_on_spark(registrations: Sequence[Registration], wanted: int, seed: int) -> Iterator[Round]:
    """Yield the counts of each pool of histories on Spark, endlessly. The next pool runs while this process judges a
    pool.

    The laws that need no further query judge the histories: they compare changes, labels, tables, DuckDB's result, the
    state, and a history with its variant.
    """
    no_further_query = [law for law in ALL_LAWS if not isinstance(law, RerunLaw)]
    laws = {one.name: asked_of(one, no_further_query)[0] for one in registrations}
    each = a_round(SPARK, len(registrations), wanted)
    with query_threads(1) as executor:
        waiting: tuple[int, Pool] | None = None
        for of_seed, pool in _pools(registrations, laws, each, seed):
            pool.prepare([pool.plain], executor)
            if waiting is not None:
                yield _judged(*waiting, laws)
            waiting = of_seed, pool


def _pools(
    registrations: Sequence[Registration], laws: Mapping[str, Sequence[Law]], each: int, seed: int
) -> Iterator[tuple[int, Pool]]:
    while True:
        for samples in pools_on_spark(registrations, each, seed, all_laws=True):
            yield seed, Pool([cohort_run(one, laws[one.registration.name], seed, [OWN]) for one in samples])
        seed += 1


def _judged(seed: int, pool: Pool, laws: Mapping[str, Sequence[Law]]) -> Round:
    started = time.process_time()
    total = emitted = 0
    found: list[Disagreement] = []
    for member in pool.members:
        for run in member.shares():
            total += len(run.histories)
            emitted += sum(bool(outcome.entries) for outcome in run.outcomes)
            for law in laws[member.sample.registration.name]:
                if law.is_asked_of(member.sample):
                    for violation in law.judge(run, LawResult(law)):
                        found.append(disagreement(seed, law, violation.case.history, violation.comparison))
    return Round(seed, total, emitted, time.process_time() - started, found)


def disagreement(seed: int, law: Law, history: History, comparison: Comparison) -> Disagreement:
    """Return the text of a history with a difference."""
    return Disagreement(seed, law.name, history.to_text(), str(comparison.differences[0]))
