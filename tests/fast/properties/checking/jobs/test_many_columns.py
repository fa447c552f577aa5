"""Of many columns the last counts as the first does: it is drawn, compared, left out and named, in keys too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from memory_jobs import RUN, Batches, MemoryRunner, copy, options
from streamproof import BadInput, Input, Violated
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.generators.columns.histories.goals import goals
from streamproof.properties.generators.columns.model import Expected
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.comparison import check_columns
from streamproof.properties.laws.expected.oracles import JobOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.plan.grouping import Grouping
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared, QueryOutput
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions

KEYS, VALUES = [*"klm"], [*"abcd"]
WIDE = Input("k string, l int, m string, at timestamp, a bigint, b bigint, c bigint, d bigint", key=KEYS, name="clicks")
STAMPS = count()
UNKNOWN = Plan()


@dataclass(frozen=True)
class Declaring(MemoryRunner):
    """It says that the job groups by the key, and the parts of its output."""

    plan: Plan = UNKNOWN

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared(grouping=Grouping(KEYS, KEYS) if run.mode == "update" else None, plan=self.plan)

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        output = super().run(*given, **named)
        return replace(output, parts=output.batches)


def check(job: Callable[[Batches], Batches], expect: Any = copy, plan: Plan = UNKNOWN, **more: Any) -> Any:
    made = options(job, lambda *given: Declaring(*given, plan=plan), WIDE, **more)
    return JobCheck(made, JobOracle(job=expect, comparing="end"), Variation(made.run)).check(60)


def changed(*columns: str, to: Callable[[Any], Any]) -> Callable[[Batches], Batches]:
    return lambda batches: [[{**row, **{name: to(row[name]) for name in columns}} for row in rows] for rows in batches]


def last_of_keys(batches: Batches) -> Batches:
    """Emit the last row of each key of a batch."""
    return [[*{tuple(row[name] for name in KEYS): row for row in rows}.values()] for rows in batches]


@pytest.mark.parametrize("column", [*KEYS[1:], *VALUES])
def test_each_of_many_columns_is_drawn_and_compared(column: str) -> None:
    seldom = changed(column, to=lambda value: value if value in (None, "a", 0, 1) else value * 2 or 7)
    with pytest.raises(Violated) as found:
        check(seldom)
    difference: Any = found.value.counterexample.difference
    ((missing,), (surplus,)) = difference.expected, difference.actual
    assert [name for name in missing if missing[name] != surplus[name]] == [column]


def test_nulls_in_each_of_many_columns_are_a_goal() -> None:
    assert {f"null in {name} of input clicks" for name in VALUES} <= {*goals([resolve(WIDE)], [])}


def test_each_of_many_columns_is_left_out_that_differs_between_runs_or_that_the_user_names() -> None:
    stamped = changed(*VALUES, to=lambda value: next(STAMPS))
    assert (
        "the columns a, b, c, d, whose values differ between runs: they contain times"
        in check(stamped, stamped).limits[0]
    )
    assert check(stamped, without=frozenset(VALUES)).limits[0].startswith("Not compared: the columns a, b, c, d: ")
    with pytest.raises(Violated):
        check(changed(*"abc", to=lambda value: 7), without=frozenset("ab"))


def test_each_column_of_a_key_tells_the_rows_of_a_table_apart() -> None:
    update = replace(RUN, mode="update")
    assert check(last_of_keys, last_of_keys, run=update).histories == 60
    with pytest.raises(BadInput, match=r"with equal values in the columns of its grouping \(k, l, m\)"):
        check(copy, copy, run=update)


@pytest.mark.parametrize("column", KEYS)
def test_that_a_job_computes_with_any_column_of_its_key_is_told(column: str) -> None:
    told = check(copy, plan=Plan(computed=frozenset({column}))).not_checked
    assert any(one.startswith(f"what the job computes with the key {column}, except") for one in told)


@pytest.mark.parametrize("column", VALUES)
def test_each_column_that_is_missing_or_more_is_named(column: str) -> None:
    expected = [Expected("end", [[dict.fromkeys(VALUES, 1)]])]
    assert check_columns(expected, [*VALUES, "e", "f", "g"], "job") == ["e", "f", "g"]
    with pytest.raises(BadInput, match=f"and not '{column}'"):
        check_columns(expected, [name for name in VALUES if name != column], "job")
