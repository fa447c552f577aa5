"""How the one-to-many join is asked: as the foreign-key join; the result's two keys come back as one JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...reference.joins import OneToManyJoin
from ...reference.records import Key
from ...spark_impl.one_to_many_join import one_to_many_join
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, on, pair_from_json
from .foreign_key_join import FOREIGN_KEY, referring_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(join: OneToManyJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return one_to_many_join(
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


def _keys(table: pa.Table) -> list[Key | None]:
    pairs = zip(table.column(FOREIGN_KEY).to_pylist(), table.column(KEY).to_pylist(), strict=True)
    return [_both(foreign_key, key) for foreign_key, key in pairs]


def _both(foreign_key: Key | None, key: Key | None) -> Key | None:
    """Both keys without their prefix, as the reference writes them, under the prefix that they share."""
    if key is None or "|" not in key:
        return key
    prefix, own = key.split("|", 1)
    referred = None if foreign_key is None else foreign_key.split("|", 1)[1]
    return f"{prefix}|{json.dumps([referred, own], ensure_ascii=False)}"


BINDING = Binding(
    lambda join, records: referring_fields(join), _build, lambda join, value: pair_from_json(value), _keys
)
