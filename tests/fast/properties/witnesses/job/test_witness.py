"""The witness of a job: the rows of each history of a query, and jobs that go by another clock than the check's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from memory_jobs import CLICKS, RUN, MemoryRunner, copy, options
from streamproof import BadInput, Input
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import UnreadableKey
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.query.runnable import Earlier
from streamproof.properties.witnesses.job.running import QueryOutput
from streamproof.properties.witnesses.job.witness import RowsWitness
from streamproof.properties.witnesses.run_options import RunOptions

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHOWN: dict[str, Any] = {}
RAN: list[tuple[Any, ...]] = []


@dataclass(frozen=True)
class Showing(MemoryRunner):
    """Its query shows what the test says, and notes how it is run."""

    def run(self, batches: Any, clock: Any = (), run: RunOptions = RUN, times_ms: Any = ()) -> QueryOutput:
        RAN.append((self.job, self.earlier, [*clock], [*times_ms]))
        return replace(super().run(batches, clock, run), **SHOWN)


def witness(clicks: Input = CLICKS, **more: Any) -> RowsWitness:
    made = options(copy, Showing, clicks)
    return RowsWitness(made.runner, made.inputs, **more)


def history(*users: str) -> JobHistory:
    rows = ({"user": user, "at": AT, "amount": 1} for user in users)
    return JobHistory(tuple((Arrival("clicks", row),) for row in rows), tuple(range(0, 1_000 * len(users), 1_000)))


@pytest.fixture(autouse=True)
def plainly() -> None:
    SHOWN.clear()
    RAN.clear()


@pytest.mark.parametrize(
    ("shown", "takes_late", "how"),
    [
        ({}, False, ""),
        ({"dropped": 1}, False, ""),
        ({"other_times": True}, False, ""),
        ({"other_times": True, "dropped": 1}, True, ""),
        ({"other_times": True, "dropped": 1}, False, "were behind the watermark"),
        ({"ahead": True}, True, "moved the watermark beyond the check's"),
    ],
)
def test_a_job_that_goes_by_another_clock_than_the_check_s_is_refused(
    shown: dict[str, Any], takes_late: bool, how: str
) -> None:
    SHOWN.update(shown)
    encoded = Input("user string, at bigint, amount bigint", key="user", time="at", time_format="ms", name="clicks")
    for clicks, says in ((CLICKS, "takes its event time from other columns"), (encoded, "'at' of clicks as another")):
        asked = witness(clicks, takes_late=takes_late)
        if not how:
            asked.evaluate([history("a")], RUN)
            continue
        with pytest.raises(BadInput, match=f"^copy.*{says}.*rows that the check has drawn {how}: "):
            asked.evaluate([history("a")], RUN)


def test_histories_share_a_query_unless_each_runs_alone_and_each_has_its_rows() -> None:
    given = [history("a", "b"), history("b", "b")]
    for alone, queries in ((False, 1), (True, 2)):
        RAN.clear()
        emitted, outputs = witness(alone=alone).evaluate(given, RUN)
        assert (len(RAN), len(outputs)) == (queries, queries)
        assert emitted == [[[row for _, row in batch] for batch in one.batches] for one in given]
    RAN.clear()
    assert witness().evaluate([], RUN) == ([], [])
    assert not RAN


def test_a_query_is_given_the_history_s_clock_and_its_times_if_it_runs_at_them() -> None:
    asked = witness()
    asked.evaluate([history("a", "b")], RUN)
    asked.evaluate([history("a", "b")], replace(RUN, processing_time=True))
    assert [one[2:] for one in RAN] == [([0, 1_000], []), ([0, 1_000], [0, 1])]


def test_the_witness_of_another_job_has_no_earlier_version() -> None:
    def other(batches: Any) -> Any:
        return batches

    asked = witness()
    asked = replace(asked, runner=replace(asked.runner, earlier=Earlier(copy)))
    asked.of(other).evaluate([history("a")], RUN)  # type: ignore[arg-type]
    asked.evaluate([history("a")], RUN)
    assert [one[:2] for one in RAN] == [(other, None), (copy, Earlier(copy))]


@dataclass(frozen=True)
class Renaming(Showing):
    """It calls the key otherwise; its plan shows it, if it is so said."""

    def run(self, *given: Any, **named: Any) -> QueryOutput:
        output = super().run(*given, **named)
        batches = [[{"who": row["user"], "n": row["amount"]} for row in rows] for rows in output.batches]
        return replace(output, batches=batches)


@pytest.mark.parametrize("where", ["declared", "of the query", ""])
def test_a_key_that_the_job_renames_is_found_where_a_plan_shows_it(where: str) -> None:
    renamed = {"who": "user"}
    SHOWN.update({"plan": Plan(renamed=renamed)} if where == "of the query" else {})
    made = options(copy, Renaming)
    asked = RowsWitness(made.runner, made.inputs, renamed=renamed if where == "declared" else {})
    given = [history("a", "b"), history("b", "b")]
    if where:
        assert asked.evaluate(given, RUN)[0] == [
            [[{"who": row["user"], "n": 1} for _, row in batch] for batch in one.batches] for one in given
        ]
    else:
        with pytest.raises(UnreadableKey, match=r"has the columns who, n, and no column of the key \(user\); with"):
            asked.evaluate(given, RUN)
    alone = replace(asked, renamed={}, alone=True)
    assert [len(rows) for one in alone.evaluate(given, RUN)[0] for rows in one] == [1, 1, 1, 1]


def test_a_job_is_run_as_a_batch_over_all_rows_of_each_history() -> None:
    given = [history("a", "b"), history("b", "b")]
    wanted = [[row for _, row in one.arrivals] for one in given]
    for alone in (False, True):
        assert witness(alone=alone).as_batch(given, RUN) == wanted
    users: list[Any] = []

    def noting(batches: Any) -> Any:
        users.extend(row["user"] for rows in batches for row in rows)
        return batches

    asked = witness()
    assert asked.of(noting).as_batch(given[:1], RUN) == wanted[:1]  # type: ignore[arg-type]
    assert users == ["a", "b"]
