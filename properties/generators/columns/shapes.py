"""Determine the format of a source's rows from its `Input`, and refuse invalid combinations of options."""

from __future__ import annotations

from typing import Any, get_args

import pyarrow as pa

from ....reference.core.errors import BadInput
from ...system.arguments import short
from . import debezium
from .forms.avro import Avro
from .forms.encoding import Encoding, Format
from .forms.nesting import TimePlace
from .forms.payloads import DEBEZIUM, JSON_ARRAY, refused_columns
from .forms.times import TIMESTAMP, TimeForm, time_form
from .inputs import Input
from .model import Source

RECORDS_TIME = "timestamp"
"""The column of the arrival time of rows without an event time; in Kafka, the record's own timestamp."""
_FORMATS = get_args(Format)
_VALUES = ("json", JSON_ARRAY, "csv", "text", DEBEZIUM)
AVRO: Any = "avro"
_OWN_ENCODER = "give a function from a row (a dict) to bytes, value=encode"


def encoded_source(
    given: Input, schema: pa.Schema, time: str, key: tuple[str, ...], place: TimePlace | None = None
) -> Source:
    """Return a source with the format of the job's input rows.

    Args:
        given: The user's Input.
        schema: The declared columns.
        time: The event-time column; the column of an arrival time isn't in `schema`.
        key: The columns of the key.
        place: The path of the event time within a struct of the job's input; None if the event time is a column.

    Raises:
        BadInput: A share is out of range, the event time can't have this format, or the payload format can't contain
            the columns.
    """
    _check_shares(given)
    if given.value == DEBEZIUM:
        return _change_log(given, schema, key)
    form = _form(given, schema, time)
    logical = schema if time in schema.names else schema.append(pa.field(time, TIMESTAMP, nullable=False))
    if form is not None:
        logical = logical.set(logical.get_field_index(time), logical.field(time).with_type(TIMESTAMP))
    if given.null_times and not logical.field(time).nullable:
        raise BadInput(
            f"null_times is {given.null_times}, and the event time {time!r} isn't nullable: leave null_times out"
        )
    encoding = None
    if given.format is not None:
        payload = _payload_columns(given, schema if place is None else place.columns, time, key)
        encoding = Encoding(payload, time, form, given.format, given.value, given.headers, place)
    elif place is not None:
        encoding = Encoding(place.columns, time, form, place=place)
    elif form is not None or time not in schema.names:
        encoding = Encoding(schema, time, form)
    return Source(given.name, logical, time, key, encoding, given.null_times > 0)


def _change_log(given: Input, schema: pa.Schema, key: tuple[str, ...]) -> Source:
    """Return a source of Debezium's change events: the table's columns, the delete flag, and the time of a change."""
    if not key:
        raise BadInput(f"value={DEBEZIUM!r} needs the table's primary key: name its columns, key=…")
    if taken := [column.name for column in debezium.COLUMNS if column.name in schema.names]:
        raise BadInput(
            f"value={DEBEZIUM!r} adds a column {taken[0]!r}, which the table has too: rename the table's column"
        )
    columns = _payload_columns(given, schema, debezium.TIME, key)
    form = time_form(debezium.TIME, debezium.TIME_KIND, "ms")
    encoding = Encoding(columns, debezium.TIME, form, given.format, given.value, given.headers)
    return Source(given.name, pa.schema([*schema, *debezium.COLUMNS]), debezium.TIME, key, encoding)


def _check_shares(given: Input) -> None:
    for name in ("null_times", "malformed", "null_values", "deletes"):
        share = getattr(given, name)
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
            raise BadInput(f"{name} is {short(share)}: give a share from 0 up to 1, such as 0.05")
    if given.format is not None and given.format not in _FORMATS:
        raise BadInput(f"format is {short(given.format)}: give {', '.join(map(repr, _FORMATS))}, or none")
    for name in ("malformed", "null_values", "headers"):
        if getattr(given, name) and given.format is None:
            raise BadInput(f'{name} is given, but its rows have no payload: give the format too, format="kafka"')
    for name in ("null_values", "headers"):
        if getattr(given, name) and given.format != "kafka":
            what = "lines of text" if given.format == "text" else f"records of {given.format}"
            raise BadInput(f"{name} is given, but {what} have none: leave it out")
    if given.malformed and given.value == "text":
        raise BadInput(f"malformed is {given.malformed}, but with value='text' any text is valid: leave it out")
    if given.format is None and given.value != "json":
        raise BadInput('value is given, but its rows have no payload: give the format too, format="kafka"')
    if given.value == DEBEZIUM:
        if given.format != "kafka":
            raise BadInput(
                f'value={DEBEZIUM!r} needs records of Kafka: leave out format={given.format!r}, or say "kafka"'
            )
        for name, said in (
            ("time", given.time),
            ("time_format", given.time_format),
            ("null_times", given.null_times or None),
        ):
            if said is not None and said != debezium.TIME:
                raise BadInput(
                    f"{name} is given, but the event time of a change event is its {debezium.TIME!r}: leave it out"
                )
    if given.value == AVRO:
        raise BadInput(
            "value is 'avro', but Avro needs the record's schema: from streamproof import avro, and give "
            'value=avro("record.avsc")'
        )
    if not callable(given.value) and given.value not in _VALUES:
        raise BadInput(f"value is {short(given.value)}: give {', '.join(map(repr, _VALUES))}, or {_OWN_ENCODER}")


def _form(given: Input, schema: pa.Schema, time: str) -> TimeForm | None:
    if time in schema.names:
        return time_form(time, schema.field(time).type, given.time_format)
    if given.time_format is not None:
        raise BadInput(
            f"time_format is {given.time_format!r}, and the event time is the records' own timestamp: leave it "
            "out, or name the column of the payload, time=…"
        )
    return None


def _payload_columns(given: Input, schema: pa.Schema, time: str, key: tuple[str, ...]) -> pa.Schema:
    fields = [*schema]
    if given.value == "text":
        fields = [field for field in schema if field.name not in key]
        if time in schema.names:
            raise BadInput(
                f'value="text" can\'t contain the event time {time!r}: use value="json", or the timestamp '
                f'of Kafka records as event time, time="{RECORDS_TIME}"'
            )
    if isinstance(given.value, Avro):
        lacking = [name for name in schema.names if name not in (*key, *given.value.fields)]
        if lacking:
            there = ", ".join(given.value.fields)
            raise BadInput(
                f"the Avro schema has no field {lacking[0]!r}, only {there}: add it, or leave the column out"
            )
    refused = None if callable(given.value) else refused_columns(given.value, {one.name: one.type for one in fields})
    if refused is not None:
        raise BadInput(refused)
    return pa.schema(fields)
