"""The names that mutations exchange or leave out: functions and methods of Spark and Python, and operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from .nodes import ChangeKind

FUNCTIONS = frozenset({"F", "f", "sf", "fn", "func", "functions"})
"""The names under which scripts import `pyspark.sql.functions`."""
OWN_NAME = "functions"
"""The name of `pyspark.sql.functions` in each mutant, unless the module uses the name for another purpose."""
JOINS = {
    "inner": ("leftOuter", "rightOuter", "fullOuter"),
    "left": ("inner", "rightOuter", "fullOuter"),
    "right": ("inner", "leftOuter", "fullOuter"),
    "full": ("inner", "leftOuter", "rightOuter"),
    "outer": ("inner", "leftOuter", "rightOuter"),
    "cross": ("inner",),
    "leftsemi": ("leftAnti",),
    "semi": ("leftAnti",),
    "leftanti": ("leftSemi",),
    "anti": ("leftSemi",),
}
AGGREGATES: Mapping[str, Sequence[str]] = {
    "sum": ("max", "count"),
    "max": ("min",),
    "min": ("max",),
    "avg": ("max",),
    "mean": ("max",),
    "count": ("approx_count_distinct",),
    "count_distinct": ("count",),
    "countDistinct": ("count",),
    "approx_count_distinct": ("count",),
    "first": ("last",),
    "last": ("first",),
    "collect_list": ("collect_set",),
    "collect_set": ("collect_list",),
    "max_by": ("min_by",),
    "min_by": ("max_by",),
}
OTHER_FUNCTIONS = {
    "floor": "ceil",
    "ceil": "floor",
    "round": "floor",
    "bround": "round",
    "greatest": "least",
    "least": "greatest",
    "upper": "lower",
    "lower": "upper",
    "asc": "desc",
    "desc": "asc",
    "date_add": "date_sub",
    "date_sub": "date_add",
    "unix_micros": "unix_millis",
    "unix_millis": "unix_micros",
    "unix_seconds": "unix_millis",
    "timestamp_micros": "timestamp_millis",
    "timestamp_millis": "timestamp_micros",
    "timestamp_seconds": "timestamp_millis",
}
"""Spark functions that are easily confused: the opposite direction, or another unit."""
OF_PYTHON = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
SMALLER_TYPES = {
    "bigint": "int",
    "long": "int",
    "int": "smallint",
    "integer": "smallint",
    "double": "int",
    "float": "int",
    "timestamp": "date",
}
NO_RESULT = frozenset(
    {"awaitTermination", "awaitAnyTermination", "processAllAvailable", "stop", "print", "show", "start", "toTable"}
)
"""Functions and methods that don't affect a script's result, or without which the script starts no query."""
WITH_SQL = frozenset({"where", "filter", "expr", "selectExpr", "sql", "execute", "executemany"})
"""Functions and methods with SQL arguments."""
VALUES_OF = frozenset({"lit", "isin", "eqNullSafe"})
"""Functions and methods with text values as arguments."""
STEPS = frozenset({"where", "filter", "distinct", "fillna", "dropna", "drop", "withWatermark", "option"})
"""Methods of a DataFrame, its reader or its writer that a mutant leaves out, in addition to deduplications."""
DEDUPLICATIONS = frozenset({"dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"})
OTHER_STEPS = {"dropDuplicates": "dropDuplicatesWithinWatermark", "dropDuplicatesWithinWatermark": "dropDuplicates"}
BY_COLUMNS = frozenset({"groupBy", "groupby", "select", "agg", *DEDUPLICATIONS})
BY_KEYS = frozenset({"groupBy", "groupby", *DEDUPLICATIONS})
OTHER_METHODS: Mapping[str, tuple[str, ChangeKind]] = {
    "isNull": ("isNotNull", "null"),
    "isNotNull": ("isNull", "null"),
    "asc": ("desc", "order"),
    "desc": ("asc", "order"),
}
MODES = {"append": "overwrite", "overwrite": "append", "complete": "update", "update": "append"}
"""Writer modes that are easily confused."""
BY_POSITION = frozenset({"collect", "toLocalIterator", "toDF", "union", "unionAll", "insertInto"})
"""Methods that match columns by position instead of name."""
OUT = frozenset({"collect", "toLocalIterator", "toPandas", "write"})
"""Methods and attributes of a batch that collect or write its rows."""
OTHER_OPERATORS: Mapping[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Add,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.Multiply,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
    cst.AddAssign: cst.SubtractAssign,
    cst.SubtractAssign: cst.AddAssign,
    cst.MultiplyAssign: cst.AddAssign,
    cst.BitOrAssign: cst.BitAndAssign,
}
