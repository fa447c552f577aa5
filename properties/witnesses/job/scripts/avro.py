"""Replaces Avro's functions in a Spark without Avro's package: the check's records are JSON instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.avro import functions as avro_functions
from pyspark.sql.types import StructType, _parse_datatype_json_string

if TYPE_CHECKING:
    from pyspark.sql import Column

    from .lifting import Lift

_CLASS = "org.apache.spark.sql.avro.AvroDataToCatalyst"
_BEHIND_HEADER = re.compile(r"substr(?:ing)?\(\s*(`?[\w.]+`?)\s*,\s*6\s*(?:,.*)?\)", re.IGNORECASE)
"""The part of a record after the header with the schema's id in a registry."""


def avro_as_json(lift: Lift) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the module of Avro's functions with functions for JSON, if Spark lacks Avro's package."""
    jvm: Any = getattr(lift.spark, "_jvm", None)  # Spark Connect has no attribute `_jvm`
    if not jvm or jvm.org.apache.spark.util.Utils.classIsLoadable(_CLASS):
        return
    own = avro_functions.from_avro

    def from_avro(data: Any, jsonFormatSchema: str, options: Mapping[str, str] | None = None) -> Column:
        schema = (options or {}).get("avroSchema") or jsonFormatSchema
        parsed = getattr(jvm.org.apache.avro, "Schema$Parser")().parse(schema)
        converted = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(parsed)
        kind = _parse_datatype_json_string(converted.dataType().json())
        if not isinstance(kind, StructType):  # the check draws only structs as Avro payloads
            return own(data, jsonFormatSchema, dict(options or {}))
        lift.note("from_avro(…) reads JSON, for Spark has no Avro here")
        given: Any = F.col(data) if isinstance(data, str) else data
        behind = _BEHIND_HEADER.fullmatch(given._jc.toString())
        return F.from_json((F.col(behind[1]) if behind is not None else given).cast("string"), kind)

    def to_avro(data: Any, jsonFormatSchema: str = "") -> Column:
        lift.note("to_avro(…) writes JSON, because Spark has no Avro here")
        return F.to_json(F.struct(data)).cast("binary")

    yield avro_functions, {"from_avro": from_avro, "to_avro": to_avro}
