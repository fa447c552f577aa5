"""The encoding of rows, state and changes: MessagePack of Python lists, converted from and to Spark's types.

MessagePack executes no code when it reads. MessagePack decodes numbers, text and booleans without types, but not dates,
timestamps and decimals. Every decoder therefore gets the types that the operator declares.
"""

from __future__ import annotations

import gc
import hashlib
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate, count
from typing import Any, TypedDict

import msgspec
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from ...reference.core.errors import BadInput
from .columns import KEY_TYPES
from .logic import NotANumber

FORM = 2
"""The format of the packed state, as in `tests/golden/stored_form.txt`; checkpoints of other formats are refused."""
OBJECTS_BETWEEN_COLLECTIONS = 200_000
"""Python's garbage collector runs after this many new objects: a batch creates many objects, but no cycles."""
EVERY_LEVEL = 64
"""The number of levels for structs that become tuples at every level: no type is nested as deeply."""
_PYTHON: dict[type[T.DataType], Any] = {
    T.DateType: date,
    T.TimestampType: datetime,
    T.TimestampNTZType: datetime,
    T.DecimalType: Decimal,
}
"""The types that MessagePack encodes as text."""
_PLAIN = (*(kind for kind in KEY_TYPES if kind not in _PYTHON), T.BinaryType)

_tasks = count()


def _plain(value: Any) -> float:
    if isinstance(value, NotANumber):
        return float(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode


def digest_of(value: Any) -> bytes | None:
    """Return the hash of a value: equal values have equal hashes."""
    return None if value is None else hashlib.blake2b(encode(value), digest_size=16).digest()


def collect_seldom() -> None:
    """Let this Python worker collect garbage rarely; Spark itself collects garbage after each task."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # Exclude the imported modules from garbage collection, in the second task, because the first task imports them.
    if next(_tasks) == 1:
        gc.freeze()


class Anything(T.DataType):
    """The type of any value, encoded as a separate binary, so that histories of many types can share a query."""


def spark_type(kind: T.DataType) -> T.DataType:
    """Return the column type for values of a type; any part may be null, because a join fills in nulls."""
    match kind:
        case Anything():
            return T.BinaryType()
        case T.ArrayType():
            return T.ArrayType(spark_type(kind.elementType))
        case T.MapType():
            return T.MapType(kind.keyType, spark_type(kind.valueType))
        case T.StructType():
            return T.StructType([T.StructField(one.name, spark_type(one.dataType)) for one in kind.fields])
    return kind


def require_supported(parameter: str, kind: T.DataType) -> None:
    """Refuse a type whose values can't be encoded.

    Raises:
        BadInput: The message names the parameter, the type and the remedy.
    """
    match kind:
        case T.ArrayType():
            require_supported(parameter, kind.elementType)
        case T.MapType():
            if not isinstance(kind.keyType, KEY_TYPES):
                raise BadInput(
                    f"{parameter}: {kind.simpleString()} has keys that Python can't look up: make it an array"
                )
            require_supported(parameter, kind.valueType)
        case T.StructType():
            if not kind.fields:
                raise BadInput(f"{parameter}: a struct without fields can't be told from null: add a field")
            for name in kind.names:
                if kind.names.count(name) > 1:
                    raise BadInput(f"{parameter}: two fields of {kind.simpleString()} are named {name!r}: rename one")
            for field in kind.fields:
                require_supported(parameter, field.dataType)
        case _ if not isinstance(kind, (*_PLAIN, *_PYTHON, Anything)):
            raise BadInput(
                f"{parameter}: an operator can't hold values of the type {kind.simpleString()}: cast it to a number, a "
                "string or a timestamp"
            )


def python_type(kind: T.DataType) -> Any:
    """Return the Python type with which MessagePack decodes values of a type; `Any` if decoding needs no type."""
    match kind:
        case T.ArrayType():
            inner = python_type(kind.elementType)
            return Any if inner is Any else list[inner] | None  # type: ignore[valid-type]
        case T.MapType():
            key, inner = python_type(kind.keyType), python_type(kind.valueType)
            has_text_keys = isinstance(kind.keyType, T.StringType)
            return Any if has_text_keys and inner is Any else dict[key, inner] | None  # type: ignore[valid-type]
        case T.StructType():
            members = [python_type(field.dataType) for field in kind.fields]
            if all(member is Any for member in members):
                return Any
            # Either form of a struct may arrive: dicts for a user's structs, tuples for the logic's own.
            named = TypedDict("named", dict(zip(kind.names, members, strict=True)))  # type: ignore[misc]  # noqa: UP013
            return tuple[tuple(members)] | named | None  # type: ignore[misc]
    found = _PYTHON.get(type(kind))
    return Any if found is None else found | None


def decoder(*kinds: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a tuple of values or columns, by Python types."""
    return msgspec.msgpack.Decoder(tuple[kinds])  # type: ignore[valid-type]


def key_decoder(kinds: list[T.DataType]) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a key's bytes, by the types of its columns; without types, of keys of any length."""
    return decoder(*map(python_type, kinds)) if kinds else decoder(Any, ...)


def listed(column: pa.Array, kind: T.DataType, as_tuples: int = 0) -> list[Any]:
    """Convert a column to a list of values; structs become tuples in the outer levels, and dicts below.

    Args:
        column: The column, as Spark passes it in Arrow format.
        kind: Its type.
        as_tuples: The number of levels of structs that become tuples.
    """
    if isinstance(kind, T.StructType):
        members = [
            listed(child, field.dataType, as_tuples - 1)
            for child, field in zip(column.flatten(), kind.fields, strict=True)
        ]
        rows = zip(*members, strict=True)
        made: list[Any] = list(rows) if as_tuples > 0 else [dict(zip(kind.names, row, strict=True)) for row in rows]
        if column.null_count:
            made = [one if here else None for one, here in zip(made, column.is_valid().to_pylist(), strict=True)]
        return made
    if isinstance(kind, Anything):
        return [None if one is None else msgspec.Raw(one) for one in column.to_pylist()]
    wanted = arrow_type(kind)
    if column.type != wanted:
        column = column.cast(wanted)
    values: list[Any] = column.to_pylist()
    return [_with_dicts(one, kind) for one in values] if _has_map(kind) else values


def _with_dicts(value: Any, kind: T.DataType) -> Any:
    """Convert maps to dicts; Arrow before version 20 lists a map as pairs."""
    if value is None:
        return None
    match kind:
        case T.MapType():
            return {key: _with_dicts(member, kind.valueType) for key, member in value}
        case T.ArrayType():
            return [_with_dicts(member, kind.elementType) for member in value]
        case T.StructType():
            return {field.name: _with_dicts(value[field.name], field.dataType) for field in kind.fields}
    return value


def column_of(values: list[Any], kind: T.DataType) -> pa.Array:
    """Convert a list of values to a column; structs are dicts or tuples. The inverse of `listed`."""
    match kind:
        case T.StructType():
            members = []
            for place, field in enumerate(kind.fields):
                name = field.name
                of_field = [None if one is None else one[name] if type(one) is dict else one[place] for one in values]
                members.append(column_of(of_field, field.dataType))
            fields = [pa.field(name, one.type) for name, one in zip(kind.names, members, strict=True)]
            return pa.StructArray.from_arrays(members, fields=fields, mask=_nulls(values))
        case Anything():
            values = [None if one is None else encode(one) for one in values]
        case T.ArrayType(elementType=T.StructType() | T.ArrayType() | T.MapType() as element):
            ends = [0, *accumulate(len(one or ()) for one in values)]
            members = column_of([member for one in values for member in one or ()], element)
            return pa.ListArray.from_arrays(ends, members, mask=_nulls(values))
        case T.MapType():
            values = [None if one is None else list(one.items()) for one in values]
    return pa.array(values, arrow_type(kind))


def _nulls(values: list[Any]) -> pa.Array:
    return pa.array([one is None for one in values], pa.bool_())


def _has_map(kind: T.DataType) -> bool:
    return isinstance(kind, T.MapType) or (isinstance(kind, T.ArrayType) and "map<" in kind.simpleString())


def arrow_type(kind: T.DataType) -> pa.DataType:
    """Return the Arrow type for a Spark type, timestamps in UTC."""
    return to_arrow_type(spark_type(kind), timezone="UTC")
