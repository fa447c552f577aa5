"""The join of a stream with a static table: each stream row looks up the table when it arrives.

Source: the Structured Streaming guide, "Stream-static Joins": the join is stateless, so no row is late. A null key
matches nothing (`EqualTo`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .aggregates import Row

StaticJoinKind: TypeAlias = Literal["inner", "left", "left_semi", "left_anti"]


@dataclass(frozen=True)
class StaticJoin:
    """A join of a stream with a static table.

    Attributes:
        join: `inner` or `left`; or `left_semi` or `left_anti`, which keep only the stream's columns.
        keys: The columns of the stream's key.
        table_keys: The table's key columns, in the same order.
        added: The table's columns in the output, beside all columns of the stream.
        table: The rows of the table.
    """

    join: StaticJoinKind
    keys: tuple[str, ...]
    table_keys: tuple[str, ...]
    added: tuple[str, ...]
    table: tuple[Row, ...]

    def batch(self, rows: Iterable[Row]) -> list[Row]:
        """Process the rows of a micro-batch, and return the emitted rows."""
        emitted: list[Row] = []
        for row in rows:
            matches = [of_table for of_table in self.table if self.matches(row, of_table)]
            if self.join in ("left_semi", "left_anti"):
                emitted += [row] if bool(matches) == (self.join == "left_semi") else []
            else:
                emitted += [{**row, **{name: of_table[name] for name in self.added}} for of_table in matches]
                if self.join == "left" and not matches:
                    emitted.append({**row, **dict.fromkeys(self.added)})
        return emitted

    def matches(self, row: Row, table_row: Row) -> bool:
        """Return whether the keys of a stream row and a table row are equal and not null."""
        pairs = [(row[one], table_row[two]) for one, two in zip(self.keys, self.table_keys, strict=True)]
        return all(one is not None and one == two for one, two in pairs)
