"""A job's use of static tables: by a key that histories share, in a lookup or as an initial state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .plans import Plan, members

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TablesUsed:
    """A job's use of static tables.

    Attributes:
        by_key: For each table, its columns that are the key of an initial state or of a lookup, each with the name of
            the stream's column, in lower case.
        initial: The tables that are an initial state (None in the set: an initial state from another source).
        elsewhere: The stream columns looked up outside the given tables, such as in a relation that the job reads
            itself; in lower case.
    """

    by_key: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    initial: frozenset[str | None] = frozenset()
    elsewhere: frozenset[str] = frozenset()


def tables_used(plan: Plan, tables: Mapping[str, DataFrame]) -> TablesUsed:
    """Return the use of the given tables in a job's plan."""
    if not (plan.initial_keys or plan.looked_up):
        return TablesUsed()
    ids = {name: _column_ids(frame) for name, frame in tables.items()}
    known = {number for of in ids.values() for number in of}
    by_name = sorted(plan.looked_up, key=lambda one: one[0])  # each run prefers the same column
    looked_up = [(column, number) for column, number in by_name if number in known]
    by_key = {name: {of[number]: column for column, number in looked_up if number in of} for name, of in ids.items()}
    for name, of in ids.items():
        by_key[name] |= {of[number]: of[number].lower() for key in plan.initial_keys for number in key if number in of}
    initial: set[str | None] = set()
    for key in plan.initial_keys:
        initial |= {name for name, of in ids.items() if key & of.keys()} or {None}
    elsewhere = frozenset(column for column, number in plan.looked_up if number not in known)
    return TablesUsed(by_key, frozenset(initial), elsewhere)


def _column_ids(frame: DataFrame) -> dict[int, str]:
    columns = members(frame._jdf.queryExecution().analyzed().output())
    return {column.exprId().id(): str(column.name()) for column in columns}
