"""The witness that runs on DuckDB: one SQL statement an operator over the whole cohort, independent of the reference.

The statements lie beside the operators. Each works out the clock, lateness, matches and results from the arrivals by
itself; `relation` only lays the arrivals out as a table, and `answers` reads the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.core.history import History
from ...registration.registration import registration_of
from ..base import PLAIN, RunOptions, Witness
from ..outcomes import Grain, Outcome
from .answers import results_of
from .relation import Cohort, run_statement


@dataclass(frozen=True)
class DuckDBWitness(Witness):
    """One SQL statement an operator; histories of the same options and clock share a query."""

    name = "duckdb"
    grain = Grain.END

    def refuses(self, history: History) -> str | None:
        """Refuse what no statement knows, such as manual delivery."""
        registration = registration_of(history.operator)
        if registration.sql is None:
            return f"duckdb has no statement for {history.operator}"
        refusal = registration.sql.refusal(registration.declare(history.options))
        return None if refusal is None else f"duckdb has no statement for {history.operator} {refusal}"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the result of every history at its end.

        Returns:
            Outcomes at grain `END`; `final` is the table `{(key, window): (value, timestamp)}` in ms, or of a stream
            the bag of its results. A sum of floats adds its members in order, and may differ in the last digit from a
            sum of sums.

        Raises:
            BadInput: A history is refused, the operator can't take a record, a whole number or a sum of them has more
                than 38 digits, or `min` or `max` is to compare strings with numbers.
        """
        groups: dict[Any, list[int]] = defaultdict(list)
        for index, history in enumerate(histories):
            options = tuple(sorted((name, repr(value)) for name, value in history.options.items()))
            groups[history.operator, options, history.clock].append(index)
        outcomes: dict[int, Outcome] = {}
        for (name, _, clock), indexes in groups.items():
            if (reason := self.refuses(histories[indexes[0]])) is not None:
                raise BadInput(f"{reason}; use another witness")
            registration = registration_of(name)
            assert registration.sql is not None
            definition = registration.declare(histories[indexes[0]].options)
            cohort = Cohort([histories[index] for index in indexes], definition, registration.sql)
            answer = run_statement(registration.sql, cohort.relation(), definition, clock)
            for index, result in zip(indexes, results_of(cohort, answer, len(indexes)), strict=True):
                outcomes[index] = Outcome(
                    histories[index].name, self.grain, final=result, knows_dropped=False, is_stream=definition.is_stream
                )
        return [outcomes[index] for index in range(len(histories))]
