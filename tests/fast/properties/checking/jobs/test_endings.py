"""How a check of a job ends: the counterexample, its message, the failure, and the options that reach each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from streamproof import BadInput, Inconclusive, Sink, Violated
from streamproof.properties.checking.fuzzing.divergences import EXCLUDED_RULES, FILTERED_WATERMARK
from streamproof.properties.checking.jobs.conclusion import notes_on
from streamproof.properties.checking.jobs.draws import DAY_US, Draws
from streamproof.properties.checking.jobs.invariants import IN_COMMIT, Invariants
from streamproof.properties.checking.jobs.job_check import (
    BESIDE,
    KEYED,
    MAX_KEYS_ALONE,
    OTHER_MOMENTS,
    JobCheck,
    _fullest,
)
from streamproof.properties.checking.jobs.smallest import MAX_WITHOUT_CLOCK, plainest
from streamproof.properties.counterexamples.text import counterexample_text
from streamproof.properties.generators.columns.forms.rows import from_microseconds, microseconds
from streamproof.properties.generators.columns.histories.goals import LATE, SILENT
from streamproof.properties.generators.columns.histories.text import to_text
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory
from streamproof.properties.generators.coverage import ATTEMPTS
from streamproof.properties.generators.shrinking import Deadline
from streamproof.properties.laws.all import invariants, variations_of
from streamproof.properties.laws.expected.oracles import FORGETS, FunctionOracle, JobOracle, ModelOracle
from streamproof.properties.laws.metamorphic.crash import CRASHES
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.job.clock import Watermarks
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.plan.skeletons import Skeleton
from streamproof.properties.witnesses.job.running import Declared, QueryOutput
from streamproof.properties.witnesses.run_options import BEFORE, MIDDLE, PLAIN, Crash, RunOptions
from streamproof.properties.witnesses.spark.engine import TookTooLong
from streamproof.properties.witnesses.spark.failures import QueryFailed

SECOND = 1_000_000
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def click(user: str = "a", seconds: int = 0, amount: Any = 1) -> Arrival:
    return Arrival(
        "clicks", {"user": user, "at": from_microseconds(microseconds(AT) + seconds * SECOND), "amount": amount}
    )


def history(*batches: Sequence[Arrival], **more: Any) -> JobHistory:
    clock = tuple(microseconds(AT) + number * SECOND for number in range(len(batches)))
    return replace(JobHistory(tuple(map(tuple, batches)), clock), **more)


def check_of(job: Any = copy, runner: Any = MemoryRunner, variation: Variation | None = None, **more: Any) -> JobCheck:
    run = more.get("run", RUN)
    return JobCheck(options(job, runner, **more), JobOracle(job=copy, run=run), variation or Variation(run))


def test_a_counterexample_says_how_its_history_was_drawn_run_and_compared() -> None:
    three, update = Equality(3), replace(RUN, mode="update")
    stopped = Restart().variation(update, [0, 1])
    check = check_of(variation=stopped, run=update, equality=three, seed=7, unique=["user"])
    drawn, saved = history([click()]), history([click()], seed=5)
    rows = [{"user": "a", "n": n} for n in (1, 2)]
    differing = check.judge.compare_alone(drawn, stopped)._replace(
        expected=Expected("end", [rows[1:]]), emitted=[[row] for row in rows], difference=Difference(None, [], rows[1:])
    )
    of_drawn, of_saved = (check.counterexample(one, stopped, differing) for one in (drawn, saved))
    assert (of_drawn.seed, of_saved.seed) == (7, 5)
    assert (of_drawn.way, of_drawn.law) == (stopped.run, "a restart")
    assert of_drawn.compared == f"the table at the end; {three}"
    assert [one.side for one in of_drawn.rows] == ["both"]  # the second row replaces the first, by its user
    assert of_drawn.sentence.startswith("violated: stopped after batch 0, 1 and started again, ")
    assert "; without a stop it emits " in of_drawn.sentence
    assert of_drawn.history.variation == {"law": "a restart", "given": [0, 1]}
    assert of_drawn.sources == check.judge.witness.sources
    plain = Variation(update)
    assert check.counterexample(drawn, plain, differing).sentence.startswith("violated: at the end ")
    assert check.check(20).equality == three


class OfSink(MemoryRunner):
    """Runs a job as a sink, which has the rows of all batches at the end."""

    def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
        rows = [row for batch in batches for table in batch.values() for row in table.to_pylist()]
        return QueryOutput([rows])


def sink_check(variation: Variation) -> JobCheck:
    made = options(copy, run=variation.run)
    return JobCheck(replace(made, runner=OfSink(Sink(copy, copy), made.runner.sources)), JobOracle(job=copy), variation)


def test_the_report_of_a_sink_names_the_faults_that_are_not_played_on_it() -> None:
    made = options(copy)
    names = [law.of_jobs for law in invariants() if law.of_jobs != Restart.of_jobs]
    for runner, is_named in ((OfSink(Sink(copy, copy), made.runner.sources), True), (made.runner, False)):
        report = Invariants(replace(made, runner=runner), names).report(20, [])
        (*_, left, last) = ["", "", *report.not_checked]
        assert left.startswith("the faults lost-connection, full-disk, zombie, two-queries, ") == is_named
        assert (last == IN_COMMIT) == is_named
        assert "repeated-batch" not in left, "a crash is that"


def test_a_sink_s_counterexample_is_of_its_table_at_the_end() -> None:
    check = sink_check(Variation(replace(RUN, mode="update")))
    one = history([click()])
    found = check.counterexample(one, check.variation, check.judge.compare_alone(one, check.variation))
    assert found.way is not None
    assert (found.way.is_sink, found.way.mode, check.judge.met.comparing) == (True, "complete", "end")


@pytest.mark.parametrize(
    ("moment", "died_at", "said"),
    [
        (Crash(0, True, MIDDLE), "before line 3", "1 differs. The query died before line 3."),
        (Crash(0, True, MIDDLE), "", "1 differs."),
        (Crash(0, True, BEFORE), "before line 3", "1 differs."),
    ],
)
def test_a_violation_says_where_in_its_output_the_query_died(moment: Crash, died_at: str, said: str) -> None:
    dying = Variation(replace(RUN, crash_in=(moment,)), "a crash")
    check = check_of(variation=dying)
    compared = check.judge.compare_alone(history([click()]), dying)
    compared = compared._replace(output=replace(compared.output, died_at=died_at))
    raised = check.violation(history([click()]), dying, compared, "1 differs.")
    assert said in str(raised).splitlines()


def test_a_violation_says_that_shrinking_ended_by_its_limit_and_how_a_right_job_may_differ() -> None:
    check, over = check_of(variation=replace(Variation(RUN), remedy="Leave it out.")), Deadline(0)
    compared = check.judge.compare_alone(history([click()]), check.variation)
    over.has_stopped = True

    def head(**more: Any) -> str:
        text = str(check.violation(history([click()]), check.variation, compared, "1 differs.", **more))
        return next(line for line in text.splitlines() if line.startswith("1 differs"))

    assert head() == head(deadline=Deadline(9)) == "1 differs. Leave it out."
    assert head(deadline=over).startswith("1 differs. Leave it out. Shrinking reached its time limit:")


def test_a_failure_says_whether_a_history_made_it_and_whether_the_search_ended() -> None:
    check = check_of()
    failed, one = QueryFailed("it broke."), history([click("b")])

    def said(failing: JobHistory | None, stopped: str = "") -> str:
        return str(check.failure(failed, failing, check.variation, stopped)).partition("\n")[0]

    name = check.judge.name
    assert said(None) == f"{name}: it broke, whatever rows arrive"
    assert said(None, "It stopped") == f"{name}: it broke. It stopped"
    assert said(one) == f"{name}: it broke."
    assert said(one, "It stopped") == f"{name}: it broke. It stopped"


def test_a_query_that_takes_too_long_is_not_one_that_fails() -> None:
    def slow_or_wrong(batches: Any) -> Any:
        users = [row["user"] for rows in batches for row in rows]
        if users == ["a"]:
            raise TookTooLong("it hangs")
        if "b" in users:
            raise QueryFailed("b is refused")
        return batches

    check = check_of(slow_or_wrong)
    drawn = [history([click("a")]), history([click("b"), click("c")])]
    with pytest.raises(QueryFailed) as raised, check.named_failure(drawn, check.variation):
        raise QueryFailed("refused")
    assert "b is refused\n" in str(raised.value)


@pytest.mark.parametrize(
    ("digits", "inexact", "refused"), [(None, {"avg"}, True), (12, {"avg"}, False), (None, set(), False)]
)
def test_all_digits_are_not_compared_where_they_depend_on_the_order_of_rows(
    digits: int | None, inexact: set[str], refused: bool
) -> None:
    class Inexact(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(inexact=frozenset(inexact)))

    if not refused:
        check_of(runner=Inexact, equality=Equality(digits))
        return
    with pytest.raises(BadInput, match="digits=None compares all digits, and the last digits of avg in copy"):
        check_of(runner=Inexact, equality=Equality(digits))


def test_a_history_that_agrees_alone_is_not_kept_and_one_that_differs_is(tmp_path: Path) -> None:
    def of_three(batches: Any) -> Any:
        return [rows[:2] for rows in batches]

    check = check_of(of_three, folder=tmp_path)
    agreeing = history([click()])
    compared = check.judge.compare_alone(history([click()] * 3), check.variation)
    check.raise_smallest(agreeing, compared, check.variation, head="", started=time.monotonic())
    assert not [*tmp_path.iterdir()]


def test_histories_that_run_alone_each_have_their_share_of_the_crashes() -> None:
    crashes: list[tuple[Crash, ...]] = []

    class Noting(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            crashes.append(given[-1].crash_in)
            return super().run(*given, **named)

    (crash,) = [one for one in variations_of(RUN, 0, 6) if one.law == "a crash"]
    check = check_of(runner=Noting, variation=crash, alone=True)
    check.check_alone([history([click(amount=number)]) for number in range(7)], time.monotonic())
    given = [one for one in crashes if one]
    assert len({*given}) == CRASHES
    assert given[CRASHES] == given[0]
    assert sorted(at for one in given[:CRASHES] for at in one) == sorted(crash.run.crash_in)


def test_the_histories_that_run_alone_have_as_many_keys_as_they_can() -> None:
    def of(*users: str) -> JobHistory:
        return history([click(user) for user in users])

    drawn = [of("a", "b", "a"), of("a", "b"), of("c"), of("a"), of("d", "a"), of("a", "a", "a", "a")]
    assert check_of()._most_keys(drawn) == [0, 4, 2, 5]
    assert _fullest(drawn, 2) == [5, 0]


def test_timeouts_that_no_history_meets_are_unmet() -> None:
    check = check_of(timeouts_us=[10 * SECOND])
    texts = [words.format("10 seconds", "1 ms") for words in SILENT]
    exact = replace(history([click()], []), clock=(0, 10 * SECOND))
    assert [goal for goal in check.draws.unmet([exact]) if goal in texts] == texts[1:]
    assert [goal for goal in check.draws.unmet([history([click()])]) if goal in texts] == texts


def plainest_of(given: JobHistory, differs: Callable[[JobHistory], bool], batch: int | None = 0, **more: Any) -> Any:
    """Return the plainest history, and the histories that were tried, of a judge that differs on some."""
    tried: list[JobHistory] = []

    def compare_alone(one: JobHistory, variation: Variation) -> Any:
        tried.append(one)
        found = Difference(batch, [], []) if one is given or differs(one) else None
        return SimpleNamespace(difference=found, differs=found is not None)

    judge: Any = SimpleNamespace(compare_alone=compare_alone)
    draws: Any = SimpleNamespace(closes=False, inputs=options(copy).inputs)
    run = replace(RUN, processing_time=more.get("processing_time", False))
    deadline = Deadline(more.get("seconds", 60))
    found, _ = plainest(judge, draws, given, Variation(run), deadline=deadline)
    return found, tried[1:]


def test_the_plainest_history_has_no_clock_or_else_no_empty_batch_behind_the_one_that_differs() -> None:
    given = history([], [click()], [], [])
    found, tried = plainest_of(given, lambda one: not one.clock, 1)
    assert found == JobHistory(((click(),),))
    assert tried == [found]
    found, tried = plainest_of(given, lambda one: len(one.clock) == 2, 1)
    assert found == history([], [click()])
    assert len(tried) == 1 + MAX_WITHOUT_CLOCK
    at_times, tried = plainest_of(given, lambda one: True, 1, processing_time=True)
    assert at_times == history([], [click()])
    assert plainest_of(given, lambda one: False, 1)[0] is given
    assert plainest_of(given, lambda one: True, 1, seconds=-1) == (given, [])
    last = history([], [click()])
    assert plainest_of(last, lambda one: True, 1, processing_time=True) == (last, [])
    # The clock of the last batch may close what is open.
    found, _ = plainest_of(given, lambda one: True, None, processing_time=True)
    assert (found.batches, found.clock) == (((), (click(),), ()), (*given.clock[:2], given.clock[3]))


def test_a_history_that_differs_otherwise_beside_others_is_not_shown_where_it_differs_alike_alone() -> None:
    def twice(batches: Any) -> Any:
        return [rows * 2 for rows in batches]

    def lost(batches: Any) -> Any:
        return [[] for _ in batches]

    one = history([click()])
    for job, is_shown in ((twice, False), (lost, True)):
        check = check_of(job)
        alone = check.judge.compare_alone(one, check.variation)
        shrunk, beside = (
            alone._replace(difference=Difference(0, *rows)) for rows in (([], [{"n": 1}]), ([{"n": 1}], []))
        )
        found = check.found_otherwise(one, beside, shrunk, check.variation)
        assert (found is not None) == is_shown
        assert check.found_otherwise(one, shrunk, shrunk, check.variation) is None


def test_the_plain_run_of_each_history_is_shared_by_all_invariants() -> None:
    queries: list[str] = []

    class Noting(MemoryRunner):
        def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
            queries.append(repr((given[-1], batches)))
            return super().run(batches, *given, **named)

    invariants = Invariants(options(copy, Noting))
    assert len(invariants.report(10, ()).laws) > 5
    plain = [one for one in queries if one.startswith(repr(RUN))]
    assert len(plain) == len({*plain})


def test_the_report_of_invariants_says_what_the_last_that_was_checked_has_shown() -> None:
    class Setting(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(frozenset({FORGETS})))

        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return replace(super().run(*given, **named), settings={"spark.a": "1"})

    report = Invariants(options(copy, Setting, run=replace(RUN, trigger="available_now"))).report(10, ())
    assert "a restart" not in report.laws
    assert report.limits == ["Set by the job: spark.a=1"]


def test_a_history_that_is_the_smallest_as_it_was_found_stays_saved(tmp_path: Path) -> None:
    check = check_of(lambda batches: [[] for _ in batches], folder=tmp_path)
    smallest = JobHistory(((click(user="a", amount=None),),))
    compared = check.judge.compare_alone(smallest, check.variation)
    kept = check.store.keep(smallest, check.variation.run)
    raised = check.violation(smallest, check.variation, compared, "1 differs.", unshrunk=kept)
    assert raised.path == kept
    assert [*tmp_path.iterdir()] == [kept]
    other = check.store.keep(history([click(), click()]), check.variation.run)
    assert other != kept
    check.violation(smallest, check.variation, compared, "1 differs.", unshrunk=other)
    assert [*tmp_path.iterdir()] == [kept]


def declaring(**said: Any) -> Any:
    """Return a runner whose job's declaration says so."""

    class Declaring(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(**said)

    return Declaring


@pytest.mark.parametrize(("computed", "head"), [({"user"}, KEYED), (set(), BESIDE)])
def test_a_difference_that_only_a_history_alone_shows_says_whether_the_job_computes_with_the_key(
    computed: set[str], head: str
) -> None:
    def with_prefix(batches: Any) -> Any:
        return [[row for row in rows if "|" in row["user"]] for rows in batches]

    check = check_of(with_prefix, declaring(plan=Plan(computed=frozenset(computed))))
    with pytest.raises(Violated, match="expects") as raised:
        check.check(20)
    assert head in str(raised.value)


@pytest.mark.parametrize(
    ("count", "delays_us", "is_known"), [(1, [5 * SECOND], True), (0, [], False), (2, [5 * SECOND], False)]
)
def test_a_counterexample_has_watermarks_where_the_delay_of_each_input_is_known(
    count: int, delays_us: list[int], is_known: bool
) -> None:
    declared = {"watermarks": Watermarks(count), "plan": Plan(delays_us=delays_us)}
    check, one = check_of(runner=declaring(**declared)), history([click()])
    found = check.counterexample(one, check.variation, check.judge.compare_alone(one, check.variation))
    at = one.batches[0][0].row["at"].timestamp() * SECOND
    assert [mark.after_us for mark in found.watermarks] == ([at - 5 * SECOND] if is_known else [])


def test_why_histories_run_alone_is_said_by_the_first_reason_that_there_is() -> None:
    without = "a watermark of the job is on a field of a struct column"
    for more, declared, why in (
        ({}, {}, ""),
        ({"alone": True}, {}, "alone=True"),
        ({"alone": True}, {"watermarks": Watermarks(1, without_clock=True)}, without),
        ({}, {"watermarks": Watermarks(1, without_clock=True)}, without),
    ):
        assert check_of(runner=declaring(**declared), **more).why_alone == why


def test_moved_filters_are_not_judged_where_batches_run_at_times_or_all_is_closed() -> None:
    moved = declaring(divergences=(FILTERED_WATERMARK.name,))
    for run, is_judged in ((RUN, True), (replace(RUN, processing_time=True), False)):
        check = check_of(runner=moved, run=run)
        check.judge.compare_alone(history([click()]), check.variation)  # which shows that batches are compared
        (said,) = check.check_without_clock([history([click()])], time.monotonic())
        assert (said == "1 histories also ran without the check's clock, and agree") == is_judged
        assert (said == f"Not checked: {OTHER_MOMENTS}") != is_judged
    assert check_of().check_without_clock([history([click()])], time.monotonic()) == []


def test_of_several_schedules_the_first_that_misses_the_fewest_goals_of_the_oracle_is_drawn() -> None:
    check = check_of()
    draws, asked = check.draws, []

    def unmet_until(attempt: int) -> Any:
        def unmet(histories: Any, sources: Any, run: Any) -> list[str]:
            asked.append(histories)
            return [] if len(asked) > attempt else ["a goal", *["another"] * (len(asked) not in (7, 9))]

        return SimpleNamespace(unmet=unmet, edges_us=())

    for attempt, tried in ((0, 1), (2, 3), (99, ATTEMPTS)):
        asked.clear()
        draws.oracle = unmet_until(attempt)
        drawn = draws.draw(3)
        assert len(asked) == tried
        assert drawn == asked[6 if attempt == 99 else -1]
    assert asked[0] != asked[1]
    assert {one[0].clock[0] // 86_400_000_000 for one in asked} == {asked[0][0].clock[0] // 86_400_000_000}


@pytest.mark.parametrize(("takes_late", "delay_us", "wanted"), [(True, 5, True), (True, 0, False), (False, 5, False)])
def test_late_rows_are_a_goal_where_they_are_drawn_and_a_watermark_is_delayed(
    takes_late: bool, delay_us: int, wanted: bool
) -> None:
    draws = check_of().draws
    draws.takes_late, draws.delay_us = takes_late, delay_us
    assert (LATE in draws.unmet([history([click()])])) == wanted


def test_the_batches_behind_the_last_row_are_shown_of_a_check_and_not_of_a_run() -> None:
    check, one = check_of(), history([click()], [], [])
    found = check.counterexample(one, check.variation, check.judge.compare_alone(one, check.variation))
    for is_of_run, shown in ((False, True), (True, False)):
        arrives = counterexample_text(replace(found, is_of_run=is_of_run)).partition("What arrives:")[2]
        assert ("batch 0" in arrives, "batch 2" in arrives) == (True, shown)


def sizes_of_queries(check: Callable[[Any], Any], **said: Any) -> list[int]:
    """Return the number of rows of each query that a check runs."""
    sizes: list[int] = []

    class Noting(declaring(**said)):  # type: ignore[misc]
        def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
            sizes.append(sum(table.num_rows for batch in batches for table in batch.values()))
            return super().run(batches, *given, **named)

    check(Noting)
    return sizes


def test_histories_that_run_alone_run_in_order_of_their_rows_the_fullest_first() -> None:
    sizes = sizes_of_queries(lambda runner: check_of(runner=runner, alone=True).check(20))
    own = sizes[::2]  # the oracle runs the job over each, too
    assert own == sorted(own, reverse=True)
    assert len({*own}) > 3


@pytest.mark.parametrize(
    ("plan", "alone"),
    [
        (Plan(), 1),
        (Plan(computed=frozenset({"user"})), MAX_KEYS_ALONE),
        (Plan(in_functions=frozenset({"user"})), MAX_KEYS_ALONE),
        (Plan(computed=frozenset({"amount"})), 1),
    ],
)
def test_the_fullest_history_runs_alone_too_and_several_where_a_job_computes_with_keys(plan: Plan, alone: int) -> None:
    oracle = FunctionOracle(lambda clicks: clicks)
    sizes = sizes_of_queries(
        lambda runner: JobCheck(options(copy, runner), oracle, Variation(RUN)).check(40), plan=plan
    )
    shared, *others = sizes
    assert shared > sum(others)
    assert len(others) == alone
    assert alone > 1 or others[0] == 12  # the most rows that a history has


@pytest.mark.parametrize("computed", [True, False])
def test_a_job_that_computes_with_keys_may_differ_beside_others_and_is_judged_alone(computed: bool) -> None:
    def first_user(batches: Any) -> Any:
        users = [row["user"] for rows in batches for row in rows]
        return [
            [row for row in rows if row["user"].rpartition("|")[0] == users[0].rpartition("|")[0]] for rows in batches
        ]

    plan = Plan(computed=frozenset({"user"} if computed else ()))
    check = JobCheck(options(first_user, declaring(plan=plan)), FunctionOracle(lambda clicks: clicks), Variation(RUN))
    if computed:
        report = check.check(20)
        assert "a history's result depends on other histories, although no two histories share a key" in report.alone
        assert not any(one.startswith("what the job computes with the key") for one in report.not_checked)
        return
    with pytest.raises(Inconclusive, match="If rows of other keys may change a result"):
        check.check(20)


def test_of_the_examples_of_a_law_the_smallest_that_differs_is_shown(tmp_path: Path) -> None:
    def none(batches: Any) -> Any:
        return [[] for _ in batches]

    examples = [
        to_text(one, check_of().judge.witness.sources)
        for one in (history([click()] * 3), history([click("b")]), history([click(), click()]))
    ]
    with pytest.raises(Violated, match="3 of 3 histories, saved or given as examples, still differ") as raised:
        check_of(none).replay(examples)
    assert [row["user"] for _, row in raised.value.counterexample.history.arrivals] == ["b"]
    plainly = check_of(none)
    restart = Restart().variation(RUN, [0])
    of_restart = [to_text(history([click()], variation=restart.saved), plainly.judge.witness.sources)]
    with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples"):
        check_of(none, variation=restart).replay(of_restart)
    (crash,) = [one for one in variations_of(RUN, 0, 6) if one.law == "a crash"]
    check_of(none, variation=crash).replay(of_restart)  # it is another invariant's


@pytest.mark.parametrize(
    ("batch", "when", "n"), [(0, "after batch 0", 1), (1, "after batch 1", 2), (None, "at the end", 3)]
)
def test_of_tables_the_first_that_differs_is_shown(batch: int | None, when: str, n: int) -> None:
    check, one = check_of(), history([click()])
    tables = [[{"n": number}] for number in (1, 2, 3)]
    compared = check.judge.compare_alone(one, check.variation)._replace(
        expected=Expected("cuts", tables), emitted=[[]] * 3, difference=Difference(batch, [{"n": n}], [])
    )
    shown = check.counterexample(one, check.variation, compared).rows
    assert [(row.when, row.side, row.row) for row in shown] == [(when, "only expected", {"n": n})]


def test_rows_are_apart_by_the_durations_of_the_oracle_of_the_plan_and_of_timers() -> None:
    given = options(copy, timers_us=(5 * SECOND, 7 * SECOND), timeouts_us=(SECOND,))
    oracle: Any = SimpleNamespace(
        distances_us=(3 * SECOND,), edges_us=(), closes=lambda mode: True, unmet=lambda *given: []
    )
    draws = Draws(given, oracle, RUN, Plan(durations_us=(4 * SECOND, 5 * SECOND)), takes_late=False)
    assert draws.distances_us == [3 * SECOND, 4 * SECOND, 5 * SECOND, 7 * SECOND]
    for one in draws.draw(3):
        assert one.clock[-1] - one.clock[-2] == 2 * (3 + 4 + 5 + 7 + 1) * SECOND + DAY_US


class Deriving(MemoryRunner):
    """Runs a job that makes the event time of its watermark of other columns."""

    def derived_time(self, plan: Plan) -> str | None:
        return "made"


def with_clock(rows: Any, clock: Any) -> Any:
    return rows


def test_a_derived_event_time_is_refused_where_an_oracle_goes_by_the_clock_of_the_input_s() -> None:
    class Model:
        def arrive(self, row: Any) -> Any:
            return [row]

    def check(oracle: Any, runner: Any = Deriving) -> JobCheck:
        return JobCheck(options(copy, runner), oracle, Variation(RUN))

    by_clock = [FunctionOracle(with_clock), ModelOracle(Model)]
    for oracle in by_clock:
        with pytest.raises(BadInput, match=r"has its watermark on 'made', which it computes from other columns"):
            check(oracle)
        check(oracle, MemoryRunner)
        own: Any = type("Own", (type(oracle),), {"derived_clock": "made"})
        check(own(*vars(oracle).values()))
    for oracle in (JobOracle(), FunctionOracle(copy)):  # without a clock, or at the end, when all is closed
        check(oracle)


@pytest.mark.parametrize(
    ("differs", "settings", "name", "may"),
    [
        (True, {}, FILTERED_WATERMARK.name, False),
        (False, {}, FILTERED_WATERMARK.name, True),
        (None, {}, FILTERED_WATERMARK.name, True),
        (True, {EXCLUDED_RULES: "x"}, FILTERED_WATERMARK.name, True),
    ],
    ids=["still differs", "agrees", "fails", "rules are the user's"],
)
def test_a_divergence_may_be_the_cause_unless_the_job_differs_without_its_rules(
    differs: bool | None, settings: dict[str, str], name: str, may: bool
) -> None:
    ran: list[Any] = []

    def compare(histories: Any, variation: Variation) -> Any:
        ran.append(variation.run.settings)
        if differs is None:
            raise QueryFailed("no such rule")
        return [SimpleNamespace(differs=differs)]

    check: Any = SimpleNamespace(judge=SimpleNamespace(compare=compare))
    given = {"spark.own": "1", **settings}
    assert JobCheck.may_cause(check, name, history(), Variation(replace(RUN, settings=given))) is may
    assert ran == ([] if settings else [{**given, EXCLUDED_RULES: FILTERED_WATERMARK.excluded}])


def test_the_counterexamples_of_each_law_have_a_folder_of_their_own(tmp_path: Path) -> None:
    variations = (Variation(RUN), Restart().variation(RUN, [0, 1]))
    folders = [check_of(variation=one, folder=tmp_path).store.folder for one in variations]
    assert folders == [tmp_path, tmp_path / "a-restart"]
    assert check_of().store.folder is None


@pytest.mark.parametrize(("declared", "met"), [(True, False), (False, True)])
def test_the_notes_are_on_the_declared_plan_or_else_on_that_of_the_runs(declared: bool, met: bool) -> None:
    known, unknown = Plan(operators=frozenset({"Filter"}), skeleton=Skeleton(untimed=True)), Plan()
    plans = [known if one else unknown for one in (declared, met)]
    judge: Any = SimpleNamespace(
        declared=SimpleNamespace(plan=plans[0]), met=SimpleNamespace(plan=plans[1]), witness=SimpleNamespace(sources=[])
    )
    assert [note.partition(":")[0] for note in notes_on(judge)] == ["Note (no timeout)"]
    judge.declared.plan = judge.met.plan = unknown
    assert notes_on(judge) == []
