"""A judge remembers what its queries have shown, and refuses rows of any of them that nothing tells apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from streamproof import BadInput, Sink
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.laws.expected.judging import Judge
from streamproof.properties.laws.expected.oracles import FunctionOracle, JobOracle
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.plan.grouping import Grouping
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared, QueryOutput
from streamproof.properties.witnesses.run_options import BEFORE, BETWEEN, PLAIN, Crash, RunOptions

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLAINLY = Variation(RUN)


def history(*users: str) -> JobHistory:
    return JobHistory(
        tuple((Arrival("clicks", {"user": user, "at": AT, "amount": 1}),) for user in users), (0,) * len(users)
    )


def judge_of(runner: Any = MemoryRunner, comparing: Any = "batches", **more: Any) -> Judge:
    run = more.get("run", RUN)
    oracle = JobOracle(job=copy, run=run, comparing=comparing)
    return JobCheck(options(copy, runner, **more), oracle, Variation(run)).judge


def test_what_one_of_several_queries_has_shown_is_remembered() -> None:
    shown = iter(
        [
            {"stateful": True, "covered": frozenset({"a"}), "settings": {"spark.a": "1"}, "triggers": ["once"]},
            {
                "covered": frozenset({"b"}),
                "settings": {"spark.b": "2"},
                "triggers": ["now"],
                "divergences": ("filter",),
            },
            {"divergences": ("filter",)},
            {"crashed": [(Crash(0, True, BEFORE), False), (Crash(0), True)]},
        ]
    )

    class Showing(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return replace(super().run(*given, **named), **{"covered": frozenset(), "crashed": [], **next(shown)})

    judge = judge_of(Showing)
    outputs = [judge.witness.evaluate([history("a")], RUN)[1][0] for _ in range(4)]
    for output in outputs:
        judge._note(output, PLAINLY)
    met = judge.met
    assert (met.stateful, met.covered, met.crashed) == (True, {"a", "b"}, {BEFORE, BETWEEN})
    assert (met.settings, met.triggers) == ({"spark.a": "1", "spark.b": "2"}, {"once", "now"})
    assert (met.divergences, judge.divergences) == (("filter",), ("filter",))
    declared = replace(judge.declared, divergences=("another",))
    assert replace(judge, declared=declared).divergences == ("another",)


def test_a_history_is_run_once_in_each_way_until_columns_are_left_out() -> None:
    runs = count()

    class Counting(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            next(runs)
            return super().run(*given, **named)

    judge, stopped = judge_of(Counting), Restart().variation(RUN, [0])
    first = judge.compare_alone(history("a"), PLAINLY)
    each = (PLAINLY, history("a")), (stopped, history("a")), (PLAINLY, history("b"))
    assert judge.compare_alone(history("a"), PLAINLY) is first
    ran = [(next(runs), judge.compare_alone(one, way) is first) for way, one in each]
    assert [is_first for _, is_first in ran] == [True, False, False]
    before = next(runs)
    judge.compare_alone(history("b"), PLAINLY)
    assert next(runs) == before + 1
    judge.leave_out(["amount"])
    assert judge.compare_alone(history("a"), PLAINLY) is not first


def at_end(clicks: Any) -> Any:
    return clicks


def at_cuts(clicks: Any, clock: Any) -> Any:
    return clicks


@pytest.mark.parametrize("comparing", ["end", "cuts"])
@pytest.mark.parametrize("batch", [0, 1])
def test_two_rows_of_any_batch_that_nothing_tells_apart_are_refused(batch: int, comparing: str) -> None:
    class Grouped(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(grouping=Grouping(["user"], ["user"]), columns=("user", "at", "amount"))

        def run(self, *given: Any, **named: Any) -> QueryOutput:
            output = super().run(*given, **named)
            rows = output.batches[batch]
            return replace(output, parts=[*output.batches[:batch], rows * 2])

    update = replace(RUN, mode="update")
    judge = judge_of(Grouped, "end", run=update)
    judge.oracle = FunctionOracle(at_end if comparing == "end" else at_cuts)
    with pytest.raises(
        BadInput, match=r"two rows in one batch with equal values in the columns of its grouping \(user\)"
    ):
        judge.compare([history("a", "b")], Variation(update))


@pytest.mark.parametrize(
    ("names", "at_times", "left"),
    [
        ({"id", "second"}, False, {"id", "second"}),
        ({"id", "second"}, True, {"id"}),
    ],
)
def test_columns_of_randomness_and_of_the_clock_are_left_out_unless_they_identify_rows(
    names: set[str], at_times: bool, left: set[str]
) -> None:
    class Stamping(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(nondeterministic=frozenset({"id", "user"}), of_clock=frozenset({"second"})))

    run = replace(RUN, processing_time=at_times)
    judge = judge_of(Stamping, run=run, unique=["user"])
    judge.compare([history("a")], Variation(run))
    assert judge.met.nondeterministic == left


@pytest.mark.parametrize(
    ("emits", "columns"),
    [
        (lambda number: [{"user": "a", "n": number}], {"n"}),
        (lambda number: [{"user": "a", "n": 1}], set()),
        (lambda number: [{"user": "a", "n": 1}] * (number + 1), None),
        (lambda number: [{"user": number, "n": number}], {"n"}),
    ],
    ids=["a column differs", "alike", "another number of rows", "a column that identifies rows differs"],
)
def test_two_runs_show_the_columns_that_have_other_values_in_each(emits: Any, columns: Any) -> None:
    numbers = count()

    class Other(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return QueryOutput([emits(next(numbers))])

    judge = judge_of(Other, unique=["user"])
    judge.met.columns = ["user", "n"]
    assert judge.other_in_each_run(history("a"), PLAINLY) == columns


def test_two_runs_of_other_numbers_of_batches_differ_in_other_ways() -> None:
    numbers = count(1)

    class Longer(MemoryRunner):
        def run(self, *given: Any, **named: Any) -> QueryOutput:
            return QueryOutput([[]] * next(numbers))

    assert judge_of(Longer).other_in_each_run(history("a"), PLAINLY) is None


def test_the_kinds_of_a_sink_s_values_are_those_of_all_histories() -> None:
    class AsText(MemoryRunner):
        def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
            rows = [row for batch in batches for table in batch.values() for row in table.to_pylist()]
            return QueryOutput([[{**row, "amount": None if row["user"] == "a" else "1"} for row in rows]])

    made = options(copy)
    sink = replace(made, runner=AsText(Sink(copy, copy), made.runner.sources), alone=True)
    judge = JobCheck(sink, JobOracle(job=copy), PLAINLY).judge
    expected = [replace(one, rows=[[{"amount": 1}]]) for one in judge.of_oracle([history("a")] * 2, PLAINLY)]
    emitted, outputs = judge.emitted([history("a"), history("b")], PLAINLY)
    judge.oracle = SimpleNamespace(expected=lambda *given: expected, allows_fewer_columns=False)  # type: ignore[assignment]
    with pytest.raises(
        BadInput, match="in the column 'amount' the sink has '1', but the expected value 1 has another type"
    ):
        judge.compared([history("a"), history("b")], emitted, outputs, PLAINLY)


def test_a_history_without_others_has_its_own_rows_alone_under_the_keys_of_the_shared_query() -> None:
    asked: list[list[str]] = []

    class Noting(MemoryRunner):
        def run(self, batches: Any, *given: Any, **named: Any) -> QueryOutput:
            asked.append([row["user"] for batch in batches for row in batch["clicks"].to_pylist()])
            return super().run(batches, *given, **named)

    judge, shared = judge_of(Noting), [history("a"), history("b"), history("b")]
    expected = judge.expected(shared, PLAINLY)[1]
    asked.clear()
    compared = judge.without_others(shared, 1, expected, PLAINLY)
    ((user,),) = asked
    assert user.endswith("|b")
    assert not compared.differs
    wrong = replace(expected, rows=[[{"user": "c", "at": AT, "amount": 1}]])
    assert judge.without_others(shared, 1, wrong, PLAINLY).differs
    asked.clear()
    assert judge.beside(shared[1], wrong, PLAINLY).differs
    assert asked == [["b"]]


def test_columns_that_a_result_lacks_stay_known_where_later_histories_expect_no_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FunctionOracle, "allows_fewer_columns", True)
    judge = replace(judge_of(), oracle=FunctionOracle(at_end))
    judge.met.columns = ["user", "at"]
    for given in (history("a"), JobHistory(((),))):
        judge.expected([given], PLAINLY)
        assert judge.met.left_out == ["amount"]
