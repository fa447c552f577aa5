"""Convert the values of stores with fewer types than Spark, such as JSON and SQLite, to the types of a schema.

A timestamp is text in ISO 8601, in UTC without an offset; a date is text. A decimal is text or a number, rounded to its
scale if the store uses floating-point numbers. A truth value may be 0 or 1, and bytes may be base64 text. A value of
another type is refused, because a comparison could blame a correct job.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from ....generators.columns.forms.rows import Row
from ....system.arguments import short

TRUTHS = {"true": True, "false": False, 1: True, 0: False}
DIGITS = Context(prec=76)


def with_types(rows: Sequence[Row], schema: pa.Schema, where: str) -> list[Row]:
    """Return rows with a schema's types in its columns; a missing column is null.

    Args:
        rows: The rows.
        schema: The types.
        where: The store's name in messages.

    Raises:
        BadInput: A value can't be converted to its type.
    """
    typed: list[Row] = []
    for row in rows:
        made = dict(row)
        for field in schema:
            value = row.get(field.name)
            try:
                made[field.name] = of_type(value, field.type)
            except (ArithmeticError, LookupError, TypeError, ValueError):
                raise BadInput(
                    f"{where}: the column {field.name!r} has {short(value)}, which isn't of the schema's type "
                    f"{field.type}: let the job write values of this type, or change or omit the column's type in "
                    "schema="
                ) from None
        typed.append(made)
    return typed


def of_type(value: Any, kind: pa.DataType) -> Any:
    """Convert a value of a store to a type of the schema.

    Raises:
        ArithmeticError, LookupError, TypeError, ValueError: The value can't be converted.
    """
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [of_type(member, kind.value_type) for member in _as(list, value)]
    if pa.types.is_struct(kind):
        fields = _as(dict, value)
        return {field.name: of_type(fields.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        items = _as(dict, value).items()
        return {of_type(key, kind.key_type): of_type(item, kind.item_type) for key, item in items}
    convert = next((convert for is_of, convert in _CONVERSIONS if is_of(kind)), None)
    return value if convert is None else convert(value, kind)


def _as(wanted: type, value: Any) -> Any:
    if not isinstance(value, wanted):
        raise ValueError(value)
    return value


def _timestamp(value: Any, kind: pa.DataType) -> datetime:
    time = value if isinstance(value, datetime) else datetime.fromisoformat(_as(str, value))
    if not kind.tz:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _date(value: Any, kind: pa.DataType) -> date:
    return value if type(value) is date else date.fromisoformat(_as(str, value))


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    if isinstance(value, bool):
        raise ValueError(value)
    number = Decimal(str(value))
    return number.quantize(Decimal(1).scaleb(-kind.scale), context=DIGITS) if isinstance(value, float) else number


def _truth(value: Any, kind: pa.DataType) -> bool:
    if not isinstance(value, str | int):
        raise ValueError(value)
    return TRUTHS[value]


def _integer(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(value)
    return value  # keep a fraction, which the comparison then shows


def _float(value: Any, kind: pa.DataType) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    found: float = pa.scalar(float(value), kind).as_py()
    return found


def _bytes(value: Any, kind: pa.DataType) -> bytes:
    if not isinstance(value, str):
        return bytes(_as(bytes, value))
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError(value) from None


def _text(value: Any, kind: pa.DataType) -> str:
    return str(_as(str, value))


_CONVERSIONS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], Any]]] = (
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _date),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_boolean, _truth),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_binary, _bytes),
    (pa.types.is_string, _text),
)
