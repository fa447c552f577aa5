"""The law *duckdb* of the reference: a single SQL statement, derived from the operator's options, returns the
reference's result.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...outcomes.outcomes import Outcome
from ...witnesses.duckdb.witness import DuckDBWitness
from .judging import ReferenceLaw


class DuckDBOfReference(ReferenceLaw):
    """Compares the reference with a SQL statement, which keeps no state, and uses the order of arrival only if the
    definition does.
    """

    name = "duckdb"
    between = ("reference", "duckdb")
    says = "DuckDB's statement of the definition gives the reference's result"
    needs = "sql"
    reason = "its registration has no SQL statement"
    witness = "DuckDB"

    def outcomes(self, histories: Sequence[History], played: Sequence[Played]) -> list[Outcome]:
        """Return DuckDB's result of each history."""
        return DuckDBWitness().evaluate(histories)
