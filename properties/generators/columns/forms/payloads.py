"""Payloads of records: a row as JSON, as CSV, as the text of a single column, or from a user's function.

Values have the default format of Spark's `from_json` and `from_csv`. A payload with a fault, such as a truncation,
can't be parsed as a row.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .....reference.core.errors import BadInput, StreamproofError
from ....system.exits import without_exit
from .rows import Row
from .times import iso_text

PayloadForm: TypeAlias = (
    Literal["json", "json_array", "csv", "text", "debezium"] | Callable[[dict[str, Any]], bytes | None]
)
"""The format of a record's payload: a name, or a user's function from a row to bytes."""

DEBEZIUM = "debezium"
JSON_ARRAY = "json_array"
"""The payload format of an array with the row as its only element."""
NULL, EMPTY, TRUNCATED, NOISE = "null", "empty", "truncated", "no text of the format"
NO_TIME, WRONG_TIME = "without its event time", "an event time of another type"
FAULTS: Sequence[str] = (TRUNCATED, EMPTY, NOISE, NO_TIME, WRONG_TIME)
"""The faults of malformed payloads; a null payload isn't among these faults."""
_NOISE = b"\x00{no row"
_NEVER = "never"


def faults_of(value: PayloadForm, has_time: bool) -> Sequence[str]:
    """Return the faults that always make a payload of a format unreadable.

    Spark may parse a truncated CSV line, a CSV line without a field, or a truncated payload of a user's function as a
    row.

    Args:
        value: The format.
        has_time: Whether the payload contains the event time.
    """
    if value in ("json", DEBEZIUM):
        return FAULTS if has_time and value == "json" else (TRUNCATED, EMPTY, NOISE)
    return (EMPTY, NOISE, WRONG_TIME) if has_time and value == "csv" else (EMPTY, NOISE)


def payload(
    value: PayloadForm, row: Row, schema: pa.Schema, where: str, fault: str = "", time: str = ""
) -> bytes | None:
    """Return the payload of a row.

    Args:
        value: The payload's format.
        row: The row, with the columns' values.
        schema: The columns of the payload, in order.
        where: The input's name in messages.
        fault: The fault of a malformed payload; empty for none.
        time: The event-time column, which two of the faults affect.

    Raises:
        BadInput: The user's function raises, or returns a value other than bytes or None.
    """
    if fault in (NULL, EMPTY, NOISE):
        return {NULL: None, EMPTY: b"", NOISE: _NOISE}[fault]
    if callable(value):
        made = _made_by(value, dict(row), where)
    else:
        # In a Debezium envelope, the fault is in the row.
        write = {"csv": _csv_of_row, "text": _text_of_row, JSON_ARRAY: _array_of_row}.get(value, json_of_row)
        columns = [field for field in schema if not (fault == NO_TIME and field.name == time)]
        if fault == WRONG_TIME:
            columns = [field.with_type(pa.string()) if field.name == time else field for field in columns]
            row = {**row, time: _NEVER}
        text = write(row, columns)
        made = None if text is None else text.encode()
    return made[: len(made) // 2] if fault == TRUNCATED and made is not None else made


def _made_by(value: Callable[[dict[str, Any]], Any], row: dict[str, Any], where: str) -> bytes | None:
    name = getattr(value, "__name__", type(value).__name__)
    with without_exit(f"the function {name} of {where}"):
        try:
            made = value(row)
        except StreamproofError:
            raise
        except Exception as error:  # the user's function may raise any exception
            raise BadInput(f"{where}: its value {name} raised {type(error).__name__}: {error}, for {row}") from error
    if made is not None and not isinstance(made, (bytes, bytearray)):
        raise BadInput(f"{where}: its value {name} returned {type(made).__name__} for {row}: return bytes, or None")
    return None if made is None else bytes(made)


def key_text(row: Row, key: Sequence[str], schema: pa.Schema, as_object: bool = False) -> bytes | None:
    """Return a record's key: the text of the key column, or an object of several columns; None without a key."""
    if not key:
        return None
    if len(key) > 1 or as_object:
        return json_of_row(row, [schema.field(column) for column in key]).encode()
    value, kind = row[key[0]], schema.field(key[0]).type
    if value is None or isinstance(value, bytes):
        return value
    return (_json if pa.types.is_nested(kind) else _plain)(value, kind).encode()


def json_of_row(row: Row, columns: Sequence[pa.Field]) -> str:
    """Write the columns of a row as a JSON object."""
    return "{" + ",".join(f"{json_text(field.name)}:{_json(row[field.name], field.type)}" for field in columns) + "}"


def _array_of_row(row: Row, columns: Sequence[pa.Field]) -> str:
    return f"[{json_of_row(row, columns)}]"


def json_text(value: str) -> str:
    """Write a text as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _json(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "null"
    if pa.types.is_struct(kind):
        return json_of_row(value, list(kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "[" + ",".join(_json(member, kind.value_type) for member in value) + "]"
    if pa.types.is_map(kind):
        items = ((_plain(name, kind.key_type), _json(item, kind.item_type)) for name, item in value.items())
        return "{" + ",".join(f"{json_text(name)}:{item}" for name, item in items) + "}"
    if isinstance(value, (bool, int, float, Decimal)):
        return _plain(value, kind) if not isinstance(value, float) or isfinite(value) else json.dumps(value)
    return json_text(_plain(value, kind))


def _plain(value: Any, kind: pa.DataType) -> str:
    """Return an unnested value as text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return iso_text(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode("ascii")
        case timedelta():
            return _interval(value)
    return repr(value)


def _interval(value: timedelta) -> str:
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    days, rest = divmod(seconds, 86_400)
    sign = "-" if value < timedelta(0) else ""
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.{micros:06d}"
    return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"


def _csv_of_row(row: Row, columns: Sequence[pa.Field]) -> str:
    return ",".join(_csv(row[field.name], field.type) for field in columns)


def _csv(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return ""
    text = _plain(value, kind)
    if not isinstance(value, str):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text_of_row(row: Row, columns: Sequence[pa.Field]) -> str | None:
    value: str | None = row[columns[0].name]
    return value


def refused_columns(value: PayloadForm, columns: Mapping[str, pa.DataType]) -> str | None:
    """Return the reason why payloads in a format can't contain columns of certain types; None if the payloads can."""
    if value == "csv":
        for name, kind in columns.items():
            if pa.types.is_nested(kind) or pa.types.is_binary(kind):
                return f"CSV can't contain the column {name!r} of the type {kind}: leave it out, or use value='json'"
    if value == "text" and [*map(str, columns.values())] != ["string"]:
        named = ", ".join(columns) or "none"
        return (
            f'value="text" needs exactly one text column besides the key, but the input has {named}: use value="json", '
            "or a function from a row to bytes"
        )
    if value in ("json", JSON_ARRAY, DEBEZIUM):
        for name, kind in columns.items():
            if pa.types.is_null(kind):
                return f"the column {name!r} has no type: give it one"
    return None
