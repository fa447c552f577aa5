"""A judge remembers what its queries have shown, and refuses rows of any of them that nothing tells apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from streamproof import BadInput
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.laws.expected.judging import Judge
from streamproof.properties.laws.expected.oracles import JobOracle
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.plan.grouping import Grouping
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared, Output
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
        def run(self, *given: Any, **named: Any) -> Output:
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
        def run(self, *given: Any, **named: Any) -> Output:
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


@pytest.mark.parametrize("batch", [0, 1])
def test_two_rows_of_any_batch_that_nothing_tells_apart_are_refused(batch: int) -> None:
    class Grouped(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(grouping=Grouping(["user"], ["user"]), columns=("user", "at", "amount"))

        def run(self, *given: Any, **named: Any) -> Output:
            output = super().run(*given, **named)
            rows = output.batches[batch]
            return replace(output, parts=[*output.batches[:batch], rows * 2])

    update = replace(RUN, mode="update")
    judge = judge_of(Grouped, "end", run=update)
    with pytest.raises(BadInput, match="two rows in one batch that the columns of its grouping, user, can't tell"):
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
