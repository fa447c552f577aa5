"""The law *duckdb* on Spark: Spark's folded changelog equals the result of the definition's SQL statement on DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....reference.core.history import History
from ...outcomes.outcomes import Outcome, differences
from ...registration.registration import registration_of
from ...witnesses.duckdb.witness import DuckDBWitness
from ...witnesses.spark.witness import QueryWitness
from ..base import BrokenCase, Comparison, LawResult, violations
from ..runs import Kind, Run
from .judging import OutcomeLaw, covered


class DuckDB(OutcomeLaw):
    """Compares Spark with an oracle that uses neither the reference nor Spark."""

    name = "duckdb"
    between = ("duckdb", "spark")
    kinds = (Kind.RANDOM,)
    says = "Spark's folded changelog is the result of DuckDB's statement of the definition"
    needs = "sql"
    reason = "its registration has no SQL statement"
    follows_changelog = True

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each drawn history of a run."""
        result.judged += run.drawn
        result.covered.update(covered(run))
        drawn = run.histories[: run.drawn]
        yield from violations(drawn, _compared(drawn, run.outcomes[: run.drawn], run.whole.pool.by_duckdb(run.whole)))

    def recheck_together(self, histories: Sequence[History], witness: QueryWitness) -> list[Comparison]:
        """Run the histories again on Spark and on DuckDB."""
        return _compared(histories, witness.answers(histories).outcomes, DuckDBWitness().evaluate(histories))


def _compared(
    histories: Sequence[History], outcomes: Sequence[Outcome], answered: Sequence[Outcome]
) -> list[Comparison]:
    return [
        Comparison(("DuckDB", answer), ("Spark", outcome), differences(answer, outcome, unordered(history)))
        for history, outcome, answer in zip(histories, outcomes, answered, strict=True)
    ]


def unordered(history: History) -> bool:
    """Return whether the order of members in lists is irrelevant by the definition of a history."""
    return bool(registration_of(history.operator).declare(history.options).unordered)
