"""The columns of a source without a schema, learned from how a script uses them: by what Spark says is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NO_COLUMN = re.compile(r"UNRESOLVED_(COLUMN|USING_COLUMN)|ATTRIBUTE_NOT_SUPPORTED|UNRESOLVED_MAP_KEY|FIELD_NOT_FOUND")
NO_TIMESTAMP = "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE"
_MISMATCH = "DATATYPE_MISMATCH"
_COLUMN = re.compile(r"(?<![\w.`'])(?:[A-Za-z_]\w*|`[^`]+`)(?![\w(`'])")
"""A column in the text of an expression, where a function has a bracket behind its name."""
_TYPES = ("TIMESTAMP", "DATE", "BOOLEAN", "DOUBLE", "BIGINT", "INT", "ARRAY", "BINARY", "STRING")


@dataclass(frozen=True)
class Lacking:
    """A column that a script uses, and that isn't there, or has another type.

    Attributes:
        name: The column.
        kind: The type that it must have, in Spark's words; empty: the column isn't there.
        beside: The columns among which it isn't, as Spark says them.
    """

    name: str
    kind: str = ""
    beside: frozenset[str] = frozenset()


@dataclass
class KnownColumns:
    """The columns of a source that are known so far.

    Attributes:
        unknown: The name of a column that stands for those of a source of which none is known.
        kinds: By column its type, as DDL.
    """

    unknown: str = "streamproof_unknown"
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> StructType:
        """The columns as a schema; a source always has one."""
        from pyspark.sql.types import StructType, _parse_datatype_string

        schema = StructType()
        for name, kind in (self.kinds or {self.unknown: "string"}).items():
            schema = schema.add(name, _parse_datatype_string(kind))
        return schema

    def can_take(self, missing: Lacking) -> bool:
        """Whether the source may have a column that it isn't known to have, or a column with another type."""
        return (missing.name in self.kinds) == bool(missing.kind) and self.kinds.get(missing.name) != missing.kind

    def has_of(self, names: frozenset[str]) -> bool:
        """Whether all of its columns are among these."""
        return names >= {*self.schema.names}

    def take(self, missing: Lacking) -> None:
        """Add a column, as text until its use says more, or change its type."""
        self.kinds[missing.name] = missing.kind or "string"


def lacking(error: BaseException | None) -> Lacking | None:
    """Return the column that an error of Spark's says is missing, or of another type; None: it says no such thing."""
    while error is not None:
        condition = str(getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: ""))() or "")
        said: dict[str, str] = dict(getattr(error, "getMessageParameters", dict)() or {})
        if NO_COLUMN.search(condition):
            name = said.get("objectName") or said.get("attr_name") or said.get("fieldName") or said.get("colName")
            beside = {*re.findall(r"`([^`]*)`", said.get("suggestion", ""))}
            return None if name is None else Lacking(_bare(name), beside=frozenset(beside))
        if condition == NO_TIMESTAMP:
            return Lacking(_bare(said["eventName"]), "timestamp")
        if condition == f"{_MISMATCH}.DATA_DIFF_TYPES":
            return _of_another_type(said.get("sqlExpr", ""), said.get("dataType", ""))
        if condition.startswith(_MISMATCH) and (name := said.get("inputSql")):
            wanted = said.get("requiredType", "").replace('"', "")
            kind = next((one for one in _TYPES if one in wanted), None)
            return None if kind in (None, "ARRAY") else Lacking(_bare(name), str(kind).lower())
        error = error.__cause__
    return None


def _of_another_type(expression: str, types: str) -> Lacking | None:
    """Return the only column of a call whose arguments must have one type; None: it has several, or all are texts."""
    columns = {name.strip("`") for name in _COLUMN.findall(expression)}
    kind = next((one for one in _TYPES if one in types and one not in ("ARRAY", "STRING")), None)
    return Lacking(columns.pop(), kind.lower()) if kind is not None and len(columns) == 1 else None


def _bare(name: Any) -> str:
    parts: list[str] = re.findall(r"`([^`]*)`|([^`.\"]+)", str(name).strip('"'))[-1]
    return next(part for part in parts if part)
