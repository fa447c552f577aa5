"""The registration of the foreign-key join: values are JSON text; in a shared query, foreign keys get the history's
number as a prefix, like keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...reference.core.errors import BadInput
from ...reference.core.history import Cut, Delivery, History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.core.records import Change, Key, Record, Value
from ...reference.definitions.joins import ForeignKeyJoin, OneToManyJoin
from ...reference.foreign_key_protocol import Protocol
from ..generators.values import any_kind
from ..registration.bindings import (
    FOREIGN_KEY,
    Binding,
    Columns,
    decode_pair,
    join_build,
    on_spark,
    referring_fields,
)
from ..registration.coverage import Coverage
from ..registration.domain import CHOICES, Domain, field_renamed, table_row
from ..registration.kafka import Kafka
from ..registration.options import OptionSpace
from ..registration.protocol import MessageProtocol
from ..registration.registration import FreeOrder, KeyIndependence, MutantsOf, Registration, StoredTables
from ..registration.repeats import unchanged
from ..registration.shared import Shared, decode_sides, referring_content
from ..registration.sql import Options, Sql, beside, pair_values

if TYPE_CHECKING:
    from ..witnesses.kafka.builder import Builder

ANSWERED = "answered without a right row"
FOREIGN_KEYS = ("r1", "r2", "r")
"""The drawn right keys; one key is a prefix of the others, which detects a prefix scan that ignores the key's
length.
"""


def referring(join: OneToManyJoin, columns: Columns) -> dict[str, Any]:
    """Return the options of a foreign-key join on Spark."""
    return {
        "foreign_key": columns.of(FOREIGN_KEY),
        "join": join.join,
        "null_foreign_key": join.null_foreign_key,
        "protocol": join.protocol,
    }


def answers_all(options: Options) -> bool:
    """Return whether the options make the protocol respond to every change of a left row, as documented."""
    return options.get("join") == "left" or options.get("protocol") == "answer"


def _options(join: ForeignKeyJoin, columns: Columns) -> dict[str, Any]:
    if join.delivery == "manual":
        raise BadInput(
            'the fused foreign-key join delivers immediately: leave out delivery="manual", or use the reference'
        )
    return referring(join, columns)


_build = join_build("foreign_key_join", _options)


def _staged() -> Callable[..., Any]:
    from ..witnesses.spark.staged import play_staged

    return play_staged


def _specified() -> Mapping[str, Any]:
    from .mutants.specified_foreign_key_join import LOGICS

    return LOGICS


def key_named(options: Options) -> Callable[[Record], Key | None]:
    """Return the function that reads the foreign key of a left row."""
    name = options["foreign_key"]
    return lambda record: None if record.input != "left" or record.value is None else record.value.get(name)


def _refused_by_sql(options: Options) -> str | None:
    return (
        "with delivery manual, because SQL runs no schedules of delivery"
        if options.get("delivery") == "manual"
        else None
    )


def _topology(builder: Builder, join: ForeignKeyJoin) -> Any:
    extractor = builder.functions.implementing("java.util.function.Function", builder.text_at(join.foreign_key))
    return builder.joined(join.join, builder.table("left"), builder.table("right"), extractor, builder.joiner())


def _refused_by_kafka(join: ForeignKeyJoin, records: Sequence[Record]) -> Iterator[str]:
    if join.protocol == "answer":
        yield "kafka has no protocol 'answer': it follows KIP-213's instructions, protocol kip"
    if (join.join, join.null_foreign_key) == ("left", "ignore") and any(
        record.input == "left"
        and record.key is not None
        and record.value is not None
        and join.foreign_key_of(record.value) is None
        for record in records
    ):
        yield "kafka has no left join that ignores null foreign keys: use null_foreign_key keep"


def _value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    if side == "right":
        return table_row(definition, side, value, choice, near)
    if choice >= CHOICES - 2:
        return None
    foreign_key = (*FOREIGN_KEYS, *FOREIGN_KEYS, "r1", "r1", None, None)[choice]
    return {definition.foreign_key: foreign_key, "value": value}


def _met(history: History, played: Played) -> Iterator[str]:
    definition: Any = played.definition
    rows: dict[str | None, Any] = {}
    rights: set[str | None] = set()
    emitting = {entry.arrival for entry in played.entries if isinstance(entry.output, Change)}
    arrivals = (line for line in history.lines if not isinstance(line, Cut))
    for arrival, record in enumerate(arrivals):
        if isinstance(record, Delivery) and record.foreign_key not in rights and arrival in emitting:
            yield ANSWERED
        if not isinstance(record, Record) or record.key is None:
            continue
        if record.input == "right":
            referring = [key for key, value in rows.items() if definition.foreign_key_of(value) == record.key]
            if len(referring) > 1:
                yield "fan-out"
            if record.value is None and record.key in rights and referring:
                yield "right row deleted"
            (rights.discard if record.value is None else rights.add)(record.key)
            continue
        old, new = rows.get(record.key), record.value
        before, after = definition.foreign_key_of(old), definition.foreign_key_of(new)
        rows[record.key] = new
        if before is not None and after is not None and before != after:
            yield "foreign key changed"
            if before in rights and after not in rights:
                yield "moved to a missing row"
        if before is not None and new is None:
            yield "left row deleted"
        if new is not None and after is None:
            yield "null foreign key" if before is None else "foreign key became null"
        if after in rights:
            yield "row found"
        elif after is not None and before in (None, after) and arrival in emitting:
            yield ANSWERED


def _goals(join: OneToManyJoin) -> Iterator[str]:
    yield from ("row found", "foreign key changed", "moved to a missing row", "left row deleted", "right row deleted")
    yield from ("foreign key became null", "null foreign key", "fan-out")
    if join.protocol == "answer":
        yield ANSWERED


def left_keys(history: History) -> list[Key]:
    """Return the sorted keys of a history's left rows."""
    return sorted({record.key for record in history.records if record.input == "left" and record.key is not None})


def concerns_left_key(history: History, key: Key) -> Callable[[Record], bool]:
    """Return whether a record can affect a key: left rows of the key can, and all right rows, because the key may refer
    to any.
    """
    return lambda record: record.key == key or record.input == "right"


REGISTRATION = Registration(
    operator_named("foreign_key_join"),
    profiles={
        "inner": {"foreign_key": "artist"},
        "inner, answer": {"foreign_key": "artist", "protocol": "answer"},
        "left": {"foreign_key": "artist", "join": "left"},
        "left, null kept": {"foreign_key": "artist", "join": "left", "null_foreign_key": "keep"},
    },
    # The space leaves out explicit deliveries, because a separate sample draws schedules of delivery.
    space=OptionSpace(
        {
            "foreign_key": ("artist", "country"),
            "join": ("inner", "left"),
            "null_foreign_key": ("ignore", "keep"),
            "protocol": ("kip", "answer"),
        }
    ),
    domain=Domain(
        value=_value,
        kinds=any_kind,
        variety={"left": 2},
        keys=lambda side, keys: FOREIGN_KEYS if side == "right" else keys,
        named=FOREIGN_KEYS,
        renamed=field_renamed("foreign_key"),
    ),
    coverage=Coverage(_met, _goals),
    free_order=lambda join: FreeOrder.INPUTS,
    repeats=unchanged,
    stamped_by_last=True,
    key_independence=KeyIndependence(left_keys, concerns_left_key),
    spark=Binding(
        _build,
        lambda join, records: referring_fields(join),
        decode_pair,
        shared=Shared(
            on_spark("foreign_keys.stages", "foreign_key_stages"),
            referring_content,
            decode_sides,
            hops=lambda: on_spark("foreign_keys.stages", "foreign_key_hops")(1, 1),
        ),
        typed=_build,
    ),
    sql=Sql(beside(__file__, "referring.sql"), key_named=key_named, values=pair_values, refusal=_refused_by_sql),
    kafka=Kafka(_topology, _refused_by_kafka, observed="KafkaForeignKeyJoin"),
    protocol=MessageProtocol(Protocol, answers_all, _staged, _specified),
    tables=StoredTables(lambda join: join.inputs),
    mutants=MutantsOf("foreign_key_join"),
)
