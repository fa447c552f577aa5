"""The fates of a job's mutants: killed, survived and why, without a difference, or one that doesn't run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import RUN, Batches, MemoryRunner, copy, options
from streamproof import BadInput, Inconclusive, as_batch
from streamproof.properties.checking.jobs import mutants
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.jobs.mutants import (
    ADVICE,
    ALIKE,
    INTERPRETED,
    MAX_SECONDS,
    NO_COLUMN,
    OTHERWISE,
    TOO_WEAK,
    _Checking,
    _Memory,
    _MutantCheck,
    _quick,
    check_mutants,
)
from streamproof.properties.laws.expected.oracles import FunctionOracle, JobOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.witnesses.job.running import Declared, QueryOutput
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed

COLUMNS = ("user", "at", "amount")
RUNS: list[RunOptions] = []


class Noting(MemoryRunner):
    """It notes how it is run; the columns of a job are those that it says it has."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        columns = getattr(self.job, "columns", COLUMNS)
        return Declared(names=columns, columns=columns)

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        RUNS.extend(given[2:3])
        return super().run(*given, **named)


def users(clicks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expect each row's user alone, whatever its amount."""
    return [{"user": row["user"]} for row in clicks]


def checking(expect: Any = users, histories: int = 10, **more: Any) -> _Checking:
    given = options(copy, Noting, **more)
    oracle = FunctionOracle(expect) if callable(expect) else expect
    plain = JobCheck(given, oracle, Variation(given.run))
    return _Checking(plain, expect, histories, given.run, JobOracle(copy, plain={}))


def fate(
    job: Callable[[Batches], Batches] | None, kind: str = "number", of: _Checking | None = None
) -> tuple[str, str]:
    def make() -> Any:
        if job is None:
            raise ValueError("no such name")
        return job

    mutant: Any = SimpleNamespace(make=make, kind=kind, before="amount > 5", after="amount >= 5")
    return (of or checking()).fate(mutant)


def changed(**to: Any) -> Callable[[Batches], Batches]:
    return lambda batches: [[{**row, **to} for row in rows] for rows in batches]


def lacking(batches: Batches) -> Batches:
    return [[{"user": row["user"], "at": row["at"]} for row in rows] for rows in batches]


lacking.columns = ("user", "at")  # type: ignore[attr-defined]


def more_columns(batches: Batches) -> Batches:
    return changed(more=1)(batches)


more_columns.columns = (*COLUMNS, "more")  # type: ignore[attr-defined]


def failing(error: Exception) -> Callable[[Batches], Batches]:
    def job(batches: Batches) -> Batches:
        raise error

    return job


def test_a_mutant_is_killed_by_a_difference_or_a_failed_query_and_one_that_spark_refuses_doesn_t_run() -> None:
    lost, why = fate(lambda batches: [rows[1:] for rows in batches])
    assert (lost, "of 10 histories differ" in why) == ("killed", True)
    assert fate(failing(QueryFailed("it broke"))) == ("killed", "it broke")
    assert fate(failing(BadInput("no such column"))) == ("doesn't run", "no such column")
    assert fate(None) == ("doesn't run", "its module fails: ValueError: no such name")


def test_a_mutant_that_survives_says_what_would_notice_it() -> None:
    other = changed(amount=7)
    assert fate(other) == ("survived", TOO_WEAK)
    assert fate(other, "duration") == ("survived", ADVICE["duration"])
    assert fate(lacking) == ("survived", NO_COLUMN)
    assert fate(more_columns)[0] == "no difference"  # compared are the columns of the job as it is
    assert fate(other, of=checking(as_batch())) == ("survived", ALIKE)


@pytest.mark.parametrize("kind", [*ADVICE, "another"])
def test_a_mutant_without_a_difference_says_what_may_show_one(kind: str) -> None:
    values = 'Input(…, values={"amount": […]})'
    says = ADVICE.get(kind, OTHERWISE).replace("Input(…, {values})", values)
    assert fate(copy, kind) == ("no difference", says)


def test_mutants_are_compared_as_the_job_is_in_each_option() -> None:
    near = changed(amount=1.0001)
    rounded = checking(lambda clicks: [{"amount": 1.0} for _ in clicks], equality=Equality(3))
    assert fate(near, of=rounded)[0] == "survived"
    exact = checking(lambda clicks: [{"amount": 1.0} for _ in clicks], equality=Equality(6))
    assert fate(near, of=exact)[0] == "killed"
    without = checking(
        lambda clicks: [{"user": row["user"], "amount": 0} for row in clicks], without=frozenset({"amount"})
    )
    assert fate(changed(amount=7), of=without)[0] == "no difference"


def test_a_mutant_s_query_may_take_no_longer_than_a_limit() -> None:
    for seconds, limit in ((600, MAX_SECONDS), (7, 7)):
        RUNS.clear()
        fate(copy, of=checking(run=replace(RUN, seconds=seconds)))
        assert {run.seconds for run in RUNS if run.seconds != seconds} | {min(seconds, limit)} == {limit}
        assert limit in {run.seconds for run in RUNS}


def test_mutants_run_quickly_unless_the_user_s_settings_say_otherwise() -> None:
    plain = checking(run=replace(RUN, settings={"spark.sql.codegen.wholeStage": "true", "spark.a": "1"})).plain
    quick = _quick(plain)
    assert (quick.partitions, quick.mode) == (1, "append")
    assert quick.settings == {**INTERPRETED, "spark.sql.codegen.wholeStage": "true", "spark.a": "1"}
    assert _quick(checking(run=replace(RUN, partitions=3)).plain).partitions == 3


def test_histories_that_show_nothing_of_a_mutant_are_no_difference() -> None:
    few = checking(histories=3)
    found, why = fate(changed(amount=7), of=few)
    assert (found, "at least 10 histories" in why) == ("killed", True)


def test_what_is_expected_is_shared_by_mutants_whose_histories_are_drawn_alike() -> None:
    memory, given = _Memory(), options(copy, Noting)

    def asked(**more: Any) -> list[Any]:
        oracle = FunctionOracle(users, **more)
        check = _MutantCheck(memory, replace(given), oracle, Variation(given.run))
        return check.judge.expected(check.draws.draw(3), check.variation)

    first = asked()
    assert asked() is first or asked() == first
    assert len(memory.expected) == 1
    (key,) = memory.expected
    check = _MutantCheck(memory, given, FunctionOracle(users), Variation(given.run))
    draws = check.draws
    assert key[0] == (draws.takes_late, draws.closes, draws.out_of_order_us, *draws.distances_us)
    late = _MutantCheck(memory, replace(given, out_of_order="1 hour"), FunctionOracle(users), Variation(given.run))
    assert late.judge.drawn_for != check.judge.drawn_for  # type: ignore[attr-defined]


LIMIT = 5


def above(batches: Batches) -> Batches:
    return [[row for row in rows if (row["amount"] or 0) > LIMIT] for rows in batches]


class Refusing(Noting):
    """It refuses a job that does with rows what they can't do, as Spark's runner does."""

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        try:
            return super().run(*given, **named)
        except (AttributeError, TypeError) as error:
            raise BadInput(str(error)) from None


@pytest.mark.parametrize("own_session", [True, False])
def test_each_mutant_of_a_job_s_source_is_checked_and_told(own_session: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "is_own_session", lambda: own_session)
    started: list[int] = []
    monkeypatch.setattr(mutants, "use_own_session", started.append)
    report = check_mutants(options(above, Refusing), as_batch(above), 20)
    assert report.job.startswith("above (")
    fates = {one.mutant.partition(": ")[2] or one.mutant: one.fate for one in report.judged}
    assert fates["`5` → `6`"] == "killed"
    assert bool(started) == own_session
    assert {*fates.values()} <= {"killed", "survived", "no difference", "doesn't run"}


def test_a_source_that_gives_another_job_when_it_runs_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "is_own_session", lambda: False)
    number = {"value": 5}

    def changing(batches: Batches) -> Batches:
        return [[row for row in rows if (row["amount"] or 0) > number["value"]] for rows in batches]

    with pytest.raises(BadInput):
        check_mutants(options(changing, Noting), as_batch(copy), 20)


def test_a_mutant_is_compared_with_the_job_beside_others_or_alone() -> None:
    for more in ({}, {"alone": True}):
        of = checking(**more)
        for job, alike in ((copy, True), (changed(amount=7), False)):
            given = replace(of.plain.options, runner=replace(of.plain.options.runner, job=job))
            check = _MutantCheck(_Memory(), given, FunctionOracle(users), Variation(RUN))
            check.check(10)
            assert (check.ran is None) == bool(more)
            assert check.is_as(JobOracle(copy, plain={}), 10) is alike


def test_a_mutant_of_which_histories_show_nothing_has_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def shows_nothing(self: Any, *given: Any) -> bool:
        raise Inconclusive("no row", job="copy")

    monkeypatch.setattr(_MutantCheck, "is_as", shows_nothing)
    assert fate(changed(amount=7)) == (
        "no difference",
        'list values around the constant, Input(…, values={"amount": […]})',
    )


def test_a_mutant_that_was_judged_alone_is_compared_with_the_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    of, asked = checking(), []

    class Alone:
        def __init__(self, memory: Any, given: Any, original: Any, variation: Any) -> None:
            asked.append(original)

        def check(self, histories: int) -> None:
            asked.append(histories)

    monkeypatch.setattr(mutants, "_ComparedWithOriginal", Alone)
    check = _MutantCheck(_Memory(), of.plain.options, FunctionOracle(users), Variation(RUN))
    check.check(10)
    assert check.ran is not None
    original = JobOracle(copy, plain={})
    for why, wanted in (("", []), ("a key can't be read", [original, 10])):
        check.why_alone = why
        assert check.is_as(original, 10)
        assert asked == wanted
