"""Compares what a job emitted with what is expected: rows in no order, batch by batch, or tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ...reference.core.errors import BadInput
from .model import Comparing, Expected, Mode, Row

STRENGTHS: Mapping[Comparing, str] = {
    "batches": "the rows of each batch, as a bag",
    "cuts": "the table after each batch",
    "end": "the table at the end",
}
"""How strong a comparison is, in words."""
WINDOWS = ("session_window", "window")
"""The columns of a window, whose `start` and `end` are compared."""


@dataclass(frozen=True)
class RowDifference:
    """Where the rows differ first.

    Attributes:
        batch: The batch (from 0); None: at the end.
        missing: The rows that were expected and didn't come.
        surplus: The rows that came and weren't expected.
    """

    batch: int | None
    missing: Sequence[Row]
    surplus: Sequence[Row]


def canonical(value: Any) -> Any:
    """Return a hashable value that is equal for what counts as the same: numbers by value, whatever their types.

    Numbers that differ beyond the 12th digit alone are the same; truth values are no numbers, and text is no number.
    """
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, (int, float, Decimal)):
        return _number(value)
    if isinstance(value, datetime):
        return ("time", value.replace(tzinfo=None).isoformat())  # those with a zone are in UTC
    if isinstance(value, date):
        return ("date", value.isoformat())
    if isinstance(value, Mapping):
        return ("struct", tuple(sorted((name, canonical(inner)) for name, inner in value.items())))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(map(canonical, value)))
    return (type(value).__name__, value)


def _number(value: float | Decimal) -> Any:
    if math.isnan(value):
        return ("number", "NaN")
    if math.isinf(value) or value == int(value):
        return ("number", float(value) if math.isinf(value) else int(value))
    return ("number", float(f"{value:.12g}"))


def flat(rows: Sequence[Row]) -> list[Row]:
    """Return rows in which a column `window` or `session_window` stands as its two fields, `start` and `end`."""
    flattened = []
    for row in rows:
        window = next((name for name in WINDOWS if isinstance(row.get(name), Mapping)), None)
        if window is not None and not {"start", "end"} & set(row):
            row = {**{name: value for name, value in row.items() if name != window}, **row[window]}
        flattened.append(row)
    return flattened


def table_of(batches: Sequence[Sequence[Row]], mode: Mode, unique: Sequence[str] | None) -> list[list[Row]]:
    """Return the table after each batch, of the rows that the batches emitted.

    Args:
        batches: The rows of each batch.
        mode: `append`: all rows so far; `update`: of each value of `unique` the last; `complete`: the batch's rows.
        unique: The columns that tell the rows of the table apart; None where each row is one of its own.
    """
    if mode == "complete":
        return [list(batch) for batch in batches]
    tables: list[list[Row]] = []
    rows: list[Row] = []
    by_key: dict[Any, Row] = {}
    for batch in batches:
        if mode == "append" or unique is None:
            rows = [*rows, *batch]
        else:
            by_key |= {tuple(canonical(row.get(column)) for column in unique): row for row in batch}
            rows = list(by_key.values())
        tables.append(rows)
    return tables


def difference(
    expected: Expected, batches: Sequence[Sequence[Row]], mode: Mode, unique: Sequence[str] | None
) -> RowDifference | None:
    """Return where what was emitted differs first from what is expected, or None; other columns aren't compared.

    Args:
        expected: What is expected.
        batches: The rows of each batch that were emitted; of a sink one list, the table at the end.
        mode: The job's output mode.
        unique: The columns that tell the rows of the table apart; None where each row is one of its own.
    """
    wanted = [flat(rows) for rows in expected.rows]
    columns = sorted({column for rows in wanted for row in rows for column in row})
    came = [flat(rows) for rows in batches]
    if expected.comparing != "batches":
        came = table_of(came, mode, unique)
    if expected.comparing == "end" or len(came) < len(wanted):
        wanted, came = wanted[-1:], came[-1:]
    for batch, (of_expected, of_actual) in enumerate(zip(wanted, came, strict=True)):
        missing, surplus = _bag_difference(of_expected, of_actual, columns)
        if missing or surplus:
            at_end = expected.comparing == "end" or len(expected.rows) > len(wanted)
            return RowDifference(None if at_end else batch, missing, surplus)
    return None


def _bag_difference(
    expected: Sequence[Row], actual: Sequence[Row], columns: Sequence[str]
) -> tuple[list[Row], list[Row]]:
    def keyed(rows: Sequence[Row]) -> list[tuple[Any, Row]]:
        compared = columns or sorted({column for row in rows for column in row})
        return [(tuple(canonical(row.get(column)) for column in compared), row) for row in rows]

    left, right = keyed(expected), keyed(actual)
    counts = Counter(key for key, _ in left)
    counts.subtract(key for key, _ in right)
    missing: list[Row] = []
    surplus: list[Row] = []
    for pairs, sign, into in ((left, 1, missing), (right, -1, surplus)):
        for key, row in pairs:
            if counts[key] * sign > 0:
                counts[key] -= sign
                into.append({column: value for column, value in row.items() if column in (columns or row)})
    return missing, surplus


def check_columns(expected: Sequence[Expected], columns: Sequence[str], where: str) -> list[str]:
    """Return the columns of the job's result that nothing is expected of.

    Args:
        expected: What is expected of all histories.
        columns: The columns of the job's result; a window's count as its start and end.
        where: What messages call the job.

    Raises:
        BadInput: A column is expected that the job's result has not.
    """
    wanted: dict[str, None] = {}
    for one in expected:
        for rows in one.rows:
            for row in flat(rows):
                wanted |= dict.fromkeys(row)
    came = [column for name in columns for column in (("start", "end") if name in WINDOWS else (name,))]
    missing = [column for column in wanted if column not in came]
    if missing:
        raise BadInput(
            f"{where}: the result has the columns {', '.join(columns) or 'none'}; expected are {', '.join(wanted)}: "
            f"name the column {missing[0]!r} so with .alias(), or rename it in what is expected"
        )
    return [column for column in came if wanted and column not in wanted]
