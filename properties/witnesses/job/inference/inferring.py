"""Infers the inputs and the tables of a script's queries from a run without data."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from ....generators.columns.schemas import arrow_schema
from ....generators.columns.values import key_kinds, kinds
from ....system.ipynb import line_in, source_of
from ..plan.likeness import computes_same
from ..scripts.lifting import ScriptSource, of_single_rows
from ..scripts.notebooks import as_python
from ..scripts.writes import Write, started_of
from .exploring import Explored, explored
from .inputs import InferredInput, inferred_input, plain_name
from .tracing import Place, Traced, traced

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_NUMBERS = ("double", "float", "bigint", "int", "smallint", "tinyint")
"""Numeric types, the widest first: a column that a script casts to several types gets the widest."""
ROWS = 8
"""The number of drawn rows of a table."""
MOST_SECONDS = 8
"""The time limit of a script's run (s): a check runs the script some fifty times."""
_AROUND = datetime(2024, 10, 27, tzinfo=UTC)


@dataclass(frozen=True)
class InferredQuery:
    """A query that a script starts, with its inferred inputs.

    Attributes:
        source: The script, with placeholders for its required arguments.
        index: The query's index in the order of starts (None: the only query).
        write: The query's output and sink.
        inputs: The script's inputs, by their names in `reads`.
        own: The names of the inputs that this query reads.
        tables: The drawn rows of the tables that can't be read here, by their names in `reads`.
        told: A sentence for each guess about what the script doesn't state.
        by_row: Whether each row of the query's result derives from a single row of an input.
        twin: The earlier query that writes the same rows of the same inputs, in the same mode (None: no such query).
    """

    source: ScriptSource
    index: int | None
    write: Write
    inputs: Mapping[str, InferredInput]
    own: Sequence[str]
    tables: Mapping[str, pa.Table]
    told: Sequence[str]
    by_row: bool = False
    twin: Write | None = None


def inferred_queries(
    source: ScriptSource, spark: Any, given: Mapping[str, Any], tables: Mapping[str, Any], *, only_some: bool = False
) -> list[InferredQuery]:
    """Infer the inputs of each query that a script starts.

    Args:
        source: The script.
        spark: The session.
        given: The frames of the inputs that the user describes, by name.
        tables: The frames of the script's tables, by name.
        only_some: Whether to accept the queries that start before the script fails.

    Raises:
        BadInput: The script fails, starts no query, takes too long, or uses a column with an unknown source.
    """
    found = explored(source, spark, given, tables)
    if found.unfinished is not None and not only_some:
        raise found.unfinished
    if found.seconds > MOST_SECONDS:  # measure again, because a session's first run also loads Spark's classes
        found = explored(found.source, spark, given, tables)
    if found.seconds > MOST_SECONDS:
        raise BadInput(
            f"{source.where} takes {found.seconds:.0f} s before it waits for its queries, and a check runs the script "
            f"some fifty times: make the script start its queries within {MOST_SECONDS:g} s without data, or give a "
            "function that starts its query, FILE.py:FUNCTION"
        )
    started = started_of(found.writes)
    writes = [(number, write) for number, write in enumerate(started) if write.frame.isStreaming]
    if not writes:
        calls = "give the script that starts it, or a function that returns its DataFrame, FILE.py:FUNCTION"
        if uncalled := functions_with_queries(found.source):
            calls = f"nothing calls {uncalled}: give the script that calls it"
        raise BadInput(
            f"{source.where} starts no query: it ends without a call of start() or toTable() on a writeStream: {calls}"
        )
    plans = [traced(write.frame._jdf.queryExecution().analyzed(), found.folders) for _, write in writes]
    columns = {name: _typed(name, found, found.columns[name], plans) for name in found.reads}
    # A batch read of a stream's own path, such as for its schema, gets the stream's columns and no rows.
    tables = {name: kind for name, kind in found.tables.items() if name not in found.reads}
    found = replace(found, tables=tables)
    drawn = {name: drawn_table(_typed(name, found, kind, plans)) for name, kind in tables.items()}
    told = _told(source, found)
    queries: list[InferredQuery] = []
    for (number, write), plan in zip(writes, plans, strict=True):
        index = None if len(started) == 1 and found.unfinished is None else number
        inputs = {name: inferred_input(name, found.reads[name], columns[name], plan, plans) for name in found.reads}
        by_row = of_single_rows(write.frame)
        query = InferredQuery(found.source, index, write, inputs, plan.sources, drawn, told, by_row)
        queries.append(replace(query, twin=next((one.write for one in queries if _are_twins(one, query)), None)))
    return queries


def _are_twins(one: InferredQuery, other: InferredQuery) -> bool:
    texts = [[each.inputs[name].text for name in each.own if name in each.inputs] for each in (one, other)]
    plans = [each.write.frame._jdf.queryExecution().analyzed() for each in (one, other)]
    modes = [each.write.mode or "append" for each in (one, other)]
    return one.twin is None and modes[0] == modes[1] and texts[0] == texts[1] and computes_same(*plans)


def functions_with_queries(source: ScriptSource) -> str:
    """Return the functions that write a stream and that the script doesn't call, each with its line."""
    if callable(source.code):
        return ""
    tree = ast.parse(as_python(source_of(source.code), lambda *_: None))
    functions = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    called = {
        one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", "")
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
    }
    starting = [
        f"{one.name} (line {line_in(source.file, one.lineno)})"
        for one in functions
        if one.name not in called
        and any(isinstance(node, ast.Attribute) and node.attr == "writeStream" for node in ast.walk(one))
    ]
    return " or ".join(starting)


def _told(source: ScriptSource, found: Explored) -> list[str]:
    told = []
    if found.source.args != source.args:
        told.append(f"its arguments are {' '.join(found.source.args)}: set others with --argument")
    told += [
        f"its widget {name} is {value}: set another in the widget's default"
        for name, value in found.source.widgets.items()
        if name not in source.widgets
    ]
    told += [f"${name} is {value}: set another in the environment" for name, value in found.source.env.items()]
    told += [
        f"the table {name} can't be read here, and has drawn rows of {_columns_in_words(name, kind, found)}: give its "
        f"rows with --static {plain_name(name)}=FILE.csv"
        for name, kind in found.tables.items()
    ]
    return told


def _columns_in_words(name: str, columns: StructType, found: Explored) -> str:
    if name in found.learned and not found.learned[name].kinds:
        return "one column, because the script names none"
    return f"the columns {', '.join(columns.names)}"


def _typed(name: str, found: Explored, columns: StructType, plans: Sequence[Traced]) -> StructType:
    """Return the columns with new types: a column learned as text gets the type to which the plans cast it, if they
    agree.
    """
    from pyspark.sql.types import StructType, _parse_datatype_string

    if name not in found.learned:
        return columns
    if not found.learned[name].kinds:
        return StructType().add("value", "string")
    typed = StructType()
    for column in columns:
        casts = {kind for plan in plans for kind in plan.casts.get(Place(name, column.name), ())} - {"string"}
        if casts and casts <= {*_NUMBERS}:
            casts = {next(kind for kind in _NUMBERS if kind in casts)}
        kind = column.dataType.simpleString()
        kind = casts.pop() if kind == "string" and len(casts) == 1 else kind
        typed = typed.add(column.name, _parse_datatype_string(kind))
    return typed


def drawn_table(columns: StructType) -> pa.Table:
    """Draw the rows of a table; some of its values also occur in stream columns of the same type."""
    values, schema = {}, arrow_schema(columns)
    for column in schema:
        plain = [*key_kinds(column.type, _AROUND)[:2], *kinds(column.type, _AROUND)[:2]]
        distinct = {repr(value): value for value in chain.from_iterable(plain)}
        values[column.name] = [*distinct.values()] or [None]
    rows = [{name: of[number % len(of)] for name, of in values.items()} for number in range(ROWS)]
    return pa.Table.from_pylist(rows, schema)
