"""Payloads in Avro, for `from_avro` and for readers of a schema registry's records."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .....reference.core.errors import BadInput, import_extra

_MAX_ID = 2**31


class Avro:
    """Writes a row as an Avro record; users call `avro` to create the writer."""

    def __init__(self, schema: Any, schema_id: int | None) -> None:
        import fastavro

        try:
            self._schema = fastavro.parse_schema(schema)
        except Exception as error:  # catch all: fastavro's errors have no common base class
            raise BadInput(f"the Avro schema can't be used: {type(error).__name__}: {error}") from None
        if not isinstance(self._schema, dict) or self._schema.get("type") != "record":
            raise BadInput("the Avro schema isn't a record: give a schema with fields")
        self.fields = tuple(str(field["name"]) for field in self._schema["fields"])
        self._header = b"" if schema_id is None else b"\x00" + schema_id.to_bytes(4, "big")
        self.__name__ = "avro"

    def __call__(self, row: Mapping[str, Any]) -> bytes:
        """Write a row; a time without a zone is in UTC, because Avro's types are in UTC."""
        import fastavro

        aware = {
            name: value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value
            for name, value in row.items()
        }
        written = io.BytesIO(self._header)
        written.seek(len(self._header))
        fastavro.schemaless_writer(written, self._schema, aware)
        return written.getvalue()


def avro(schema: str | Path | Mapping[str, Any], schema_id: int | None = None) -> Avro:
    """Return the Avro payload format for an `Input`: `Input(…, format="kafka", value=avro("visit.avsc"))`.

    Args:
        schema: The record's schema, with a field for each column of the `Input` except the record's own timestamp: the
            path of an `.avsc` file, the schema's text, or the parsed schema. Times are `timestamp-millis` or
            `timestamp-micros`.
        schema_id: The schema's number in a registry: each payload then starts with Confluent's 5-byte header, a zero
            and this number. By default there is no header, as for `from_avro`.

    Raises:
        BadInput: The schema can't be read or isn't a record, or the number is outside 0 to 2,147,483,647.
        MissingTool: fastavro isn't installed.
    """
    import_extra("fastavro", "avro", "avro(…)")
    if schema_id is not None and (isinstance(schema_id, bool) or not 0 <= schema_id < _MAX_ID):
        raise BadInput(f"schema_id is {schema_id!r}: give the schema's number in the registry, such as 7")
    return Avro(_content(schema), schema_id)


def _content(schema: str | Path | Mapping[str, Any]) -> Any:
    if isinstance(schema, Mapping):
        return dict(schema)
    where, text = "the Avro schema", str(schema)
    if not text.lstrip().startswith(("{", "[")):
        where = text
        try:
            text = Path(schema).read_text(encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{where}: the Avro schema can't be read ({error.strerror})") from None
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{where}: not JSON: {error}") from None
