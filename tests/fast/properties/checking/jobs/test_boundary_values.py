"""The constants of a job, of its plan and of its oracle, around which a check draws values."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import Batches, copy, options
from streamproof import Input, Script, Sink
from streamproof.properties.checking.jobs import smallest
from streamproof.properties.checking.jobs.boundary_values import _code, with_boundary_values
from streamproof.properties.checking.jobs.smallest import plainest, shrunk
from streamproof.properties.generators.columns.model import JobHistory
from streamproof.properties.generators.columns.terms import COLUMN, CONSTANT, Term
from streamproof.properties.generators.shrinking import Deadline
from streamproof.properties.laws.expected.oracles import FunctionOracle, JobOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.scripts.script import StartOf
from streamproof.properties.witnesses.run_options import RunOptions

SHOWN = Plan(operators=frozenset({"Project"}))


def limited(batches: Batches) -> Batches:
    limit = 4_321
    return [[row for row in rows if within(row, limit)] for rows in batches]


def within(row: Any, limit: int) -> bool:
    return bool(row["amount"] < limit or row["amount"] == 8_642)


def expecting(rows: Any) -> Any:
    return [row for row in rows if row["amount"] < 765_432]


def constants(job: Any = copy, plan: Plan = SHOWN, oracle: Any = None, **more: Any) -> str:
    made = with_boundary_values(options(job, **more), plan, oracle or FunctionOracle(expecting))
    (given,) = made.inputs
    return repr(given.constants)


def test_the_constants_of_what_is_expected_and_of_code_that_no_plan_shows_are_drawn() -> None:
    assert "765432" in constants()
    assert "4321" not in constants(limited)
    found = constants(limited, Plan())
    # The job's own constants are in its plan, where they decide; those of functions that it calls are in no plan.
    assert ("8642" in found, "4321" in found) == (True, False)
    of_sink = constants(Sink(limited, copy), Plan())  # type: ignore[arg-type]
    assert ("8642" in of_sink, "4321" in of_sink) == (True, True)


def test_an_oracle_that_is_the_job_itself_adds_no_constant_and_another_job_does() -> None:
    assert "8642" not in constants(limited, oracle=JobOracle(limited))
    assert "8642" in constants(copy, oracle=JobOracle(limited))


def test_the_constants_of_a_plan_s_comparisons_are_drawn() -> None:
    amount = Term(COLUMN, (), (("user", "at", "amount"), "amount"))
    less = Term("LessThan", (amount, Term(CONSTANT, (), 5_555)))
    assert "5555" in constants(plan=replace(SHOWN, comparisons=[less]))
    assert "5555" not in constants()


def test_where_all_digits_are_compared_only_numbers_with_exact_sums_are_drawn() -> None:
    def tenth(rows: Any) -> Any:
        return [row for row in rows if row["amount"] < 7.1]

    clicks = Input("user string, at timestamp, amount double", key="user", name="clicks")
    oracle = FunctionOracle(tenth)
    drawn = [constants(oracle=oracle, clicks=clicks, equality=Equality(digits)) for digits in (3, None)]
    assert [re.search(r"7\.1(?!\d)", one) is not None for one in drawn] == [True, False]


def test_the_code_of_a_script_is_its_function_or_its_file_and_none_that_is_no_python(tmp_path: Path) -> None:
    reads = {"clicks": Input("user string, at timestamp", key="user")}
    path = tmp_path / "job.py"
    path.write_text("print(7_654)\n")
    of_file = Script(path, reads=reads)
    (code,) = _code(of_file)
    assert 7_654 in code.co_consts
    assert [*_code(Sink(StartOf(of_file), print))] == [code]
    assert [*_code(Script(limited, reads=reads))] == [limited]
    path.write_text("print(\n")
    assert [*_code(Script(path, reads=reads))] == []
    assert [*_code(Sink(limited, copy))] == [limited]  # type: ignore[arg-type]
    assert [*_code("SELECT 1")] == ["SELECT 1"]


def judge_of(differs: bool, alone: bool = False) -> Any:
    compared = SimpleNamespace(differs=differs, difference=None, output=None)
    judge = SimpleNamespace(name="job", witness=SimpleNamespace(alone=alone))
    judge.compare_alone = lambda history, part: compared
    judge.compare = lambda histories, part: [compared for _ in histories]
    return judge


EMPTY = JobHistory(((), ()), (1, 2))


@pytest.mark.parametrize("takes_late", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_a_smaller_history_has_late_rows_only_where_they_are_drawn(
    takes_late: bool, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def shrink(history: JobHistory, inputs: Any, differ: Any, *, delay_us: int | None, deadline: Deadline) -> Any:
        asked.append((delay_us, [*differ([history, history])]))
        return history

    monkeypatch.setattr(smallest, "shrink", shrink)
    draws: Any = SimpleNamespace(takes_late=takes_late, out_of_order_us=7, inputs=())
    output: Any = None
    for differs in (True, False):
        judge = judge_of(differs, alone)
        assert shrunk(judge, draws, EMPTY, Variation(RunOptions()), output=output, deadline=Deadline(60))[0] == EMPTY
    delay_us = None if takes_late else 7
    # Of histories that run one by one none is run behind one that differs.
    assert asked == [(delay_us, [True, not alone]), (delay_us, [False, False])]


@pytest.mark.parametrize(
    ("closes", "by_time", "trigger", "asked"),
    [
        (False, False, "default", [False]),
        (False, False, "available_now", [True]),
        (True, False, "default", []),
        (False, True, "default", []),
    ],
)
def test_a_history_is_written_without_its_clock_where_rows_can_move_the_watermark(
    closes: bool, by_time: bool, trigger: Any, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def standing_alone(history: Any, inputs: Any, first: Any, *, sooner: bool) -> list[JobHistory]:
        seen.append(sooner)
        return [JobHistory(((),), (number,)) for number in range(smallest.MAX_WITHOUT_CLOCK + 1)]

    monkeypatch.setattr(smallest, "standing_alone", standing_alone)
    draws: Any = SimpleNamespace(closes=closes, inputs=())
    variation = Variation(RunOptions(processing_time=by_time, trigger=trigger))
    found, _ = plainest(judge_of(True), draws, EMPTY, variation, deadline=Deadline(60))
    assert (seen, found.clock == (0,)) == (asked, bool(asked))
    same, _ = plainest(judge_of(False), draws, EMPTY, variation, deadline=Deadline(60))
    assert same is EMPTY
    over = Deadline(0)
    assert plainest(judge_of(True), draws, EMPTY, variation, deadline=over)[0] is EMPTY
