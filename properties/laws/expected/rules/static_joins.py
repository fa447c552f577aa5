"""The rule of a stream-static join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from .....reference.spark.plans import Lookup
from .....reference.spark.static_join import StaticJoin, StaticJoinKind
from ....system.arguments import checked
from ....witnesses.job.rows import rows_of
from ....witnesses.run_options import Mode
from .declared import (
    On,
    ResultColumns,
    both_sides,
    check_semantics,
    look_for,
    named,
    only_input,
    result_columns,
)
from .rule import Rule, Stream


@checked
def static_join(
    table: Any,
    on: On,
    join: StaticJoinKind = "inner",
    *,
    result: ResultColumns = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of a join of a stream with a static table.

    The output has the stream's columns, then the other columns of the table. Columns that the job doesn't select aren't
    compared, unless `result` names them.

    Args:
        table: The rows of the table, as mappings, or a pandas or arrow table.
        on: The join columns: their names, or the names in the stream and the names in the table.
        join: `inner`, `left`, `left_semi` or `left_anti`.
        result: The columns that the job's result must have, or the rule's column for each, such as `{"customer":
            "user"}`; other columns aren't compared. By default, the columns in the result are compared, and the report
            names the missing columns.
        input: The input's name, if the job has several inputs.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: The table is invalid or lacks a column, or Spark refuses the type of join.
    """
    check_semantics("static_join", semantics)
    rows = rows_of(table, "static_join: the table")
    columns = (
        table.schema.names if isinstance(table, pa.Table) else [*dict.fromkeys(name for row in rows for name in row)]
    )
    sides = both_sides("static_join", on)
    wanted = result_columns("static_join", result)
    missing = [name for name in sides[1] if name not in columns]
    if missing and rows:
        raise BadInput(f"static_join: the table has no column {missing[0]!r}: use some of {', '.join(columns)}")
    whole = tuple({name: row.get(name) for name in columns} for row in rows)
    name = named("static_join", on="+".join(sides[0]), join=join)

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        stream = only_input(name, streams, input)
        look_for(name, stream, sides[0])
        shared = [one for one, two in zip(*sides, strict=True) if one == two]
        added = [] if join in ("left_semi", "left_anti") else [column for column in columns if column not in shared]
        twice = sorted(set(added) & set(stream.schema.names))
        if twice:
            raise BadInput(
                f"{name}: both the input and the table have a column {twice[0]!r}: rename the table's column"
            )
        types = pa.Table.from_pylist([dict(row) for row in whole]).schema
        fields = [types.field(column) if column in types.names else pa.field(column, pa.null()) for column in added]
        schema = pa.schema([*stream.schema, *fields])
        return replace(
            stream, plan=Lookup((stream.plan,), StaticJoin(join, *sides, tuple(added), whole)), schema=schema
        )

    return Rule(name, {}, bind, allows_fewer_columns=result is None, result=wanted)
