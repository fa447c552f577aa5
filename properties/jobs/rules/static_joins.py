"""The rules of a join of a stream with a table that doesn't change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.spark import static_join as lookups
from ...system.arguments import checked
from ...witnesses.run_options import Mode
from ..model import Row, Source
from ..queries.rows import rows_of
from .declared import On, both_sides, check_semantics, look_for, named, only_input
from .rule import Rule, Stage, stepping

StaticJoinKind: TypeAlias = Literal["inner", "left", "left_semi", "left_anti"]


@dataclass(frozen=True)
class StaticJoin(Rule):
    """A join of a stream with a table.

    Attributes:
        table: The rows of the table.
        columns: Its columns.
        on: The columns of the stream's key, and those of the table's.
        join: The kind.
        input: The name of the input; None for the only one.
    """

    table: tuple[Row, ...]
    columns: tuple[str, ...]
    on: tuple[tuple[str, ...], tuple[str, ...]]
    join: StaticJoinKind
    input: str | None

    @property
    def distances_us(self) -> Sequence[int]:
        """None: time plays no part."""
        return []

    @property
    def allows_fewer_columns(self) -> bool:
        """Whether a job may select some of the columns of the stream and of the table."""
        return True

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source = only_input(self.name, sources, self.input)
        look_for(self.name, source, self.on[0])
        shared = [one for one, two in zip(*self.on, strict=True) if one == two]
        added = [] if self.join in ("left_semi", "left_anti") else [name for name in self.columns if name not in shared]
        twice = sorted(set(added) & set(source.schema.names))
        if twice:
            raise BadInput(f"{self.name}: both the input and the table have a column {twice[0]!r}: rename the table's")
        what = lookups.StaticJoin(self.join, *self.on, tuple(added), self.table)
        types = pa.Table.from_pylist([dict(row) for row in self.table]).schema if self.table else pa.schema([])
        fields = [types.field(name) if name in types.names else pa.field(name, pa.null()) for name in added]
        output = replace(source, schema=pa.schema([*source.schema, *fields]))
        return [Stage(stepping(lambda: what.batch, source.name), False, frozenset({source.time}), output)]


@checked
def static_join(
    table: Any,
    on: On,
    join: StaticJoinKind = "inner",
    *,
    input: str | None = None,
    semantics: str = "spark",
) -> StaticJoin:
    """Expect the join of a stream with a table that doesn't change: the stream's columns, then the table's others.

    Those that the job doesn't select aren't compared.

    Args:
        table: The rows of the table, as mappings, or a pandas or arrow table.
        on: The columns that are equal: their names, or those of the stream and of the table.
        join: `inner`, `left`, `left_semi` or `left_anti`.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: The table is none, or lacks a column, or Spark refuses the kind of join.
    """
    check_semantics("static_join", semantics)
    rows = rows_of(table, "static_join: the table")
    columns = (
        table.schema.names if isinstance(table, pa.Table) else [*dict.fromkeys(name for row in rows for name in row)]
    )
    sides = both_sides("static_join", on)
    missing = [name for name in sides[1] if name not in columns]
    if missing and rows:
        raise BadInput(f"static_join: the table has no column {missing[0]!r}: use some of {', '.join(columns)}")
    whole = tuple({name: row.get(name) for name in columns} for row in rows)
    return StaticJoin(
        named("static_join", on="+".join(sides[0]), join=join), {}, whole, tuple(columns), sides, join, input
    )
