"""The check of a job without Spark: what runs is a function over the rows of each batch."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from memory_jobs import CLICKS, RUN, Batches, MemoryRunner, checked, copy, options
from streamproof import BadInput, Inconclusive, Violated, check_job, static_join
from streamproof.properties.checking.jobs.arguments import check_options
from streamproof.properties.checking.jobs.invariants import _Invariants
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds
from streamproof.properties.generators.columns.model import Expected, JobHistory, Source
from streamproof.properties.laws.expected.oracle import Oracle
from streamproof.properties.laws.expected.oracles import FORGETS, BatchOracle, JobOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared, Output
from streamproof.properties.witnesses.run_options import PLAIN, Crash, Mode, RunOptions


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


def test_the_smallest_history_on_which_a_job_differs_is_one_row() -> None:
    with pytest.raises(Violated, match="a copy expects") as raised:
        checked(without_the_last, Copies())
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == 1
    assert not counterexample.emitted[0]


def test_a_job_whose_results_other_keys_change_is_inconclusive_until_each_history_runs_alone() -> None:
    class OfTheFirstUser(Copies):
        def expected(
            self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions
        ) -> list[Expected]:
            def own(history: JobHistory) -> list[list[Row]]:
                users = [arrival.row["user"] for arrival in history.arrivals]
                return [[row for _, row in batch if row["user"] == users[0]] for batch in history.batches]

            return [Expected("batches", own(history)) for history in histories]

    # What a sink has written says nothing of the columns of its table.
    for given in ({}, {"unique": ["user", "window"]}):
        with pytest.raises(
            Inconclusive, match=r"alone in its query it agrees.*If rows of other keys may change a result"
        ):
            JobCheck(options(only_one_user, **given), OfTheFirstUser(), Variation(RUN)).check(40)
        alone = options(only_one_user, **given, alone=True)
        assert JobCheck(alone, OfTheFirstUser(), Variation(RUN)).check(40).alone == "alone=True"


@pytest.mark.parametrize(
    "oracle", [BatchOracle(), BatchOracle(copy), JobOracle(copy), JobOracle(copy, comparing="end")]
)
def test_an_oracle_that_runs_a_job_itself_is_given_the_check_s_witness(oracle: Oracle) -> None:
    assert checked(copy, oracle).histories == 40
    if oracle != BatchOracle():
        with pytest.raises(Violated):
            checked(without_the_last, oracle)


class AllRows(Oracle):
    """All rows are expected by the end, however late; it knows nothing of late rows."""

    name = "all rows"

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        return [Expected("end", [[arrival.row for arrival in history.arrivals]]) for history in histories]


def in_order(batches: Batches) -> Batches:
    """Lose each row that is older than a row of an earlier batch."""
    reached: list[Any] = []
    kept = []
    for rows in batches:
        kept.append([row for row in rows if not reached or row["at"] >= max(reached)])
        reached += [row["at"] for row in rows]
    return kept


def test_a_history_for_an_oracle_without_lateness_is_shrunk_to_rows_that_are_not_late() -> None:
    late = timedelta(minutes=7)
    with pytest.raises(Violated) as raised:
        JobCheck(options(in_order, out_of_order="7 minutes"), AllRows(), Variation(RUN)).check(60)
    counterexample: Any = raised.value.counterexample
    history = counterexample.history
    (first, second) = (row["at"] for _, row in history.arrivals)
    assert first - late < second < first
    assert all(
        from_microseconds(clock) - late < row["at"]
        for clock, batch in zip(history.clock, history.batches[1:], strict=False)
        for _, row in batch
    )


def test_the_end_of_a_history_closes_everything_where_the_oracle_wants_it_closed() -> None:
    def last_clocks(oracle: Oracle) -> list[timedelta]:
        histories = JobCheck(options(copy), oracle, Variation(RUN)).draws.draw(20)
        return [
            from_microseconds(history.clock[-1]) - max(row["at"] for _, row in history.arrivals)
            for history in histories
            if history.arrivals
        ]

    assert min(last_clocks(AllRows())) >= timedelta(days=1)
    assert max(last_clocks(Copies())) < timedelta(days=1)


def test_histories_that_run_alone_share_out_every_crash_among_them() -> None:
    crashed: set[Crash] = set()

    @dataclass(frozen=True)
    class Noting(MemoryRunner):
        def run(self, *given: Any) -> Output:
            crashed.update(given[-1].crash_in)
            return super().run(*given)

    assert _Invariants(options(copy, Noting, alone=True)).report(30, ()).held["a crash"] == 30
    assert crashed == {*RUN.crashes_everywhere(6)}


def test_histories_on_which_no_row_is_expected_are_inconclusive() -> None:
    class Nothing(Copies):
        def expected(
            self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions
        ) -> list[Expected]:
            return [Expected("batches", [[] for _ in history.batches]) for history in histories]

    with pytest.raises(Inconclusive, match="rows that are expected, on one in twenty histories"):
        checked(lambda batches: [[] for _ in batches], Nothing())


def test_a_job_that_loses_a_column_is_refused_where_the_rule_names_it_and_else_the_report_does() -> None:
    def users(batches: Batches) -> Batches:
        return [[{"user": row["user"], "at": row["at"]} for row in batch] for batch in batches]

    looked_up: Any = [[{"user": "b"}], "user", "left"]
    assert "the columns amount, which are expected" in "; ".join(checked(users, static_join(*looked_up)).not_checked)
    assert (
        checked(users, static_join(*looked_up, result=["user", "at"])).not_checked
        == checked(copy, static_join(*looked_up)).not_checked
    )
    assert checked(copy, static_join(*looked_up, result=["user", "at"])).not_checked == [
        "the columns amount, of which nothing is expected",
        "null event times, in at of clicks: Input(…, null_times=0.05) draws some",
    ]
    with pytest.raises(BadInput, match="the result has the columns user, at, and not 'amount'"):
        checked(users, static_join(*looked_up, result=["user", "amount"]))


def test_few_histories_are_inconclusive() -> None:
    with pytest.raises(Inconclusive, match=r"agrees with a copy on all 5 histories, .* 10 histories at the least"):
        JobCheck(options(copy), Copies(), Variation(RUN)).check(5)


def test_fewer_than_half_of_the_histories_that_were_to_run_alone_are_inconclusive() -> None:
    soon_over = Variation(replace(RUN, seconds=1e-9))
    with pytest.raises(
        Inconclusive, match=r"on all 1 histories, .* unmet: 20 histories at the least;.* query of its own"
    ):
        JobCheck(options(copy, alone=True, least_alone=20), Copies(), soon_over).check(40)
    assert JobCheck(options(copy, alone=True, least_alone=20), Copies(), Variation(RUN)).check(20).histories == 20


@pytest.mark.parametrize(("histories", "least"), [(None, 15), (50, 25), (51, 26), (1, 1)])
def test_half_of_the_histories_that_are_asked_for_must_run(histories: int | None, least: int) -> None:
    defaults = {name: one.default for name, one in inspect.signature(check_job).parameters.items()}
    given = {**defaults, "job": copy, "inputs": [CLICKS], "histories": histories}
    assert check_options(given).least_alone == least


def test_a_job_that_depends_on_the_cuts_between_batches_breaks_that_invariant() -> None:
    assert _Invariants(options(copy)).report(30, ()).held.keys() >= {"a crash", "the order within a batch"}
    with pytest.raises(Violated, match="with a single cut between batches") as raised:
        _Invariants(options(the_first)).report(30, ())
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == 2


def test_a_job_is_not_asked_what_its_plan_or_its_keys_rule_out() -> None:
    @dataclass(frozen=True)
    class Forgetting(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(frozenset({FORGETS})))

    forgets = "dropDuplicatesWithinWatermark forgets at the end of a batch"
    report = _Invariants(options(copy, Forgetting, alone=True)).report(20, ())
    assert [*report.held] == ["a restart", "a crash", "the number of partitions"]
    assert report.not_checked == [
        f"the cuts between batches: {forgets}",
        f"the order within a batch: {forgets}",
        "histories of other keys, for each runs in a query of its own: alone=True",
    ]
    beside = _Invariants(options(copy)).report(20, ())
    assert (beside.held["histories of other keys in the query"], beside.not_checked) == (3, [])


def test_a_history_of_an_invariant_is_refused_with_who_takes_it() -> None:
    variation = '{"law": "a crash", "given": [[0, true, "before its output"]]}'
    header = f'{{"job": "h", "inputs": {{"clicks": "{CLICKS.schema}"}}, "variation": {variation}}}\n'
    with pytest.raises(BadInput, match=r"violates the invariant 'a crash' .*: give it to invariants\(…\)"):
        JobCheck(options(copy), Copies(), Variation(RUN)).replay([header])
