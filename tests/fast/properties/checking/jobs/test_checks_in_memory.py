"""The check of a job without Spark: what runs is a function over the rows of each batch."""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from memory_jobs import CLICKS, RUN, Batches, MemoryRunner, checked, copy, options
from streamproof import BadInput, Inconclusive, Input, Sink, Violated, static_join
from streamproof.properties.checking.fuzzing.divergences import EXCLUDED_RULES, FILTERED_WATERMARK
from streamproof.properties.checking.jobs import job_check
from streamproof.properties.checking.jobs.arguments import CheckOptions, check_options
from streamproof.properties.checking.jobs.conclusion import MIN_HISTORIES, tell_of_few
from streamproof.properties.checking.jobs.invariants import IN_COMMIT, Invariants, faults_of
from streamproof.properties.checking.jobs.job_check import (
    MAX_WITHOUT_CLOCK,
    OF_PRODUCTION,
    OTHER_MOMENTS,
    TWO_RUNS,
    JobCheck,
)
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_jobs import AS_FOUND
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds, microseconds
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Source
from streamproof.properties.generators.columns.packing import UnreadableKey
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.laws.all import invariants as laws
from streamproof.properties.laws.all import saved_variation
from streamproof.properties.laws.expected.oracle import Oracle
from streamproof.properties.laws.expected.oracles import FORGETS, BatchOracle, JobOracle
from streamproof.properties.laws.metamorphic.cuts import Cuts
from streamproof.properties.laws.metamorphic.order import OrderLaw
from streamproof.properties.laws.metamorphic.sink_fault import SINK_FAULTS
from streamproof.properties.laws.variation import CHANGED, Invariant, Variation
from streamproof.properties.system import progress
from streamproof.properties.system.progress import telling
from streamproof.properties.system.time_limit import within_seconds
from streamproof.properties.witnesses.job.dying.faults import FAULTS, NO_FAULT, FaultOutcome
from streamproof.properties.witnesses.job.plan.grouping import Grouping
from streamproof.properties.witnesses.job.plan.plans import Plan, WatermarkColumn
from streamproof.properties.witnesses.job.plan.tables import TablesUsed
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED, Declared, QueryOutput
from streamproof.properties.witnesses.job.witness import OTHER_RELATION, OTHER_STATE, keyed_tables, why_unkeyed
from streamproof.properties.witnesses.run_options import PLAIN, Crash, Mode, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


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
    assert not counterexample.actual[1][0]


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
            Inconclusive, match=r"in its own query this history agrees.*If rows of other keys may change a result"
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


@dataclass(frozen=True)
class LosingMany(MemoryRunner):
    """Where it dies, a batch of many rows loses all but four."""

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        output = super().run(*given, **named)
        return replace(output, batches=[rows[:4] for rows in output.batches]) if output.crashed else output


@pytest.mark.usefixtures("unshrunk")
def test_a_loss_that_no_history_alone_shows_is_found_by_several_together() -> None:
    with pytest.raises(Violated, match="dying in") as found:
        Invariants(options(copy, LosingMany), [law.of_jobs for law in laws() if law.of_jobs != "a crash"]).report(
            20, ()
        )
    counterexample: Any = found.value.counterexample
    assert max(map(len, counterexample.history.batches)) > 4


@pytest.mark.parametrize(
    "given",
    [
        Input(CLICKS.schema, key="user", identity="at"),
        Input("user string", key="user", format="kafka", value="debezium"),
    ],
    ids=["copies of an event", "changes of a table"],
)
def test_histories_whose_rows_belong_together_are_not_put_together(given: Input) -> None:
    for inputs in ([given], [given, replace(CLICKS, name="views")]):
        made = replace(options(copy), inputs=resolve_all(inputs, 0))
        assert not JobCheck(made, Copies(), Variation(RUN)).can_be_one
    plain = JobCheck(options(copy), Copies(), Variation(RUN))
    assert plain.can_be_one
    assert plain.as_one([JobHistory(((),))] * 2) == JobHistory(((),))


WITHOUT_KEY = Input("user string, at timestamp, amount bigint", name="clicks")


@dataclass(frozen=True)
class Counting(MemoryRunner):
    """Counts its queries by the number of their rows."""

    ran: ClassVar[Counter[int]] = Counter()

    def run(self, batches: Sequence[Any], *given: Any, **named: Any) -> QueryOutput:
        self.ran[sum(len(table) for tables in batches for table in tables.values())] += 1
        return super().run(batches, *given, **named)


def test_the_rows_of_histories_without_a_key_run_as_one_history_in_one_query_for_each_invariant() -> None:
    Counting.ran.clear()
    report = Invariants(options(copy, Counting, WITHOUT_KEY)).report(12, ())
    assert {*report.laws.values()} == {12}
    assert min(Counting.ran) > 40
    plain = 2  # with late rows, and without them, where the end alone is compared
    assert Counting.ran.total() == plain + len(report.laws)
    assert (
        "histories with other keys, because the rows of all histories ran as one history: input clicks has no key"
        in str(report)
    )


def test_of_rows_that_differ_as_one_history_the_smallest_history_is_shown() -> None:
    @dataclass(frozen=True)
    class LosingOne(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            output = super().run(*given, **named)
            return replace(output, batches=without_the_last(output.batches)) if output.crashed else output

    with pytest.raises(Violated, match="The rows of 12 histories, run as one history, differ") as found:
        Invariants(options(copy, LosingOne, WITHOUT_KEY)).report(12, ())
    counterexample: Any = found.value.counterexample
    assert len(counterexample.history.arrivals) == 1


def test_histories_whose_result_has_lost_their_key_keep_their_own_keys_as_one_history() -> None:
    runs: list[set[str]] = []

    def of_amounts(batches: Batches) -> Batches:
        runs.append({row["user"] for rows in batches for row in rows})
        return [[{"amount": row["amount"]} for row in rows] for rows in batches]

    report = Invariants(options(of_amounts)).report(12, ())
    assert {*report.laws.values()} == {12}
    each = {f"{number:05d}|" for number in range(1, 13)}
    assert [{user[:6] for user in users if "|" in user} for users in runs[1:]] == [each] * len(runs[1:])


def test_a_job_that_emits_nothing_for_one_history_is_given_the_rows_of_all_as_one() -> None:
    def frequent(batches: Batches) -> Batches:
        def often(user: str, rows: list[dict[str, Any]]) -> bool:
            return sum(row["user"] == user for row in rows) > 6

        return [[row for row in rows if often(row["user"], rows)] for rows in batches]

    report = Invariants(options(frequent), ["the cuts between batches"]).report(30, ())
    assert {*report.laws.values()} == {30}
    assert "the rows of all histories ran as one history: the job emits no row for the rows of one history" in str(
        report
    )


def test_a_report_says_first_that_no_column_was_left_to_compare() -> None:
    @dataclass(frozen=True)
    class Stamping(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(["stamped"], ["stamped"], plan=Plan(of_clock=frozenset({"stamped"})))

    def stamped(batches: Batches) -> Batches:
        return [[{"stamped": row["amount"]} for row in rows] for rows in batches]

    report = Invariants(options(stamped, Stamping, WITHOUT_KEY)).report(10, ())
    assert str(report).splitlines()[1].startswith("Only the number of rows was compared, because no column")


def test_histories_whose_keys_may_share_an_event_are_not_asked_beside_each_other() -> None:
    orders = Input("shop string, at timestamp, n bigint, id string", key="shop", name="clicks")
    asked = {}
    for identity in ("n", "id"):
        report = Invariants(options(copy, clicks=replace(orders, identity=identity))).report(30, ())
        asked[identity] = (PACKING in report.laws, any(one.startswith(PACKING) for one in report.not_checked))
    assert asked == {"n": (False, True), "id": (True, False)}


PACKING, CUTS = "histories of other keys in the query", "the cuts between batches"


def test_a_broken_invariant_names_those_that_held_and_those_that_were_not_run() -> None:
    def by_cuts(batches: Batches) -> Batches:
        return [rows[:1] for rows in batches]

    asked = [law.of_jobs for law in laws() if law.of_jobs in ("a restart", CUTS, "the number of partitions")]
    checks = Invariants(options(by_cuts), [law.of_jobs for law in laws() if law.of_jobs not in asked])
    with pytest.raises(Violated) as raised:
        checks.report(20, ())
    (held,) = raised.value.notes
    before, after = asked[: asked.index(CUTS)], asked[asked.index(CUTS) + 1 :]
    done = "; ".join(f"{law} (20 histories)" for law in before) or "nothing was run"
    assert held == f"Held before: {done}. Not checked after the violation: {'; '.join(after) or 'none'}."
    assert len(before) + len(after) == 2


def test_invariants_for_which_no_time_is_left_leave_a_check_inconclusive() -> None:
    with within_seconds(60):
        assert len(Invariants(options(copy)).report(10, ()).laws) > 5
    with within_seconds(0), pytest.raises(Inconclusive, match=r"not run on .* time limit .* a restart; a crash; .*"):
        Invariants(options(copy)).report(20, ())


@dataclass(frozen=True)
class Filtered(MemoryRunner):
    """Spark moves a filter of its plan below the watermark: without the check's clock, batches lose a row."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared(divergences=(FILTERED_WATERMARK.name,))

    def run(self, batches: Any, clock: Sequence[int], run: RunOptions, *given: Any, **named: Any) -> QueryOutput:
        output = super().run(batches, clock, run, *given, **named)
        as_written = clock or EXCLUDED_RULES in run.settings
        return output if as_written else replace(output, batches=without_the_last(output.batches))


class FilteredSink(Filtered):
    """Only the query shows the plan."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared()

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        return replace(super().run(*given, **named), divergences=(FILTERED_WATERMARK.name,))


@pytest.mark.parametrize("runner", [Filtered, FilteredSink])
def test_a_filter_that_moves_below_the_watermark_is_violated_by_a_history_without_the_check_s_clock(
    runner: type[MemoryRunner],
) -> None:
    with pytest.raises(Violated) as raised:
        JobCheck(options(copy, runner), Copies(), Variation(RUN)).check(40)
    assert OF_PRODUCTION in str(raised.value)
    assert FILTERED_WATERMARK.remedy in str(raised.value)
    counterexample: Any = raised.value.counterexample
    assert not counterexample.history.clock
    assert len(counterexample.history.arrivals) == 1


def test_a_divergence_is_not_named_as_a_cause_where_the_job_differs_without_the_optimizer_s_rules_too() -> None:
    with pytest.raises(Violated) as raised:
        JobCheck(options(without_the_last, Filtered), Copies(), Variation(RUN)).check(40)
    assert FILTERED_WATERMARK.remedy not in str(raised.value)


def test_a_report_first_names_the_filter_below_the_watermark_and_how_it_was_judged() -> None:
    class Harmless(Filtered):
        def run(self, batches: Any, clock: Sequence[int], run: RunOptions, *given: Any, **named: Any) -> QueryOutput:
            return MemoryRunner.run(self, batches, clock, run, *given, **named)

    report = JobCheck(options(copy, Harmless), Copies(), Variation(RUN)).check(40)
    assert FILTERED_WATERMARK.remedy in str(report).splitlines()[1]
    assert report.limits[-1] == f"{MAX_WITHOUT_CLOCK} histories also ran without the check's clock, and agree"
    # What all rows are at the end can't tell when they are emitted.
    assert OTHER_MOMENTS in str(JobCheck(options(copy, Filtered), AllRows(), Variation(RUN)).check(40))


class LosingSink(MemoryRunner):
    """What the sink holds at the end lacks the first row."""

    def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
        return QueryOutput([[row for batch in batches for table in batch.values() for row in table.to_pylist()][1:]])


def test_a_row_that_a_sink_lacks_is_shown_in_whatever_batch_it_is_expected() -> None:
    given = replace(options(copy, LosingSink), runner=LosingSink(Sink(copy, copy), options(copy).runner.sources))
    check = JobCheck(given, Copies(), Variation(RUN))
    early = JobHistory(((Arrival("clicks", {"user": "a", "at": AT, "amount": 1}),), ()), (0, 0))
    shown = check.counterexample(early, check.variation, check.judge.compare_alone(early, check.variation))
    assert [one.side for one in shown.rows] == ["only expected"]


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


@pytest.mark.parametrize(("oracle", "behind"), [(AllRows(), 1), (Copies(), 0)])
def test_no_empty_batch_follows_the_batch_that_differs_but_the_batch_that_closes(oracle: Oracle, behind: int) -> None:
    at_times = Variation(replace(RUN, processing_time=True))
    with pytest.raises(Violated) as raised:
        JobCheck(options(without_the_last), oracle, at_times).check(40)
    counterexample: Any = raised.value.counterexample
    history = counterexample.history
    used = max(number for number, batch in enumerate(history.batches) if batch)
    assert len(history.batches) == len(history.clock) == used + 1 + behind
    assert from_microseconds(history.clock[-1]) - history.arrivals[-1].row["at"] >= behind * timedelta(days=1)


def of_two_faults(batches: Batches) -> Batches:
    """Emit a row of a larger batch twice, and lose a row of user b that is alone in its batch."""
    return [[] if [row["user"] for row in rows] == ["b"] else rows + rows[2:3] for rows in batches]


def test_the_violation_as_found_is_kept_beside_a_smaller_one_that_differs_in_another_way(tmp_path: Path) -> None:
    drawn = [Arrival("clicks", {"user": user, "at": AT, "amount": 1}) for user in "bab"]
    history = JobHistory((tuple(drawn),), (microseconds(AT),))
    check = JobCheck(options(of_two_faults, folder=tmp_path), Copies(), Variation(RUN))
    compared = check.judge.compare_alone(history, check.variation)
    with pytest.raises(Violated) as raised:
        check.raise_smallest(history, compared, check.variation, head="1 differs.", started=time.monotonic())
    shrunk, found = raised.value.counterexample, raised.value.as_found
    assert isinstance(shrunk, Counterexample)
    assert found is not None
    assert ([len(one.history.arrivals) for one in (shrunk, found)], found.history) == ([1, 3], history)
    first, told = str(raised.value).split(AS_FOUND)
    assert first.startswith(shrunk.sentence)
    assert found.sentence in told
    assert re.search("a copy expects user 'b', .* amount 1 twice, and .* emits it 3 times", found.sentence)
    assert first.count("Saved in") == told.count("Saved in") == 1
    # Both are run first the next time.
    again = JobCheck(options(of_two_faults, folder=tmp_path), Copies(), Variation(RUN))
    with pytest.raises(Violated, match="2 of 2 histories, saved or given as examples, still differ"):
        again.replay([])


@pytest.mark.parametrize(("job", "rows"), [(without_the_last, 1), (of_two_faults, 1)])
def test_a_violation_that_was_shrunk_to_the_same_difference_is_kept_alone(job: Any, rows: int, tmp_path: Path) -> None:
    drawn = [Arrival("clicks", {"user": user, "at": AT, "amount": 1}) for user in "ab"]
    history = JobHistory(((drawn[0],), (drawn[1],)), (microseconds(AT),) * 2)
    check = JobCheck(options(job, folder=tmp_path), Copies(), Variation(RUN))
    compared = check.judge.compare_alone(history, check.variation)
    with pytest.raises(Violated) as raised:
        check.raise_smallest(history, compared, check.variation, head="1 differs.", started=time.monotonic())
    assert raised.value.as_found is None
    assert len([*tmp_path.iterdir()]) == rows


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
        def run(self, *given: Any) -> QueryOutput:
            crashed.update(given[-1].crash_in)
            return super().run(*given)

    assert Invariants(options(copy, Noting, alone=True)).report(30, ()).laws["a crash"] == 30
    assert crashed == {*RUN.crashes_everywhere(6)}


def refuses_large_amounts(batches: Batches) -> Batches:
    for row in (row for rows in batches for row in rows):
        if row["amount"] and row["amount"] > 2:
            raise QueryFailed(f"can't take {row['user']} {row['amount']}")
    return batches


@pytest.mark.parametrize("seconds", [60, 1e-9])
def test_a_failed_query_names_a_value_of_its_own_table_or_the_limit_that_ended_the_search(seconds: float) -> None:
    run = Variation(replace(RUN, seconds=seconds))
    with pytest.raises(QueryFailed) as raised:
        JobCheck(options(refuses_large_amounts), Copies(), run).check(40)
    text = str(raised.value)
    if seconds == 60:
        said = re.search(r"can't take (\w+) (\d+)\n", text)
        assert said is not None
        assert re.search(f"batch 0   '{said[1]}' .* {said[2]}$", text, re.MULTILINE)
    else:
        assert text.endswith(". The search for the fewest rows that make it fail stopped after 0 s, its limit")


def test_histories_on_which_no_row_is_expected_are_inconclusive() -> None:
    class Nothing(Copies):
        def expected(
            self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions
        ) -> list[Expected]:
            return [Expected("batches", [[] for _ in history.batches]) for history in histories]

    hint = r'in one of twenty histories.* list values that pass, Input\(…, values={"amount": \[…\]}\)'
    with pytest.raises(Inconclusive, match=hint):
        checked(lambda batches: [[] for _ in batches], Nothing())


def test_the_number_that_a_job_compares_an_aggregate_with_is_listed_with_a_column_to_list_values_of() -> None:
    @dataclass(frozen=True)
    class Comparing(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(thresholds=frozenset({("total", "100")})))

    (left,) = JobCheck(options(copy, Comparing), Copies(), Variation(RUN)).check(20).not_checked[:1]
    assert left.endswith('total at 100: Input(…, values={"amount": […]}) draws some')


def test_a_job_that_loses_a_column_is_refused_where_the_rule_names_it_and_else_the_report_does() -> None:
    def users(batches: Batches) -> Batches:
        return [[{"user": row["user"], "at": row["at"]} for row in batch] for batch in batches]

    looked_up: Any = [[{"user": "b"}], "user", "left"]
    for job, result, limit in [
        (users, None, "Not compared: the columns amount: the oracle returns them, and the job's result lacks them"),
        (copy, ["user", "at"], "Not compared: the columns amount: the oracle doesn't return them"),
        (users, ["user", "at"], ""),
        (copy, None, ""),
    ]:
        report = checked(job, static_join(*looked_up, result=result))
        assert report.limits == [limit] * bool(limit)
        assert report.not_checked == ["null event times, in at of clicks: Input(…, null_times=0.05) draws some"]
        assert str(report).splitlines()[1:] == [
            *(f"{limit}." for limit in report.limits),
            f"Not checked: {report.not_checked[0]}.",
        ]
    with pytest.raises(BadInput, match="the result has the columns user, at, and not 'amount'"):
        checked(users, static_join(*looked_up, result=["user", "amount"]))


def test_settings_and_triggers_of_the_job_are_told_in_the_first_lines() -> None:
    no_data = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}

    @dataclass(frozen=True)
    class Setting(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(settings={"spark.a": "1"})

        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return replace(super().run(*given, **named), settings=no_data, triggers=["processingTime='1 hour'"])

    told = [
        "Not checked: the trigger processingTime='1 hour': the check decides which rows each batch contains.",
        "Set by the job: spark.a=1, spark.sql.streaming.noDataMicroBatches.enabled=false.",
    ]
    for report in (
        JobCheck(options(copy, Setting), Copies(), Variation(RUN)).check(20),
        Invariants(options(copy, Setting)).report(20, ()),
    ):
        assert str(report).splitlines()[1:3] == told
        assert report.checked.notes[-len(told) - len(report.not_checked) :][:2] == told


def steps_of(monkeypatch: pytest.MonkeyPatch, check: Callable[[], Any]) -> list[str]:
    """Return the steps that a check tells, each once."""
    monkeypatch.setattr(progress, "EVERY_S", 0)
    lines: list[str] = []
    with telling(lines.append), contextlib.suppress(Violated, QueryFailed):
        check()
    return [*dict.fromkeys(re.sub(r"^.*?:\d+\)(, |: )|( \(\d+ s\)$)", "", line) for line in lines)]


def test_each_step_of_a_check_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = JobCheck(options(copy, alone=True), Copies(), Variation(RUN))
    assert steps_of(monkeypatch, lambda: alone.check(12)) == [
        "drawing 12 histories",
        *(f"running history {number} of 12 in its own query" for number in range(1, 13)),
    ]
    first, second, third, *more = steps_of(monkeypatch, lambda: checked(without_the_last, Copies()))
    assert (first, second) == ("drawing 40 histories", "running 40 histories in one query")
    assert re.fullmatch(r"shrinking: rows: \d+; at most 30 s", third)
    assert all(re.fullmatch(r"shrinking: rows: \d+; smaller histories to try: \d+", one) for one in more)
    failing = steps_of(monkeypatch, lambda: checked(refuses_large_amounts, Copies()))
    assert "searching for the rows that make its query fail: trying 40 histories" in failing
    of_crash = steps_of(monkeypatch, lambda: Invariants(options(copy)).report(20, ()))
    assert "a crash: running 20 histories in one query" in of_crash


def test_that_too_few_histories_are_asked_for_is_told_before_the_check() -> None:
    lines: list[str] = []
    with telling(lines.append):
        for histories in (None, MIN_HISTORIES, 9):
            tell_of_few(histories)
    assert lines == ["histories=9: fewer than 10 are inconclusive, unless the job differs on one of them"]


def test_few_histories_are_inconclusive() -> None:
    with pytest.raises(
        Inconclusive,
        match=r"a copy on all 5 histories, .* at least 10 histories\. "
        r"Give more, such as histories=20, or another seed than 3\.$",
    ):
        JobCheck(options(copy, seed=3), Copies(), Variation(RUN)).check(5)


def test_fewer_than_half_of_the_histories_that_were_to_run_alone_are_inconclusive() -> None:
    soon_over = Variation(replace(RUN, seconds=1e-9))
    with pytest.raises(
        Inconclusive,
        match=r"on all 1 histories, .* at least 20 histories;.* such as seconds=4e-09 .--seconds., .* own",
    ):
        JobCheck(options(copy, alone=True, least_alone=20), Copies(), soon_over).check(40)
    assert JobCheck(options(copy, alone=True, least_alone=20), Copies(), Variation(RUN)).check(20).histories == 20


@pytest.mark.parametrize(("histories", "least"), [(None, 15), (50, 25), (51, 26), (1, 1)])
def test_half_of_the_histories_that_are_asked_for_must_run(histories: int | None, least: int) -> None:
    assert check_options(copy, [CLICKS], {}, {"histories": histories}).least_alone == least


def test_a_job_that_depends_on_the_cuts_between_batches_breaks_that_invariant() -> None:
    assert Invariants(options(copy)).report(30, ()).laws.keys() >= {"a crash", "the order within a batch"}
    with pytest.raises(Violated, match="with a single cut between batches") as raised:
        Invariants(options(the_first)).report(30, ())
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) == 2


@pytest.mark.parametrize("law", [OrderLaw(), Cuts()], ids=lambda law: law.name)
def test_a_variation_that_changes_no_history_is_inconclusive(law: Invariant) -> None:
    variation = law.variation(RUN, law.draw(RUN, 0, 6))
    assert JobCheck(options(copy), JobOracle(run=RUN, comparing="end"), variation).check(30).histories == 30
    changing_none = replace(variation, vary=lambda history: history)
    with pytest.raises(Inconclusive, match=f"Unmet coverage goals: {CHANGED}"):
        JobCheck(options(copy), JobOracle(run=RUN, comparing="end"), changing_none).check(30)


@dataclass(frozen=True)
class Stamping(MemoryRunner):
    """Its plan says that the columns `id` and `at_second` are of randomness and of the clock."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared(plan=Plan(nondeterministic=frozenset({"id"}), of_clock=frozenset({"at_second"})))


def with_id(batches: Batches) -> Batches:
    return [[{**row, "id": next(STAMPS)} for row in rows] for rows in batches]


def with_second(batches: Batches) -> Batches:
    return [[{**row, "at_second": next(STAMPS)} for row in rows] for rows in batches]


STAMPS = count()
LEFT_OUT = "Not compared: the columns at_second, id, whose values differ between runs: they contain times"


@pytest.mark.parametrize("job", [with_id, with_second])
def test_columns_that_have_other_values_in_each_run_are_left_out_and_listed(job: Any) -> None:
    assert len(Invariants(options(job, Stamping)).report(20, ()).laws) > 4
    report = JobCheck(options(job, Stamping), Copies(), Variation(RUN)).check(20)
    assert report.limits[0].startswith(LEFT_OUT)
    # No plan shows what a function adds: two plain runs do, where no oracle says which values are right.
    added = JobCheck(options(job), JobOracle(job=job), Variation(RUN)).check(20)
    assert "whose values differ between runs" in " ".join(added.limits)
    kept = Invariants(options(job)).report(20, ())
    assert len(kept.laws) > 4
    assert str(kept).splitlines()[1].startswith("Not compared: the columns ")
    with pytest.raises(Violated):
        checked(job, Numbered(job.__name__.replace("with", "at").replace("at_id", "id")))


def test_a_job_whose_runs_differ_in_other_ways_is_violated_and_told_so() -> None:
    def every_other(batches: Batches) -> Batches:
        return [[row for row in rows if next(STAMPS) % 2] for rows in batches]

    with pytest.raises(Violated, match=TWO_RUNS):
        Invariants(options(every_other)).report(20, ())
    for job, message in ((without_the_last, "a copy expects"), (the_first, "cut")):
        with pytest.raises(Violated, match=message) as raised:
            checked(job, Copies()) if job is without_the_last else Invariants(options(job)).report(30, ())
        assert TWO_RUNS not in str(raised.value)


@dataclass(frozen=True)
class Numbered(Copies):
    """Each row is expected with a column of zeros."""

    column: str = "id"

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        copies = super().expected(histories, sources, run)
        return [replace(one, rows=[[{**row, self.column: 0} for row in rows] for rows in one.rows]) for one in copies]


def test_columns_that_the_user_leaves_out_are_not_compared_and_listed() -> None:
    def given(without: str, oracle: Oracle = Numbered()) -> Sequence[str]:
        return JobCheck(options(with_id, without=frozenset({without})), oracle, Variation(RUN)).check(20).limits

    assert given("id") == ["Not compared: the columns id: without= leaves them out"]
    with pytest.raises(Violated):
        given("amount")
    with pytest.raises(BadInput, match=r"'ids', which is not one of the columns of .*, user, at, amount, id: name"):
        given("ids")
    with pytest.raises(BadInput, match="leaves out all columns of"):
        JobCheck(options(copy, without=frozenset({"user", "at", "amount"})), Copies(), Variation(RUN)).check(20)
    with pytest.raises(BadInput, match="'a flood', which is no invariant: leave out some of a restart, a crash"):
        Invariants(options(copy, without=frozenset({"a flood"})))
    of_sink = Invariants(options(copy, without=frozenset({"a flood"}), run=replace(RUN, is_sink=True)))
    with pytest.raises(BadInput, match=r"'a flood', which is not one of the columns of .*, user, at, amount: name"):
        of_sink.report(20, ())


def test_a_column_of_the_clock_is_compared_where_batches_run_at_the_times_of_the_history() -> None:
    def at_second(number: int) -> Any:
        return lambda batches: [[{**row, "at_second": number} for row in rows] for rows in batches]

    check = JobCheck(options(at_second(0), Stamping), JobOracle(job=at_second(1)), Variation(RUN))
    assert check.check(20).limits[0].startswith(LEFT_OUT)
    at_times = Variation(replace(RUN, processing_time=True))
    with pytest.raises(Violated):
        JobCheck(options(at_second(0), Stamping), JobOracle(job=at_second(1)), at_times).check(20)


def test_a_column_that_identifies_rows_is_compared() -> None:
    with pytest.raises(Violated):
        JobCheck(options(with_id, Stamping, unique=["id"]), JobOracle(job=with_id), Variation(RUN)).check(20)


def test_a_job_is_not_asked_what_its_plan_or_its_keys_rule_out() -> None:
    @dataclass(frozen=True)
    class Forgetting(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(frozenset({FORGETS})))

    forgets = "dropDuplicatesWithinWatermark forgets rows only at the end of a batch"
    report = Invariants(options(copy, Forgetting, alone=True)).report(20, ())
    assert [*report.laws] == ["a restart", "a crash", "the number of partitions"]
    assert report.not_checked == [
        f"the cuts between batches: {forgets}",
        f"the order within a batch: {forgets}",
        "histories with other keys, because each history runs in its own query: alone=True",
    ]
    beside = Invariants(options(copy)).report(20, ())
    assert (beside.laws["histories of other keys in the query"], beside.not_checked) == (3, [])


def test_a_history_of_an_invariant_is_refused_with_who_takes_it() -> None:
    variation = '{"law": "a crash", "given": [[0, true, "before its output"]]}'
    header = f'{{"job": "h", "inputs": {{"clicks": "{CLICKS.schema}"}}, "variation": {variation}}}\n'
    with pytest.raises(BadInput, match=r"violates the invariant 'a crash' .*: pass it to invariants\(…\)"):
        JobCheck(options(copy), Copies(), Variation(RUN)).replay([header])


@pytest.mark.parametrize(
    ("used", "keyed", "why"),
    [
        (TablesUsed({"names": {"uid": "user", "n": "amount"}, "days": {"n": "amount"}}), {"names": "uid"}, None),
        (TablesUsed({"names": {"uid": "user", "of": "user"}}), {"names": "of"}, OTHER_RELATION),
        (TablesUsed(elsewhere=frozenset({"user"})), {}, OTHER_RELATION),
        (TablesUsed(elsewhere=frozenset({"amount"})), {}, None),
        (TablesUsed({"names": {"uid": "user"}}, frozenset({"names"})), {"names": "uid"}, None),
        (TablesUsed(initial=frozenset({None})), {}, OTHER_STATE),
    ],
)
def test_a_table_has_rows_of_each_history_if_its_key_is_looked_up_in_one_column(
    used: TablesUsed, keyed: dict[str, str], why: str | None
) -> None:
    sources = options(copy).runner.sources
    assert (keyed_tables(sources, used), why_unkeyed(sources, used)) == (keyed, why)


@pytest.mark.parametrize("is_declared", [True, False])
def test_histories_of_a_key_that_is_looked_up_elsewhere_run_alone(is_declared: bool) -> None:
    used = TablesUsed(elsewhere=frozenset({"user"}))

    @dataclass(frozen=True)
    class LookingUp(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(tables=used if is_declared else TablesUsed())

        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return replace(super().run(*given, **named), tables=used)

    assert JobCheck(options(copy, LookingUp), Copies(), Variation(RUN)).check(20).alone == OTHER_RELATION


def test_a_sink_whose_query_shows_where_it_looks_its_key_up_is_run_again_with_rows_of_each_history() -> None:
    sizes: list[int] = []

    @dataclass(frozen=True)
    class OfSink(MemoryRunner):
        def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
            sizes.append(self.static["names"].num_rows)
            rows = [row for batch in batches for row in batch["clicks"].to_pylist()]
            return QueryOutput([rows], tables=TablesUsed({"names": {"uid": "user"}}))

    given = options(copy, OfSink)
    runner = replace(given.runner, job=Sink(copy, copy), static={"names": pa.table({"uid": ["a", "b"]})})
    report = JobCheck(replace(given, runner=runner), Copies(), Variation(RUN)).check(20)
    assert (report.alone, sizes[:2]) == ("", [2, 40])


def told(**plan: Any) -> Any:
    """Return a runner whose declaration says so."""

    @dataclass(frozen=True)
    class Told(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(**plan)

    return Told


class Delayed(Copies):
    watermark_delays_us = {"clicks": 0}  # noqa: RUF012


KEYED = TablesUsed(by_key={"names": {"who": "user"}, "places": {"who": "user"}})
CLICKED = ("user", "at", "amount")


@pytest.mark.parametrize(
    ("declared", "oracle", "goal"),
    [
        ({"plan": Plan(by_event_time=True)}, Copies(), r"rows around the job's event-time timers \(timeouts="),
        (
            {"plan": Plan(frozenset({"Filter"}), event_times=[WatermarkColumn("at", "at", CLICKED, 1_000_000)])},
            Delayed(),
            r"the expected watermark delays clicks 0 days \(the job's delays are clicks 1 second\)",
        ),
        (
            {"tables": KEYED},
            Copies(),
            r'rows with a key of the table names \(Input\(…, values=\{"user": \[…\]\}\).* of the table places \(Input',
        ),
    ],
    ids=["timers", "delays", "tables"],
)
def test_what_the_histories_cannot_show_is_inconclusive(declared: Any, oracle: Oracle, goal: str) -> None:
    def given(**declared: Any) -> CheckOptions:
        made = options(copy, told(**declared))
        table = pa.table({"who": ["nobody has this key"]})
        return replace(
            made, runner=replace(made.runner, static={"names": table, "places": table} if "tables" in declared else {})
        )

    with pytest.raises(Inconclusive, match=goal):
        JobCheck(given(**declared), oracle, Variation(RUN)).check(20)
    assert JobCheck(given(), oracle, Variation(RUN)).check(20).histories == 20


def text_of(*rows: tuple[str, int], law: str = "") -> str:
    """Return a history whose rows, users with amounts, come in one batch."""
    variation = f', "variation": {{"law": "{law}", "given": null}}' if law else ""
    lines = [f'{{"job": "h0", "inputs": {{"clicks": "user string, at timestamp, amount bigint"}}{variation}}}']
    for user, amount in rows:
        row = f'{{"user": "{user}", "at": "2024-07-15T12:00:00Z", "amount": {amount}}}'
        lines.append(f'{{"input": "clicks", "row": {row}}}')
    return "\n".join(lines)


def test_each_example_is_run_and_those_of_each_invariant() -> None:
    check = JobCheck(options(the_first), Copies(), Variation(RUN))
    check.replay([text_of(("a", 1)), text_of(("a", 1), ("b", 1))])
    with pytest.raises(Violated, match="1 of 2 histories, saved or given as examples, still differ"):
        check.replay([text_of(("a", 1)), text_of(("a", 1), ("a", 2))])
    with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples, still differ"):
        Invariants(options(the_first)).report(20, [text_of(("a", 1), ("a", 2), law="the order within a batch")])


class InParts(MemoryRunner):
    """It groups by a column that its result lacks, and says what each query emits in each batch."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared(grouping=Grouping(["user"], []))

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        output = super().run(*given, **named)
        return replace(output, parts=output.batches)


def as_sorted(batches: Batches) -> Batches:
    """Emit the rows of each batch in another order."""
    return [sorted(rows, key=repr) for rows in batches]


def test_an_updated_table_without_its_grouping_is_compared_batch_by_batch() -> None:
    update = replace(RUN, mode="update")
    report = Invariants(replace(options(as_sorted, InParts, alone=True), run=update)).report(20, ())
    assert {"a restart", "a crash", "the order within a batch"} <= {*report.laws}
    assert [one for one in report.not_checked if one.startswith("the cuts between batches: ")]
    with pytest.raises(Violated, match="in the opposite order"):
        Invariants(replace(options(the_first, InParts, alone=True), run=update)).report(20, ())
    with pytest.raises(BadInput, match=r"two rows in one batch with equal values in unique= \(user\)"):
        Invariants(replace(options(as_sorted, InParts, unique=["user"], alone=True), run=update)).report(20, ())


@pytest.mark.parametrize(("unique", "refused"), [(["user"], True), (["user", "n"], False)])
@pytest.mark.parametrize("comparing", ["batches", "end"])
def test_rows_of_a_batch_that_unique_cannot_tell_apart_are_refused_where_a_table_is_compared(
    unique: list[str], refused: bool, comparing: Any
) -> None:
    def numbered(batches: Batches) -> Batches:
        return [[{**row, "n": number} for number, row in enumerate(rows)] for rows in batches]

    update = replace(RUN, mode="update")
    made = replace(options(numbered, InParts, unique=unique, alone=True), run=update)
    check = JobCheck(made, JobOracle(job=numbered, comparing=comparing), Variation(update))
    if not refused or comparing == "batches":
        assert check.check(20).histories == 20
        return
    with pytest.raises(BadInput, match=r"emits two rows in one batch with equal values in unique= \(user\)"):
        check.check(20)
    together = JobCheck(replace(made, alone=False), JobOracle(job=numbered, comparing=comparing), Variation(update))
    with pytest.raises(
        BadInput, match=r"with equal values in unique= \(user\), user '\w*'.* and user '\w*'"
    ):  # without a history's prefix
        together.check(20)


@dataclass(frozen=True)
class Noted(MemoryRunner):
    """It notes the job of each run."""

    ran: ClassVar[list[Any]] = []

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        self.ran.append(self.job)
        return super().run(*given, **named)


def test_a_history_that_was_found_before_is_compared_without_columns_that_each_run_changes() -> None:
    check = JobCheck(options(with_id, Noted), JobOracle(job=with_id), Variation(RUN))
    check.replay([text_of(("a", 1))])
    assert check.judge.met.nondeterministic == {"id"}
    Noted.ran.clear()
    JobCheck(options(copy, Noted), JobOracle(job=copy), Variation(RUN)).replay([text_of(("a", 1))])
    assert len(Noted.ran) == 2  # the job, and the job that says what is expected


def test_several_histories_are_put_together_only_for_a_law_and_for_inputs_whose_rows_do_not_belong_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each history differs beside others alone, so that none is the smallest."""
    raised: list[int] = []

    class Beside(JobCheck):
        def raise_smallest(self, history: JobHistory, *given: Any, **named: Any) -> None:
            raised.append(len(history.arrivals))

        def check_alone(self, histories: Any, started: float) -> Any:
            return [*histories], len(histories)

    restart = replace(Variation(RUN), law="a restart")
    plain, deduplicated = CLICKS, replace(CLICKS, identity=["user", "at"])
    for variation, clicks, together in ((Variation(RUN), plain, 0), (restart, plain, 1), (restart, deduplicated, 0)):
        raised.clear()
        with contextlib.suppress(Inconclusive):
            Beside(options(without_the_last, clicks=clicks), Copies(), variation).check(20)
        assert len(raised) == 1 + together, (variation.law, clicks.identity)
        assert not together or raised[1] > raised[0]


def test_the_keys_of_histories_that_run_as_one_are_kept_apart_only_where_there_are_several() -> None:
    check = JobCheck(options(copy), Copies(), Variation(RUN))
    one, other, *_ = check.draws.draw(12)
    check.keeps_keys_apart = True

    def users(*histories: JobHistory) -> set[str]:
        return {row["user"] for _, row in check.as_one(histories).arrivals if row["user"] is not None}

    own = {row["user"] for _, row in one.arrivals if row["user"] is not None}
    assert users(one) == own
    assert not users(one, other) & own
    check.keeps_keys_apart = False
    assert users(one, other) >= own


def test_a_history_that_differs_without_those_of_other_keys_is_a_violation_of_that_invariant() -> None:
    others = [law.of_jobs for law in laws() if law.of_jobs != "histories of other keys in the query"]
    assert Invariants(options(copy), others).report(20, ()).laws == {"histories of other keys in the query": 3}
    with pytest.raises(Violated, match="The job differs when the history runs alone, but not in a query with other"):
        Invariants(options(only_one_user), others).report(20, ())


@dataclass(frozen=True)
class SinkUnderFaults(MemoryRunner):
    """A sink that a zombie doubles, and whose other faults don't happen or leave half a batch."""

    def run(self, batches: Any, clock: Any = (), run: RunOptions = PLAIN, *given: Any, **named: Any) -> QueryOutput:
        rows = [row for batch in batches for table in batch.values() for row in table.to_pylist()]
        outcomes = {
            "retention": FaultOutcome("its target isn't a folder of files"),
            "full-disk": FaultOutcome(torn=3),
            "zombie": FaultOutcome(stuck="the table is locked", refusals=["the old query: no"]),
        }
        return QueryOutput(
            [rows * (1 + (run.fault == "zombie"))],
            covered=frozenset({REPEATED, RESTORED}),
            crashed=[(at, True) for at in run.crash_in],
            fault=outcomes.get(run.fault, NO_FAULT),
        )


def under_faults(*faults: str) -> Any:
    given = options(copy, SinkUnderFaults, run=replace(RUN, is_sink=True))
    runner = SinkUnderFaults(Sink(copy, copy), given.runner.sources)
    left_out = [law.of_jobs for law in laws() if law.of_jobs != "a crash"]
    return Invariants(replace(given, runner=runner), left_out, faults).report(20, ())


def test_a_sink_that_a_fault_doubles_is_violated_with_the_verdict_and_the_refusals() -> None:
    with pytest.raises(Violated) as raised:
        under_faults("zombie", "two-queries")
    said = str(raised.value)
    assert said.startswith(f"violated: under the fault zombie ({FAULTS['zombie'].says}), copy ")
    assert "Its rows: doubled, stuck; the table is locked; the old query: no." in said
    assert "Held before: a crash (20 histories). Not checked after the violation: the fault two-queries." in said
    history = raised.value.counterexample.history
    assert (len(history.arrivals), history.variation) == (1, {"law": "the fault zombie", "given": []})
    assert saved_variation(RUN, history.variation).run.fault == "zombie"


def test_a_report_on_a_sink_names_the_faults_that_were_not_played_and_half_batches() -> None:
    report = under_faults("retention", "full-disk", "old-checkpoint")
    assert [*report.laws] == ["a crash", "the fault full-disk", "the fault old-checkpoint"]
    assert "the fault retention: its target isn't a folder of files" in report.not_checked
    half = "complete batches under the fault full-disk: a reader found half a batch of 3 histories"
    assert half in report.not_checked
    left = "the faults lost-connection, zombie, two-queries, deleted-checkpoint, deleted-checkpoint-latest: "
    assert f"{left}faults=[…] names those that the sink must withstand" in report.not_checked
    assert IN_COMMIT in report.not_checked


def test_faults_are_of_sinks_and_have_names() -> None:
    with pytest.raises(BadInput, match=r"^faults= are faults of a sink, and the job returns its result"):
        faults_of(["zombie"], is_sink=False)
    with pytest.raises(BadInput, match=r"^faults has 'fire': name some of lost-connection, full-disk, .*, or 'all'"):
        faults_of(["fire"], is_sink=True)
    assert faults_of(["all"], is_sink=True) == [*SINK_FAULTS]
    assert faults_of([], is_sink=False) == []
    with pytest.raises(BadInput, match="has the variation"):
        saved_variation(RUN, {"law": "the fault zombie", "given": [[1]]})


def test_a_history_counts_once_however_many_rows_are_expected_where_all_run_as_one() -> None:
    check = JobCheck(options(copy), Copies(), Variation(RUN))
    check.run_each_alone("why")
    drawn = [one for one in check.draws.draw(40) if one.arrivals]
    many, few = max(drawn, key=lambda one: len(one.arrivals)), drawn[0]
    assert len(many.arrivals) > 2
    assert check.check_as_one([many, few], time.monotonic()) == 2
    assert check.check_as_one([JobHistory(((),)), JobHistory(((),))], time.monotonic()) == 0


@pytest.mark.parametrize("static", [{}, {"users": pa.table({"user": ["a"]})}], ids=["no tables", "a table"])
def test_histories_whose_rows_can_not_be_told_apart_have_keys_of_their_own_unless_a_table_has_the_keys(
    static: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = JobCheck(options(copy), Copies(), Variation(RUN))
    check.options = replace(check.options, runner=replace(check.options.runner, static=static))
    met: list[tuple[str | None, bool]] = []

    def drawn(count: int) -> None:
        met.append((check.why_alone, check.keeps_keys_apart))
        raise UnreadableKey("no key")

    monkeypatch.setattr(check, "check_drawn", drawn)
    with pytest.raises(UnreadableKey):
        check.check(7)
    assert [bool(why) for why, _ in met] == [False, True]
    assert [apart for _, apart in met] == [False, not static]


@pytest.mark.parametrize(
    ("law", "folder", "step"), [("", "", ": drawing"), ("a crash", "a-crash", ", a crash: drawing")]
)
def test_each_invariant_saves_in_a_folder_of_its_own_and_is_named_in_each_step(
    law: str, folder: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(job_check, "doing", steps.append)
    check = JobCheck(options(copy, folder=tmp_path), Copies(), Variation(RUN, law, [0] if law else None))
    assert check.store.folder == tmp_path / folder
    assert JobCheck(options(copy), Copies(), Variation(RUN, law)).store.folder is None
    check.doing("drawing")
    assert steps == [f"{check.judge.name}{step}"]
