"""The witness on DuckDB: one SQL statement per operator over many histories, independent of the reference.

The statement of each operator is in a `.sql` file of `properties/operators`. Each statement computes the clock,
lateness, matches and results from the arrivals itself; `relation` only converts the arrivals to a table, and `answers`
decodes the result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.core.history import History
from ...outcomes.outcomes import Grain, Outcome
from ...registration.registration import registration_of
from ..base import Witness
from ..run_options import PLAIN, RunOptions
from .answers import results_of
from .relation import Arrivals, run_statement


@dataclass(frozen=True)
class DuckDBWitness(Witness):
    """The witness on DuckDB: an SQL statement for each operator; histories of any options share a query."""

    name = "duckdb"
    grain = Grain.END

    def refuses(self, history: History) -> str | None:
        """Refuse histories that no statement supports, such as with manual delivery."""
        registration = registration_of(history.operator)
        if registration.sql is None:
            return f"duckdb has no statement for {history.operator}"
        registration.declare(history.options)
        refusal = registration.sql.refusal(history.options)
        return None if refusal is None else f"duckdb has no statement for {history.operator} {refusal}"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the final result of every history.

        Returns:
            Outcomes at grain `END`; `final` is the table `{(key, window): (value, timestamp)}` in ms, or for a stream
            the bag of its results. A sum of floats adds the values in their order, so the last digit may differ from
            the reference's sum of partial sums.

        Raises:
            BadInput: A history is refused, a record is invalid, a whole number or a sum of whole numbers has more than
                38 digits, or `min` or `max` compares strings with numbers.
        """
        groups: dict[str, dict[Any, list[int]]] = defaultdict(lambda: defaultdict(list))
        for index, history in enumerate(histories):
            options = tuple(sorted((name, repr(value)) for name, value in history.options.items()))
            groups[history.operator][options, history.clock].append(index)
        for definitions in groups.values():
            for indexes in definitions.values():
                if (reason := self.refuses(histories[indexes[0]])) is not None:
                    raise BadInput(f"{reason}; use another witness")
        outcomes: dict[int, Outcome] = {}
        for operator, definitions in groups.items():
            sql = registration_of(operator).sql
            assert sql is not None
            arrivals = Arrivals(sql)
            for indexes in definitions.values():
                of_definition = [histories[index] for index in indexes]
                arrivals.add(of_definition, registration_of(operator).declare(of_definition[0].options))
            answered = [index for indexes in definitions.values() for index in indexes]
            for index, result in zip(answered, results_of(arrivals, run_statement(arrivals)), strict=True):
                is_stream = sql.is_stream(histories[index].options)
                outcomes[index] = Outcome(
                    histories[index].name, self.grain, final=result, knows_dropped=False, is_stream=is_stream
                )
        return [outcomes[index] for index in range(len(histories))]
