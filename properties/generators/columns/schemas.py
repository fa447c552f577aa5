"""Schemas of a job's inputs: converts a DDL string, a StructType or an Arrow schema to Spark's Arrow schema.

This module parses plain DDL itself, so that a mistake is reported before Spark starts. Spark's own parser, which needs
a session, parses all other DDL.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as T

from ....reference.core.errors import BadInput
from ...system.installed.spark_versions import arrow_type_of, struct_of_arrow

PLAIN_TYPES: dict[str, type[T.DataType]] = {
    "bigint": T.LongType,
    "binary": T.BinaryType,
    "boolean": T.BooleanType,
    "byte": T.ByteType,
    "date": T.DateType,
    "double": T.DoubleType,
    "float": T.FloatType,
    "int": T.IntegerType,
    "integer": T.IntegerType,
    "long": T.LongType,
    "real": T.FloatType,
    "short": T.ShortType,
    "smallint": T.ShortType,
    "string": T.StringType,
    "timestamp": T.TimestampType,
    "timestamp_ltz": T.TimestampType,
    "timestamp_ntz": T.TimestampNTZType,
    "tinyint": T.ByteType,
    "void": T.NullType,
}
"""The types without parameters, by DDL name."""
DECIMALS = ("decimal", "dec", "numeric")
TAGS = {b"variant", b"geometry", b"geography"}
WORD, NUMBER = re.compile(r"[A-Za-z_]\w*"), re.compile(r"\d+")
NAME = re.compile(rf"`(?:[^`]|``)+`|{WORD.pattern}")
TOKEN = re.compile(rf"{NAME.pattern}|{NUMBER.pattern}|\S")


class _NotPlain(Exception):
    """Raised if only Spark's own parser can read a schema."""


def needs_spark(schema: Any) -> bool:
    """Return whether only Spark's own parser, which needs a session, can read a schema."""
    try:
        if isinstance(schema, str):
            _Ddl(schema).columns()
    except _NotPlain:
        return True
    except BadInput:
        pass
    return False


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the Arrow schema of an input.

    Args:
        schema: A DDL string, a StructType, or an Arrow schema.

    Raises:
        BadInput: The schema is of another type or invalid, names a column twice, or has a type that Arrow lacks.
    """
    match schema:
        case str():
            struct: T.DataType = _of_ddl(schema)
        case T.StructType():
            struct = schema
        case pa.Schema():
            struct = _of_arrow(schema)
        case _:
            raise BadInput(
                f"schema is a {type(schema).__name__}: give a DDL string such as "
                f'"user string, at timestamp", a StructType, a pyarrow schema, or sample=… to take it from'
            )
    if not isinstance(struct, T.StructType) or not struct.fields:
        raise BadInput(
            f'the schema {schema!r} has no columns: name them with their types, as in "user string, at timestamp"'
        )
    names = [name.casefold() for name in struct.names]
    if twice := next((name for name in struct.names if names.count(name.casefold()) > 1), None):
        raise BadInput(f"the schema has the column {twice!r} twice (Spark ignores case): rename one")
    return pa.schema([_arrow_field(field) for field in struct.fields])


def _arrow_field(field: T.StructField) -> pa.Field:
    try:
        made = pa.field(field.name, arrow_type_of(field.dataType), field.nullable)
        (back,) = struct_of_arrow(pa.schema([made])).fields
        kept = back.dataType == field.dataType and not _is_unlike_spark(made)
    except (PySparkException, ValueError):  # such as a decimal of 40 digits
        kept = False
    if not kept:  # Arrow lacks the type, for example a variant or a collated text
        raise BadInput(
            f"the column {field.name!r} has the type {field.dataType.simpleString()}, which Arrow can't "
            f"transfer to Spark: give another type, and cast it in the job"
        )
    return made


def _is_unlike_spark(field: pa.Field) -> bool:
    """Return whether a field contains a struct that represents a Spark type that Arrow lacks, or a decimal with a
    negative scale, which Spark refuses.
    """
    if TAGS & set(field.metadata or ()) or (pa.types.is_decimal(field.type) and field.type.scale < 0):
        return True
    return any(_is_unlike_spark(field.type.field(index)) for index in range(field.type.num_fields))


def _of_arrow(schema: pa.Schema) -> T.StructType:
    fields = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        try:
            fields += struct_of_arrow(pa.schema([pa.field(field.name, kind, field.nullable)])).fields
        except PySparkException:
            raise BadInput(
                f"Spark has no type for the Arrow type {field.type} of the column {field.name!r}: "
                f"give the schema as a DDL string"
            ) from None
    return T.StructType(fields)


def _of_ddl(text: str) -> T.DataType:
    try:
        return _Ddl(text).columns()
    except _NotPlain:
        pass
    try:
        return T.DataType.fromDDL(text)
    except PySparkException as error:
        said = str(error).strip().splitlines()[0]
        raise BadInput(
            f"Spark can't read the schema {text!r}: {said}; write each column as a name and a type, separated by commas"
        ) from None


class _Ddl:
    """Parses plain DDL: columns of types without parameters, decimals, arrays, maps and structs."""

    def __init__(self, text: str) -> None:
        self.tokens: deque[str] = deque(TOKEN.findall(text))

    def columns(self) -> T.StructType:
        struct = self._fields()
        if self.tokens:
            raise _NotPlain
        return struct

    def _fields(self, after_name: str = "") -> T.StructType:
        fields: list[T.StructField] = []
        while not fields or self._took(","):
            name = self._next(NAME)
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            if after_name:
                self._require(after_name)
            fields.append(T.StructField(name, self._type(), nullable=not self._took("not", "null")))
        return T.StructType(fields)

    def _type(self) -> T.DataType:
        name = self._next(WORD).lower()
        if name in PLAIN_TYPES:
            return PLAIN_TYPES[name]()
        if name in DECIMALS:
            return self._decimal()
        self._require("<")
        made: T.DataType
        match name:
            case "array":
                made = T.ArrayType(self._type())
            case "map":
                key = self._type()
                self._require(",")
                made = T.MapType(key, self._type())
            case "struct":
                made = self._fields(after_name=":")
            case _:
                raise _NotPlain
        self._require(">")
        return made

    def _decimal(self) -> T.DataType:
        if not self._took("("):
            return T.DecimalType(10, 0)
        precision = int(self._next(NUMBER))
        scale = int(self._next(NUMBER)) if self._took(",") else 0
        self._require(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise _NotPlain
        return T.DecimalType(precision, scale)

    def _next(self, kind: re.Pattern[str]) -> str:
        """Consume the next token, which must be of the given kind."""
        if not self.tokens or not kind.fullmatch(self.tokens[0]):
            raise _NotPlain
        return self.tokens.popleft()

    def _took(self, *tokens: str) -> bool:
        """If the given tokens come next, consume the tokens and return true."""
        if tuple(token.lower() for token in islice(self.tokens, len(tokens))) != tokens:
            return False
        for _ in tokens:
            self.tokens.popleft()
        return True

    def _require(self, token: str) -> None:
        if not self._took(token):
            raise _NotPlain
