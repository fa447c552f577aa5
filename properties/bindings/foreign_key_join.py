"""How the foreign-key join is asked: values travel as JSON text, and a foreign key is a key, so it is prefixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.errors import BadInput
from ...reference.joins import ForeignKeyJoin, OneToManyJoin
from ...reference.records import Key, Record
from ...spark_impl.foreign_key_join import foreign_key_join
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, Field, as_json, on, pair_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOREIGN_KEY = "foreign_key"


def referring_fields(join: OneToManyJoin) -> list[Field]:
    """The value, and the prefixed foreign key of a left row."""

    def foreign_key_of(record: Record, prefixed: Callable[[Key], Key]) -> Key | None:
        foreign_key = join.foreign_key_of(record.value) if record.input == "left" else None
        return None if foreign_key is None else prefixed(foreign_key)

    return [as_json(), Field(FOREIGN_KEY, pa.string(), foreign_key_of)]


def _build(join: ForeignKeyJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    if join.delivery == "manual":
        raise BadInput("the fused foreign-key join delivers at once: leave delivery manual out, or use the reference")
    return foreign_key_join(
        on(frame, "left"),
        on(frame, "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        value=VALUE,
        foreign_key=FOREIGN_KEY,
        order=ORDER,
        join=join.join,
        null_foreign_key=join.null_foreign_key,
        protocol=join.protocol,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


BINDING = Binding(lambda join, records: referring_fields(join), _build, lambda join, value: pair_from_json(value))
