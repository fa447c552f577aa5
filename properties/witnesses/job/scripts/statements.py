"""The SQL statements of a script: the tables that they read, and their changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..plan.plans import class_of, members

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CHANGES = re.compile(
    r"\s*(alter|analyze|comment|copy|create(?!\s+(or\s+replace\s+)?(global\s+)?temp)|delete|drop|grant|insert|merge|"
    r"msck|optimize|refresh|repair|restore|truncate|update|use|vacuum)\b",
    re.IGNORECASE,
)
"""Statements that change a catalog or a table."""
SETTING = re.compile(r"\s*set\s+`?(\w+(?:\.\w+)+)`?\s*=\s*(.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL)
"""A statement that changes a setting."""
VIEW = re.compile(r"\s*create\s+(?:or\s+replace\s+)?temp(?:orary)?\s+view\s+(?:if\s+not\s+exists\s+)?`?(\w+)`?", re.I)
"""A statement that creates a temporary view."""
_READ = re.compile(r"\b(?:from|join)\s+([\w`.]+)", re.IGNORECASE)
_LITERAL = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/"
_NAME = r"(?:\w+|`[^`]+`)(?:\s*\.\s*(?:\w+|`[^`]+`))*"
_STREAM = re.compile(
    rf"(?P<literal>{_LITERAL})|(?P<before>\b(?:from|join)\s+)stream\s*"
    rf"(?:\(\s*(?P<within>{_NAME})\s*\)|(?<=\s)(?P<bare>{_NAME})(?!\w|\s*\())",
    re.IGNORECASE | re.DOTALL,
)
"""A table that a statement reads as a stream, as `STREAM t` or `STREAM(t)` after FROM or JOIN."""
_CALL = re.compile(
    rf"(?P<literal>{_LITERAL})|\b(?:from|join)\s+stream\s*\(?\s*(?P<call>\w+)\s*\(", re.IGNORECASE | re.DOTALL
)
_NO_NAMES = (
    *(
        "anti",
        "as",
        "cluster",
        "cross",
        "distribute",
        "except",
        "full",
        "group",
        "having",
        "inner",
        "intersect",
        "join",
    ),
    *("lateral", "left", "limit", "minus", "natural", "on", "order", "pivot", "right", "semi", "sort", "tablesample"),
    *("union", "unpivot", "using", "where", "window"),
)
"""The words that may follow a table with the name `stream`."""


class SqlWatermark(NamedTuple):
    """A WATERMARK clause of SQL.

    Attributes:
        column: The event-time column; empty: the statement names no column, which Spark refuses.
        delay: The delay.
        made: The expression of a new event-time column, which becomes the table's first column; empty: an existing
            column.
        end: The index after the clause's last character.
    """

    column: str
    delay: str
    made: str
    end: int


@dataclass(frozen=True)
class ReadTable:
    """A table that a statement reads.

    Attributes:
        name: The name, including catalog and database if given.
        start: The index of the name's first character.
        end: The index after the name's last character.
        aliased: Whether the statement defines an alias for the table.
        streams: Whether the statement reads the table as a stream.
        watermark: The WATERMARK clause after the table, up to its `end` (None: no clause).
    """

    name: str
    start: int
    end: int
    aliased: bool
    streams: bool
    watermark: SqlWatermark | None = None

    @property
    def last(self) -> str:
        """The name without catalog and database."""
        return self.name.rpartition(".")[2]


def without_streams(statement: str) -> tuple[str, frozenset[int]]:
    """Return a statement without the word `STREAM` before table names, and the positions of these names."""
    starts: set[int] = set()
    parts, length, end = [], 0, 0
    for found in _STREAM.finditer(statement):
        name = found["within"] or found["bare"]
        if name is None or (found["within"] is None and name.casefold() in _NO_NAMES):
            continue
        kept = statement[end : found.start()] + found["before"]
        starts.add(length + len(kept))
        parts += [kept, name]
        length, end = length + len(kept) + len(name), found.end()
    return "".join([*parts, statement[end:]]), frozenset(starts)


def streamed_call(statement: str) -> str | None:
    """Return the function that a statement reads as a stream, as in `STREAM read_files(…)` (None: no function)."""
    calls = (found["call"] for found in _CALL.finditer(statement) if found["literal"] is None)
    return next(calls, None)


def tables_of(query: str) -> list[str]:
    """Return the unquoted names of the tables that a statement for a database reads."""
    return [name.replace("`", "") for name in _READ.findall(query)]


def relations_of(spark: Any, statement: str) -> list[ReadTable]:
    """Return the tables that a statement reads, as Spark parses it; empty if Spark can't parse it.

    Args:
        spark: A session in this process.
        statement: The statement.
    """
    plan = _parsed(spark, statement)
    found = set() if plan is None else {*_relations(plan, False, frozenset())}
    # The parser substitutes variables, so skip a name that isn't at its reported position.
    there = [one for one in found if _is_there(statement, one)]
    return sorted(there, key=lambda one: one.start)


def _parsed(spark: Any, statement: str) -> Any:
    """Return a statement as Spark parses it (None: a syntax error)."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    except (Py4JJavaError, PySparkException):  # no answer for a statement with a syntax error, which its run reports
        return None


def table_made(spark: Any, statement: str) -> tuple[str, StructType] | None:
    """Return the name and columns of the table that a statement creates (None: no table, or no column list).

    Args:
        spark: A session in this process.
        statement: The statement.
    """
    plan = _parsed(spark, statement)
    if plan is None or class_of(plan) != "CreateTable":
        return None
    from pyspark.sql.types import _parse_datatype_json_string

    columns: Any = _parse_datatype_json_string(plan.tableSchema().json())
    return (".".join(map(str, members(plan.name().nameParts()))), columns) if len(columns) else None


def _is_there(statement: str, table: ReadTable) -> bool:
    text, name = _bare(statement[table.start : table.end]), _bare(table.name)
    return text == name if table.watermark is None else text.startswith(name)


def _bare(name: str) -> str:
    return re.sub(r"[\s`]", "", name).casefold()


_CLAUSE = "UnresolvedEventTimeWatermark"
"""Spark's class for a WATERMARK clause."""


def _relations(
    node: Any, aliased: bool, known: frozenset[str], watermark: SqlWatermark | None = None
) -> Iterator[ReadTable]:
    """Yield the tables below a node, apart from the names that WITH defines.

    Args:
        node: The node.
        aliased: Whether the parent node defines an alias for the table.
        known: The names that WITH defines.
        watermark: The watermark of the table at the node.
    """
    kind = class_of(node)
    if kind == "UnresolvedRelation":
        origin = node.origin()
        start, stop = origin.startIndex(), origin.stopIndex()
        name = ".".join(map(str, members(node.multipartIdentifier())))
        if start.isDefined() and name.casefold() not in known:
            end = stop.get() + 1 if watermark is None else watermark.end
            yield ReadTable(name, start.get(), end, aliased, bool(node.isStreaming()), watermark)
    if kind == "UnresolvedWith":
        for one in members(node.cteRelations()):
            yield from _relations(one._2(), False, known)
            known |= {str(one._1()).casefold()}
        below = [node.children()]
    else:
        below = [node.children(), node.innerChildren()]  # for subqueries
    if kind == _CLAUSE:
        watermark = _watermark(node)
    elif kind not in ("SubqueryAlias", "NamedStreamingRelation"):
        watermark = None
    for children in below:
        for child in members(children):
            is_named = kind == "SubqueryAlias" or (aliased and kind in ("NamedStreamingRelation", _CLAUSE))
            yield from _relations(child, is_named, known, watermark)


def _watermark(node: Any) -> SqlWatermark | None:
    """Return the watermark of a node of Spark's parser (None: the end of the clause is unknown)."""
    time, stop = node.eventTimeColExpr(), node.origin().stopIndex()
    if not stop.isDefined():
        return None
    delay, end = str(node.delay().toString()), stop.get() + 1
    if class_of(time) == "UnresolvedAttribute":
        return SqlWatermark(str([*members(time.nameParts())][-1]), delay, "", end)
    return SqlWatermark(str(time.name()) if class_of(time) == "Alias" else "", delay, str(time.child().sql()), end)


def renamed(statement: str, relations: list[tuple[ReadTable, str]]) -> str:
    """Return the statement with other table names, in which qualified column names still resolve.

    Args:
        statement: The statement.
        relations: The tables to replace, in order, each with the name of its replacement.
    """
    parts, end = [], 0
    for relation, other in relations:
        is_named = relation.aliased or other == relation.last
        named = f"`{other}`" if is_named else f"`{other}` AS `{relation.last}`"
        parts += [statement[end : relation.start], named]
        end = relation.end
    made = "".join([*parts, statement[end:]])
    for name in {relation.name for relation, _ in relations if "." in relation.name}:
        made = _outside_literals(made, _qualifier(name), f"`{name.rpartition('.')[2]}`.")
    return made


def _qualifier(name: str) -> str:
    parts = r"\s*\.\s*".join(f"`?{re.escape(part)}`?" for part in name.split("."))
    return rf"(?<![\w`.]){parts}\s*\.(?=\s*[\w`*])"


def _outside_literals(text: str, pattern: str, by: str) -> str:
    replaced: Callable[[re.Match[str]], str] = lambda found: found[0] if found["literal"] else by  # noqa: E731
    return re.sub(f"(?P<literal>{_LITERAL})|{pattern}", replaced, text, flags=re.IGNORECASE | re.DOTALL)


_PARTS = rf"(?P<literal>{_LITERAL})|(?P<end>;)"
_CREATE = re.compile(
    rf"create\s+(?:or\s+(?:refresh|replace)\s+)?(?:private\s+)?"
    rf"(?P<kind>streaming(?:\s+live)?\s+table|materialized\s+view|live\s+table|temp(?:orary)?\s+(?:streaming\s+|live\s+)*view)"
    rf"\s+(?:if\s+not\s+exists\s+)?(?P<name>{_NAME})",
    re.IGNORECASE,
)
_FLOW = re.compile(
    rf"create\s+flow\s+(?P<name>{_NAME})\s.*?\bas\s+insert\s+into\s+(?:once\s+)?(?P<target>{_NAME})\s+(?:by\s+name\s+)?",
    re.IGNORECASE | re.DOTALL,
)
_QUERY = re.compile(rf"(?P<literal>{_LITERAL})|\bas\s+(?=\(|(?:select|with|from|table|values)\b)", re.I | re.DOTALL)
_KINDS = {"streaming": "StreamingTable", "materialized": "MaterializedView", "live": "MaterializedView"}


@dataclass(frozen=True)
class Declaration:
    """A statement of a pipeline: it declares a dataset, its rows, or a setting.

    Attributes:
        text: The statement.
        line: The line of the file at which the statement starts.
        kind: The dataset's kind, by the name of PySpark's class (None: the statement declares no dataset).
        name: The name of the flow.
        target: The name of the dataset.
        query: The query that defines the dataset's rows (None: no query).
        setting: The name and value of a setting (None: no setting).
    """

    text: str
    line: int
    kind: str | None = None
    name: str = ""
    target: str = ""
    query: str | None = None
    setting: tuple[str, str] | None = None


def declarations_of(text: str) -> Iterator[Declaration]:
    """Yield the statements of an SQL file, as declarations of a pipeline."""
    for line, statement in _statements(text):
        if (setting := SETTING.fullmatch(statement)) is not None:
            yield Declaration(statement, line, setting=(setting[1], setting[2]))
        elif (flow := _FLOW.match(statement)) is not None:
            yield Declaration(
                statement, line, None, _plain(flow["name"]), _plain(flow["target"]), statement[flow.end() :]
            )
        elif (made := _CREATE.match(statement)) is not None:
            kind = _KINDS.get(made["kind"].split()[0].casefold(), "TemporaryView")
            rest = statement[made.end() :]
            starts = (found.end() for found in _QUERY.finditer(rest) if found["literal"] is None)
            start = next(starts, None)
            name = _plain(made["name"])
            yield Declaration(statement, line, kind, name, name, None if start is None else rest[start:])
        else:
            yield Declaration(statement, line)


def _plain(name: str) -> str:
    return re.sub(r"[\s`]", "", name)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements of a text, without the comments before them, each with its first line."""
    start, ends = 0, [found.start() for found in re.finditer(_PARTS, text, re.DOTALL) if found["end"]]
    for end in [*ends, len(text)]:
        statement = re.sub(r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", "", text[start:end], flags=re.DOTALL)
        if statement.strip():
            yield 1 + text.count("\n", 0, end - len(statement)), statement.rstrip()
        start = end + 1
