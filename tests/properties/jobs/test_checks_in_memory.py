"""The check of a job without Spark: what runs is a function over the rows of each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from streamproof import Inconclusive, Input, Violated
from streamproof.properties.jobs.arguments import CheckOptions, job_options
from streamproof.properties.jobs.check import JobCheck
from streamproof.properties.jobs.histories.inputs import resolve_all
from streamproof.properties.jobs.invariants import _Invariants
from streamproof.properties.jobs.model import Expected, JobHistory, Row, Source
from streamproof.properties.jobs.oracle import Oracle
from streamproof.properties.jobs.oracles import BatchOracle, JobOracle
from streamproof.properties.jobs.queries.running import REPEATED, RESTORED, Declared, Output, Runner
from streamproof.properties.jobs.variations import Variation
from streamproof.properties.witnesses.run_options import PLAIN, Mode, RunOptions

Batches = list[list[dict[str, Any]]]
CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


@dataclass(frozen=True)
class MemoryRunner(Runner):
    """Runs the job, which is a function from batches of rows to batches of rows, in this process."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared()

    def run(
        self, batches: Sequence[Mapping[str, pa.Table]], clock: Sequence[int] = (), run: RunOptions = PLAIN
    ) -> Output:
        job: Any = self.job
        rows = [[row for table in batch.values() for row in table.to_pylist()] for batch in batches]
        return Output(job(rows), covered=frozenset({REPEATED, RESTORED}), crashed=[(at, True) for at in run.crash_in])

    def as_batch(self, tables: Mapping[str, pa.Table], run: RunOptions = PLAIN) -> list[dict[str, Any]]:
        return [row for batch in self.run([tables]).batches for row in map(dict, batch)]


class Copies(Oracle):
    """A new oracle: each row is expected in its batch."""

    name = "a copy"
    takes_late = True

    def closes(self, mode: Mode) -> bool:
        return False

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        return [
            Expected("batches", [[arrival.row for arrival in batch] for batch in history.batches])
            for history in histories
        ]


def copy(batches: Batches) -> Batches:
    return batches


def without_the_last(batches: Batches) -> Batches:
    """Lose the last row of each batch."""
    return [rows[:-1] for rows in batches]


def only_one_user(batches: Batches) -> Batches:
    """Keep the rows of the first user: that is right for one user at a time."""
    users = [row["user"] for rows in batches for row in rows]
    return [[row for row in rows if row["user"] == users[0]] for rows in batches]


def the_first(batches: Batches) -> Batches:
    """Emit the first row of each user of a batch."""
    return [list({row["user"]: row for row in reversed(rows)}.values()) for rows in batches]


def options(job: Callable[[Batches], Batches], **more: Any) -> CheckOptions:
    resolved = resolve_all([CLICKS], 0)
    return CheckOptions(runner=MemoryRunner(job, [given.source for given in resolved]), inputs=resolved, **more)


RUN = job_options("default", "append", None, 60)


def checked(job: Callable[[Batches], Batches], oracle: Oracle) -> Any:
    return JobCheck(options(job), oracle, Variation(RUN)).check(40)


def test_a_new_oracle_is_one_class_that_says_what_it_expects() -> None:
    report = checked(copy, Copies())
    assert (report.oracle, report.histories, report.alone, report.comparing) == ("a copy", 40, "", "batches")
    assert report.expecting > 30


def test_the_smallest_history_on_which_a_job_differs_is_one_row() -> None:
    with pytest.raises(Violated, match="a copy expects") as raised:
        checked(without_the_last, Copies())
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == 1
    assert not counterexample.emitted[0]


def test_histories_of_a_job_that_brings_them_together_each_run_alone() -> None:
    class OfTheFirstUser(Copies):
        def expected(
            self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions
        ) -> list[Expected]:
            def own(history: JobHistory) -> list[list[Row]]:
                users = [arrival.row["user"] for arrival in history.arrivals]
                return [[row for _, row in batch if row["user"] == users[0]] for batch in history.batches]

            return [Expected("batches", own(history)) for history in histories]

    report = checked(only_one_user, OfTheFirstUser())
    assert "alone in its query it agrees" in report.alone
    # What a sink has written says nothing of the columns of its table.
    assert JobCheck(options(only_one_user, unique=["user", "window"]), OfTheFirstUser(), Variation(RUN)).check(40).alone


@pytest.mark.parametrize(
    "oracle", [BatchOracle(), BatchOracle(copy), JobOracle(copy), JobOracle(copy, comparing="end")]
)
def test_an_oracle_that_runs_a_job_itself_is_given_the_check_s_witness(oracle: Oracle) -> None:
    assert checked(copy, oracle).histories == 40
    if oracle != BatchOracle():
        with pytest.raises(Violated):
            checked(without_the_last, oracle)


def test_few_histories_are_inconclusive() -> None:
    with pytest.raises(Inconclusive, match=r"agrees with a copy on all 5 histories, .* 10 histories at the least"):
        JobCheck(options(copy), Copies(), Variation(RUN)).check(5)


def test_a_job_that_depends_on_the_cuts_between_batches_breaks_that_invariant() -> None:
    assert _Invariants(options(copy), RUN, None).report(30, ()).held.keys() >= {"a crash", "the order within a batch"}
    with pytest.raises(Violated, match="with a single cut between batches") as raised:
        _Invariants(options(the_first), RUN, None).report(30, ())
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == 2
