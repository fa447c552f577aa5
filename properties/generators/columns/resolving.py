"""Resolve the declaration of a job's input: read the schema, sample and values, and refuse an invalid declaration."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException

from ....reference.core.errors import BadInput, StreamproofError
from ...system.arguments import short
from ...system.exits import without_exit
from . import debezium
from .forms.envelopes import ENVELOPES
from .forms.nesting import place_of
from .forms.payloads import DEBEZIUM
from .forms.rows import Row, from_microseconds
from .forms.times import UNITS
from .inputs import Input, ResolvedInput
from .model import Source
from .schemas import arrow_schema
from .shapes import RECORDS_TIME, encoded_source
from .values import examples_of, plain_values, unsupported

SAMPLED = 1000
"""The largest number of rows of a sample to draw from, evenly spread; also of given values, and of given keys."""
DELETES_OF = 20
"""The share of deletes is rounded to twentieths."""
RESERVED = "__streamproof_"
"""The prefix of all names that streamproof adds to a job's rows."""


def resolve_all(inputs: Sequence[Input], seed: int = 0) -> list[ResolvedInput]:
    """Resolve a job's inputs: the columns of each input, and the values to draw for its rows.

    Raises:
        BadInput: There is no input, two inputs have the same name, or a column has no values to draw.
    """
    if not inputs:
        raise BadInput(
            'no input: give one for each DataFrame that the job takes, Input("user string, …", time=…, key=…)'
        )
    for given in inputs:
        if not isinstance(given, Input):
            raise BadInput(
                f"an input is a {type(given).__name__}, {given!r}: wrap its schema as Input(schema, time=…, key=…)"
            )
    resolved = [resolve(given, seed) for given in inputs]
    distinct_names("inputs", [given.name for given in resolved])
    return resolved


def distinct_names(what: str, names: Sequence[str]) -> None:
    """Refuse two names that differ only in case, because SQL ignores case.

    Args:
        what: The plural noun for messages, such as `inputs`.
        names: Their names.

    Raises:
        BadInput: Two names are the same.
    """
    for name in names:
        same = [other for other in names if other.casefold() == name.casefold()]
        if len(same) > 1:
            named = " and ".join(map(repr, dict.fromkeys(same)))
            raise BadInput(
                f'two {what} have the name {named} (SQL ignores case): give each a different name, name="orders"'
            )


def resolve(given: Input, seed: int = 0) -> ResolvedInput:
    """Resolve an input: the columns, and the values to draw for the rows.

    Args:
        given: The input.
        seed: The seed for the user's Hypothesis strategies.

    Raises:
        BadInput: The schema or the sample can't be read, a column is missing or has an unsuitable type, a column has no
            values to draw, or a given value doesn't fit its column.
    """
    name = given.name
    if not isinstance(name, str) or not name:
        raise BadInput(f"an input's name is {name!r}: give it a text")
    if given.schema is None and given.sample is None:
        raise BadInput(f'input {name} has neither schema nor sample: give a schema such as "user string, at timestamp"')
    if given.keys is not None and not given.key:
        raise BadInput(f"input {name} has keys but no key: name the key's column, key=…")
    try:
        return _resolved(given, seed)
    except BadInput as error:
        raise BadInput(f"input {name}: {error.message}") from error.__cause__


def _resolved(given: Input, seed: int) -> ResolvedInput:
    table = None if given.sample is None else _sample_table(given.sample)
    schema = table.schema if given.schema is None and table is not None else arrow_schema(given.schema)
    if reserved := [one for one in (given.name, *schema.names) if one.lower().startswith(RESERVED)]:
        raise BadInput(f"{reserved[0]!r} is a name that streamproof reserves: rename it")
    place = None
    if isinstance(given.time, str) and given.time not in schema.names and "." in given.time:
        if table is not None:
            raise BadInput(f"the event time {given.time!r} is within a struct, which a sample's rows don't support")
        place, schema = place_of(given.time, schema)
        given = replace(given, time=place.name)
    time = _time_column(given, schema)
    key = _key_columns(given, schema, time)
    source = encoded_source(given, schema, time, key, place)
    rows = () if table is None else _sample_rows(table, source, from_schema=given.schema is not None)
    pools = _pools(given, source, seed)
    if source.is_change_log:
        pools[debezium.DELETED] = _share_of_deletes(given.deletes)
    for column in schema:
        lacking = unsupported(column.type)
        if lacking is not None and not rows and column.name not in (*pools, time):
            within = "" if lacking == column.type else f", within {column.type}"
            raise BadInput(
                f"no values can be drawn for the column {column.name!r} of the type {lacking}{within}: "
                f"give some values, values={{{column.name!r}: [...]}}"
            )
    shares = given.null_times, given.malformed, given.null_values, given.deletes
    return ResolvedInput(source, _real_keys(given, source, seed), pools, rows, *shares, _identity(given, source))


def _identity(given: Input, source: Source) -> tuple[str, ...]:
    if not isinstance(given.identity, (str, Sequence)):
        raise BadInput(f'identity is {short(given.identity)}: name one or more columns, identity="id"')
    identity = (given.identity,) if isinstance(given.identity, str) else tuple(given.identity)
    for column in identity:
        _column(source.schema, column, "named in identity")
    if identity and source.is_change_log:
        raise BadInput(f"the key {', '.join(source.key)} identifies the rows of a table: leave identity out")
    return identity


def _share_of_deletes(share: float) -> tuple[bool, ...]:
    deleted = max(round(share * DELETES_OF), share > 0)
    return (True,) * deleted + (False,) * (DELETES_OF - deleted)


def _some(values: Sequence[Any], seed: str) -> list[Any]:
    """Return at most `SAMPLED` of the values, because a range may not fit into memory."""
    if len(values) <= SAMPLED:
        return list(values)
    return [values[0], values[-1], *random.Random(seed).sample(values, SAMPLED - 2)]


def _column(schema: pa.Schema, column: Any, what: str) -> str:
    if column not in schema.names:
        raise BadInput(f"there is no column {column!r}, {what}: it has {', '.join(schema.names)}")
    return str(column)


def _time_column(given: Input, schema: pa.Schema) -> str:
    if given.value == DEBEZIUM:
        return debezium.TIME
    timestamps = [column.name for column in schema if pa.types.is_timestamp(column.type)]
    is_free = RECORDS_TIME not in schema.names
    envelope = ENVELOPES.get(given.format or "")
    of_records = None if envelope is None or envelope.time in schema.names else envelope.time
    if given.time is False:
        if not is_free:
            raise BadInput(f"time is False, but there is a column {RECORDS_TIME!r}: rename it, or name the event time")
        return RECORDS_TIME
    if given.time is None:
        if len(timestamps) == 1:
            return str(timestamps[0])
        if of_records is not None and not timestamps:
            return of_records
        if given.value == "text" and is_free and not timestamps:
            return RECORDS_TIME
        there = f"{', '.join(timestamps)} are timestamps" if timestamps else "no column is a timestamp"
        raise BadInput(
            f"which column is the event time? {there}: name it, "
            f'Input(…, time="{[*timestamps, *schema.names][0]}"), and if it is a number or text '
            f"give {UNITS}; without an event time, give time=False"
        )
    if given.time is not None and given.time == of_records:
        return of_records
    return _column(schema, given.time, "named as the event time")


def _key_columns(given: Input, schema: pa.Schema, time: str) -> tuple[str, ...]:
    if not isinstance(given.key, (str, Sequence)):
        raise BadInput(f"key is {given.key!r}: name one or more columns of {', '.join(schema.names)}")
    key = (given.key,) if isinstance(given.key, str) else tuple(given.key)
    for column in key:
        _column(schema, column, "named as the key")
        if column == time:
            raise BadInput(f"{column!r} is both its event time and in its key: name another key")
    if len(set(key)) < len(key):
        raise BadInput(f"key names a column twice, {', '.join(key)}: name each once")
    return key


def _fitted(values: Sequence[Any], column: pa.Field, where: str) -> tuple[Any, ...]:
    """Convert the user's values to the Python values that rows of the column contain."""
    fitted = []
    for value in values:
        if value is None and not column.nullable:
            raise BadInput(f"{where} has null, and the column {column.name!r} isn't nullable: leave null out")
        try:
            (fits,) = plain_values(pa.array([value], column.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            said = str(error).splitlines()[0]
            raise BadInput(
                f"{where} has {value!r}, which isn't of type {column.type}: {said}; give values of that type"
            ) from None
        if not _same(value, fits):
            remedy = "give it a zone" if pa.types.is_timestamp(column.type) else "give values of that type"
            raise BadInput(f"{where} has {value!r}, which becomes {fits!r} as {column.type}: {remedy}")
        fitted.append(fits)
    return tuple(fitted)


def _same(value: Any, fits: Any) -> bool:
    # Accept lists and structs, whose members Arrow has already converted, and NaN, which isn't equal to itself.
    return isinstance(fits, (list, dict)) or value != value or bool(value == fits)


def _pools(given: Input, source: Source, seed: int) -> dict[str, tuple[Any, ...]]:
    if not isinstance(given.values or {}, Mapping):
        raise BadInput(f"values is {given.values!r}: give a mapping from some of {', '.join(source.schema.names)}")
    pools = {}
    for column, values in (given.values or {}).items():
        _column(source.schema, column, "named in values")
        if column == source.time:
            raise BadInput(f"values names the event time {column!r}, whose values streamproof chooses: leave it out")
        where = f"values[{column!r}]"
        if isinstance(values, st.SearchStrategy):
            try:
                with without_exit(f"the strategy of {where}"):
                    drawn = examples_of(values, seed)
            except StreamproofError:
                raise
            except Exception as error:  # the user's strategy may raise any exception
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                raise BadInput(f"{where} can't be drawn from: {said}; change the strategy") from (
                    None if isinstance(error, HypothesisException) else error
                )
        elif isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
            raise BadInput(f"{where} is {values!r}: give a Hypothesis strategy or a list of values")
        else:
            drawn = _some(values, f"{seed} of {column}")
        if not drawn:
            raise BadInput(f"{where} has no values: give one or more")
        if column in source.key and None in drawn:
            raise BadInput(
                f"{where} has null, and {column!r} is in the key: leave it out, or give the keys, keys=[…, None]"
            )
        pools[column] = _fitted(drawn, source.schema.field(column), where)
    return pools


def _real_keys(given: Input, source: Source, seed: int) -> tuple[tuple[Any, ...], ...]:
    if given.keys is None:
        return ()
    if isinstance(given.keys, (str, bytes)) or not isinstance(given.keys, Sequence) or not given.keys:
        raise BadInput(f'keys is {given.keys!r}: give a list of one or more, keys=["a", "b"]')
    keys = []
    for key in _some(given.keys, f"{seed} of the keys"):
        parts = (key,) if len(source.key) == 1 and not isinstance(key, tuple) else key
        if not isinstance(parts, tuple) or len(parts) != len(source.key):
            raise BadInput(f"keys has {key!r}: give a tuple of {', '.join(source.key)}")
        fitted = [
            _fitted([part], source.schema.field(column), "keys")[0]
            for part, column in zip(parts, source.key, strict=True)
        ]
        keys.append(tuple(fitted))
    return tuple(keys)


def _sample_table(sample: Any) -> pa.Table:
    """Return a sample as an Arrow table, with the schema that Spark would infer."""
    zoned = False
    if isinstance(sample, (str, os.PathLike)):
        path = Path(sample)
        try:
            # In CSV files and pandas, Spark reads timestamps without a zone in the session's zone, here UTC.
            zoned = ".csv" in path.suffixes
            table = pyarrow.csv.read_csv(path) if zoned else pyarrow.parquet.read_table(path)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(
                f"the sample {path} can't be read: {str(error).splitlines()[0]}; give the path of a parquet or CSV file"
            ) from None
    elif isinstance(sample, pa.Table):
        table = sample
    elif hasattr(sample, "to_dict") and hasattr(sample, "columns"):
        zoned = True
        try:
            table = pa.Table.from_pandas(sample, preserve_index=False)
        except (pa.ArrowException, TypeError) as error:
            raise BadInput(f"the sample's columns have mixed types: {error}; give each column one type") from None
    else:
        raise BadInput(
            f"the sample is a {type(sample).__name__}: give the path of a parquet or CSV file, a pandas "
            f"DataFrame or an Arrow table"
        )
    if not table.num_rows:
        raise BadInput("the sample has no rows: give a sample with rows, or only a schema")
    schema = arrow_schema(table.schema)
    if zoned:
        for index, column in enumerate(schema):
            if pa.types.is_timestamp(column.type):
                schema = schema.set(index, column.with_type(pa.timestamp("us", "UTC")))
    return _cast(table, schema)


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if missing := [column for column in schema.names if column not in table.schema.names]:
        raise BadInput(
            f"the sample lacks the column {missing[0]!r}: it has {', '.join(table.schema.names)}; "
            f"rename a column, or leave the column out of the schema"
        )
    columns = []
    for column in schema:
        values = table.column(column.name)
        try:
            # Nanoseconds are truncated, because neither Spark nor Python supports them.
            columns.append(values.cast(column.type, safe=not pa.types.is_timestamp(column.type)))
        except pa.ArrowException as error:
            raise BadInput(
                f"the sample's column {column.name!r} is {values.type} and doesn't fit {column.type}: "
                f"{str(error).splitlines()[0]}"
            ) from None
        if not column.nullable and values.null_count:
            raise BadInput(f"the sample has null in {column.name!r}, which isn't nullable: drop such rows")
    return pa.table(columns, schema=schema)


def _sample_rows(table: pa.Table, source: Source, from_schema: bool) -> tuple[Row, ...]:
    if source.encoding is not None:  # the check draws its own event times
        times = pa.array([from_microseconds(0)] * table.num_rows, source.schema.field(source.time).type)
        place = table.schema.get_field_index(source.time)
        table = table.append_column(source.time, times) if place < 0 else table.set_column(place, source.time, times)
        if source.is_change_log:  # the check draws which rows are deletes
            table = table.append_column(debezium.DELETED, pa.array([False] * table.num_rows))
    if from_schema:
        table = _cast(table, source.schema)
    step = -(-table.num_rows // SAMPLED)
    table = table.take(pa.array(range(0, table.num_rows, step)))
    columns = {name: plain_values(table.column(name)) for name in table.schema.names}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    whole = [row for row in rows if None not in source.key_of(row)]
    if not whole:
        raise BadInput(f"each row of the sample has null in the key, {', '.join(source.key)}: name another key")
    return tuple(whole)
