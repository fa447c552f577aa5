"""Aggregate functions of Spark SQL over the rows of a group. All except `count(*)` ignore nulls.

Sources: `Count`, `Sum`, `Average`, `Min`, `Max` and `collect` in `org.apache.spark.sql.catalyst.expressions.aggregate`.
Spark leaves the order of `collect_list` and `collect_set` undefined; this module sorts them, like `sort_array`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

Row: TypeAlias = Mapping[str, Any]
"""A row: values by column name."""
Mode: TypeAlias = Literal["append", "update", "complete"]
"""The output modes of a query."""


class AggregateFunction(NamedTuple):
    """An aggregate function over a column.

    Attributes:
        function: One of `FUNCTIONS`.
        column: The column; None for `count(*)`.
    """

    function: str
    column: str | None

    def of(self, rows: Iterable[Row]) -> Any:
        """Return the aggregate of the rows."""
        if self.column is None:
            return len(list(rows))
        return FUNCTIONS[self.function]([row[self.column] for row in rows if row[self.column] is not None])


def _order(value: Any) -> tuple[bool, Any]:
    return (value != value, value)  # NaN != NaN, and Spark orders NaN last


def _of_some(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: function(values) if values else None


FUNCTIONS: Mapping[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "sum": _of_some(sum),
    "min": _of_some(lambda values: min(values, key=_order)),
    "max": _of_some(lambda values: max(values, key=_order)),
    "avg": _of_some(lambda values: float(sum(values)) / len(values)),
    "collect_list": lambda values: sorted(values, key=_order),
    "collect_set": lambda values: sorted(set(values), key=_order),
}
"""The functions of a list of values without nulls, by their names in Spark SQL."""
