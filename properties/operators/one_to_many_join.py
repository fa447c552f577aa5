"""The registration of the one-to-many join, which resembles the foreign-key join; the two keys of a result are a single
JSON text.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...reference.core.operator import operator_named
from ...reference.core.records import Key, Value
from ...reference.definitions.joins import OneToManyJoin
from ..registration.bindings import (
    FOREIGN_KEY,
    KEY,
    Binding,
    decode_pair,
    join_build,
    on_spark,
    referring_fields,
)
from ..registration.registration import KeyIndependence, MutantsOf
from ..registration.shared import Shared, referring_content
from ..registration.sql import Sql, beside, pair_values
from .foreign_key_join import REGISTRATION as FOREIGN_KEY_JOIN
from .foreign_key_join import concerns_left_key, key_named, left_keys, referring

if TYPE_CHECKING:
    from ..registration.shared import SharedOutput


_build = join_build("one_to_many_join", referring)


def _keys(table: pa.Table) -> list[Key | None]:
    pairs = zip(table.column(FOREIGN_KEY).to_pylist(), table.column(KEY).to_pylist(), strict=True)
    return [_both(foreign_key, key) for foreign_key, key in pairs]


def _both(foreign_key: Key | None, key: Key | None) -> Key | None:
    """Return a result's two keys in the reference's form, without the history's prefix, which both keys share."""
    if key is None or "|" not in key:
        return key
    prefix, own = key.split("|", 1)
    referred = None if foreign_key is None else foreign_key.split("|", 1)[1]
    return f"{prefix}|{json.dumps([referred, own], ensure_ascii=False)}"


def _is_of(join: OneToManyJoin, emitted: Key, key: Key) -> bool:
    return bool(json.loads(emitted)[1] == key)


def _shared_key(join: OneToManyJoin, change: SharedOutput) -> Key | None:
    own = None if change.value is None else change.value[0]
    return None if own is None else json.dumps([change.key[0], own], ensure_ascii=False)


def _decoded(join: OneToManyJoin, change: SharedOutput) -> Value:
    joined = None if change.value is None else change.value[1]
    return None if joined is None else [joined["left"], joined["right"]]


REGISTRATION = replace(
    FOREIGN_KEY_JOIN,
    operator=operator_named("one_to_many_join"),
    key_independence=KeyIndependence(left_keys, concerns_left_key, _is_of),
    spark=Binding(
        _build,
        lambda join, records: referring_fields(join),
        decode_pair,
        _keys,
        shared=Shared(
            on_spark("one_to_many_join", "one_to_many_stages"),
            referring_content,
            _decoded,
            _shared_key,
            hops=lambda: on_spark("one_to_many_join", "one_to_many_hops")(1),
        ),
        typed=_build,
    ),
    sql=Sql(beside(__file__, "referring.sql"), key_named=key_named, values=pair_values),
    kafka=None,
    protocol=None,
    mutants=MutantsOf("one_to_many_join"),
)
