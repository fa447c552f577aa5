"""The columns of a source without a schema, learned from Spark's errors about missing columns."""

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
"""A column in the text of an expression; a function name has a bracket after it."""
_TYPES = ("TIMESTAMP", "DATE", "BOOLEAN", "DOUBLE", "BIGINT", "INT", "ARRAY", "BINARY", "STRING")


@dataclass(frozen=True)
class Lacking:
    """A column that a script uses, and that is missing or has another type.

    Attributes:
        name: The column's name.
        kind: The required type, in Spark's words; empty: the column is missing.
        beside: The available columns, as Spark lists them.
    """

    name: str
    kind: str = ""
    beside: frozenset[str] = frozenset()


@dataclass
class KnownColumns:
    """The known columns of a source.

    Attributes:
        unknown: The placeholder column of a source without known columns.
        kinds: The type of each column, as DDL.
    """

    unknown: str = "streamproof_unknown"
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> StructType:
        """The columns as a schema, which is never empty."""
        from pyspark.sql.types import StructType, _parse_datatype_string

        schema = StructType()
        for name, kind in (self.kinds or {self.unknown: "string"}).items():
            schema = schema.add(name, _parse_datatype_string(kind))
        return schema

    def can_take(self, missing: Lacking) -> bool:
        """Return whether the source may have a further column, or another type of a column."""
        return (missing.name in self.kinds) == bool(missing.kind) and self.kinds.get(missing.name) != missing.kind

    def has_of(self, names: frozenset[str]) -> bool:
        """Return whether the source has only columns of this list."""
        return names >= {*self.schema.names}

    def take(self, missing: Lacking) -> None:
        """Add a column, or change the type of a known column; a column is text until an error shows another type."""
        self.kinds[missing.name] = missing.kind or "string"


def lacking(error: BaseException | None) -> Lacking | None:
    """Return the column that Spark's error reports as missing or of another type (None: another error)."""
    while error is not None:
        condition = str(getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: ""))() or "")
        said: dict[str, str] = dict(getattr(error, "getMessageParameters", dict)() or {})
        if NO_COLUMN.search(condition):
            name = said.get("objectName") or said.get("attr_name") or said.get("fieldName") or said.get("colName")
            beside = {*re.findall(r"`([^`]*)`", said.get("suggestion", ""))}
            beside |= {*filter(None, said.get("fieldNames", "").split(", "))}  # the columns of the union's other frame
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
    """Return the only column of a call whose arguments must have one type (None: several columns, or only texts)."""
    columns = {name.strip("`") for name in _COLUMN.findall(expression)}
    kind = next((one for one in _TYPES if one in types and one not in ("ARRAY", "STRING")), None)
    return Lacking(columns.pop(), kind.lower()) if kind is not None and len(columns) == 1 else None


def _bare(name: Any) -> str:
    parts: list[str] = re.findall(r"`([^`]*)`|([^`.\"]+)", str(name).strip('"'))[-1]
    return next(part for part in parts if part)
