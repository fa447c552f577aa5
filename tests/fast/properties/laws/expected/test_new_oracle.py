"""A new oracle is one class that says what it expects of each history: here, the rows that have an amount."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from memory_jobs import Batches, checked
from streamproof import Violated
from streamproof.properties.generators.columns.model import Expected, JobHistory, Source
from streamproof.properties.laws.expected.oracle import Oracle
from streamproof.properties.witnesses.run_options import Mode, RunOptions


class WithAmount(Oracle):
    """Each row that has an amount is expected in its batch, however late it is."""

    name = "rows with an amount"
    takes_late = True

    def closes(self, mode: Mode) -> bool:
        return False

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        return [
            Expected("batches", [[row for _, row in batch if row["amount"] is not None] for batch in history.batches])
            for history in histories
        ]


def with_amount(batches: Batches) -> Batches:
    return [[row for row in rows if row["amount"] is not None] for rows in batches]


def with_another_amount_than_0(batches: Batches) -> Batches:
    return [[row for row in rows if row["amount"]] for rows in batches]


def test_a_job_that_emits_what_the_oracle_expects_conforms() -> None:
    report = checked(with_amount, WithAmount())
    assert (report.laws, report.comparing) == ({"rows with an amount": 40}, "batches")
    assert report.expecting > 30


def test_a_job_that_differs_is_shown_on_one_row() -> None:
    with pytest.raises(Violated, match="rows with an amount expects") as raised:
        checked(with_another_amount_than_0, WithAmount())
    counterexample: Any = raised.value.counterexample
    ((_, row),) = counterexample.history.arrivals
    assert row["amount"] == 0
