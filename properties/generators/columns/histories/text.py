"""A job's history as text in JSON Lines: writing and parsing.

The first line contains the history's name, the columns of its inputs and, for a violated invariant, the query's run
options. Each other line is a row that arrives, a heartbeat (the clock at the end of a batch) or a cut. Timestamps are
ISO 8601, with a zone if their type has a zone. Decimals are text, bytes are base64, durations are microseconds, and
maps are lists of pairs.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

import pyarrow as pa

from .....reference.core.errors import BadInput
from ....system.installed.spark_versions import struct_of_arrow
from ....system.visible import json_line
from ..formatting import duration
from ..forms.payloads import FAULTS, NULL
from ..forms.rows import Row, from_microseconds, microseconds
from ..model import Arrival, JobHistory, Source, Unreadable
from ..values import plain_values


def to_text(history: JobHistory, sources: Sequence[Source]) -> str:
    """Return a history as text, a line for each row, heartbeat and cut."""
    by_name = {source.name: source for source in sources}
    lines: list[dict[str, Any]] = [
        {"job": history.name, "inputs": {source.name: columns_text(source) for source in sources}}
    ]
    if history.variation:
        lines[0]["variation"] = dict(history.variation)
    for number, batch in enumerate(history.batches):
        lines += [{"cut": True}] if number else []
        lines += [{"input": name, "row": _row_text(row, by_name[name])} for name, row in batch]
        for one in history.unreadable_in(number):
            lines.append({"input": one.input, "row": _row_text(one.row, by_name[one.input]), "payload": one.fault})
        if history.clock:
            lines.append({"heartbeat": _time_text(from_microseconds(history.clock[number]))})
    return "".join(json_line(line) + "\n" for line in lines)


def _row_text(row: Row, source: Source) -> dict[str, Any]:
    return {column.name: _encoded(row[column.name], column.type) for column in source.schema}


def pasted(history: JobHistory, sources: Sequence[Source]) -> list[str]:
    """Return the lines of Python code that pass a history as the argument `examples`."""
    # Three quotes would end the Python string; they occur only inside JSON strings, where an escape is valid.
    lines = [line.replace("'''", r"\u0027" * 3) for line in to_text(history, sources).splitlines()]
    return ["examples=[r'''", *lines, "''']"]


def parse(text: str, sources: Sequence[Source], file: str = "history") -> JobHistory:
    """Parse a history from its text.

    Args:
        text: The text.
        sources: The inputs of the job.
        file: The name of the text in messages, such as a file's path.

    Raises:
        BadInput: A line is malformed, or doesn't match the inputs; the message names the line.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise BadInput(f"{file} is empty: its first line names the job, and its inputs with their columns")
    return _Parsing(sources, file).history(lines)


def columns_text(source: Source) -> str:
    """Return the columns of an input as DDL."""
    return ", ".join(
        f"{column.name if column.name.isidentifier() else '`' + column.name.replace('`', '``') + '`'} "
        f"{column.dataType.simpleString()}{'' if column.nullable else ' NOT NULL'}"
        for column in struct_of_arrow(source.schema).fields
    )


class _Parsing:
    def __init__(self, sources: Sequence[Source], file: str) -> None:
        self.sources = {source.name: source for source in sources}
        self.file, self.number = file, 0

    def history(self, lines: Sequence[tuple[int, str]]) -> JobHistory:
        header = self._object(*lines[0])
        name, inputs = header.get("job"), header.get("inputs")
        variation = header.get("variation", {})
        if not isinstance(name, str) or not isinstance(inputs, Mapping) or not isinstance(variation, Mapping):
            self._refuse('the header is missing: begin with {"job": "name", "inputs": {"events": "user string, …"}}')
        if set(inputs) != set(self.sources):
            self._refuse(
                f"the file has the inputs {', '.join(inputs)}, but the job has {', '.join(self.sources)}: "
                "rename the inputs"
            )
        batches: list[list[Arrival]] = [[]]
        unreadable: list[Unreadable] = []
        clock: dict[int, int] = {}
        for number, line in lines[1:]:
            match self._object(number, line):
                case {"cut": True, **others} if not others:
                    batches.append([])
                case {"heartbeat": str(time), **others} if not others:
                    if len(batches) - 1 in clock:
                        self._refuse("a second heartbeat in one batch: leave one of them out")
                    clock[len(batches) - 1] = self._clock(time)
                case {"input": str(name_of), "row": dict(row), **others} if not others:
                    batches[-1].append(self._arrival(name_of, row))
                case {"input": str(name_of), "row": dict(row), "payload": str(fault), **others} if not others:
                    unreadable.append(self._unreadable(len(batches) - 1, self._arrival(name_of, row), fault))
                case _:
                    self._refuse('use {"input": …, "row": {…}}, {"heartbeat": "2024-…"} or {"cut": true}')
        if clock:
            self._check(batches, clock)
        return JobHistory(
            tuple(map(tuple, batches)), tuple(clock.values()), name, variation, unreadable=tuple(unreadable)
        )

    def _unreadable(self, batch: int, arrival: Arrival, fault: str) -> Unreadable:
        if not self.sources[arrival.input].has_payload:
            self._refuse(f"input {arrival.input} has columns, but no payload: leave the line out")
        if fault not in (*FAULTS, NULL):
            self._refuse(f"unknown payload {fault!r}: use {', '.join((*FAULTS, NULL))}")
        return Unreadable(batch, arrival.input, arrival.row, fault)

    def _check(self, batches: Sequence[Sequence[Arrival]], clock: Mapping[int, int]) -> None:
        if len(clock) < len(batches):
            missing = next(number for number in range(len(batches)) if number not in clock)
            raise BadInput(f"{self.file}: batch {missing} has no heartbeat: give each batch a heartbeat, or none")
        if list(clock.values()) != sorted(clock.values()):
            raise BadInput(f"{self.file}: a heartbeat is earlier than the previous batch's: give ascending heartbeats")
        for number, batch in enumerate(batches):
            for name, row in batch:
                if (self.sources[name].time_us_of(row) or 0) > clock[number]:
                    time = row[self.sources[name].time]
                    raise BadInput(
                        f"{self.file}: batch {number} has a row at {time}, after its heartbeat: "
                        "increase the heartbeat, or leave all heartbeats out"
                    )

    def _arrival(self, name: str, row: Row) -> Arrival:
        if name not in self.sources:
            self._refuse(f"there is no input {name!r}: the job has {', '.join(self.sources)}")
        source = self.sources[name]
        names = source.schema.names
        if unknown := [column for column in row if column not in names]:
            self._refuse(f"input {name} has no column {unknown[0]!r}: it has {', '.join(names)}")
        values = {}
        for column in source.schema:
            if column.name not in row:
                self._refuse(
                    f"the row lacks the column {column.name!r} of input {name}: add the column, with null for no value"
                )
            values[column.name] = self._value(row[column.name], column)
        if values[source.time] is None and not source.null_times:
            self._refuse(
                f"the event time {source.time!r} is null: give each row an event time, or let rows have none: "
                "Input(…, null_times=0.05)"
            )
        if values[source.time] is not None and values[source.time] != source.time_of(source.time_us(values)):
            self._refuse(
                f"the event time {source.time!r} is {row[source.time]}, which its type can't contain: "
                f"give a whole number of {duration(source.grain_us)}"
            )
        return Arrival(name, values)

    def _value(self, encoded: Any, column: pa.Field) -> Any:
        if encoded is None and not column.nullable:
            self._refuse(f"the column {column.name!r} is null, but isn't nullable: give it a value")
        try:
            value = _decoded(encoded, column.type)
            (fits,) = plain_values(pa.array([value], column.type))
        except (pa.ArrowException, ValueError, TypeError, ArithmeticError, AttributeError):
            self._refuse(f"{encoded!r} in the column {column.name!r} isn't of type {column.type}: {_form(column.type)}")
        if repr(fits) != repr(value):  # compare texts, because a NaN isn't equal to itself
            self._refuse(f"{encoded!r} in the column {column.name!r} becomes {fits!r} as {column.type}: write that")
        return fits

    def _clock(self, text: str) -> int:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self._refuse(f'the heartbeat {text!r} has no valid time: write it as "2024-01-15T12:00:00Z"')
        if time.tzinfo is None:
            self._refuse(f'the heartbeat {text!r} has no zone: write it as "2024-01-15T12:00:00Z"')
        return microseconds(time)

    def _object(self, number: int, line: str) -> dict[str, Any]:
        self.number = number
        try:
            value = json.loads(line)
        except ValueError as error:
            self._refuse(f"this isn't JSON: {error}")
        except RecursionError:
            self._refuse("nested too deeply to be read: flatten the value")
        if not isinstance(value, dict):
            self._refuse("this isn't a JSON object")
        return value

    def _refuse(self, why: str) -> NoReturn:
        raise BadInput(f"{self.file}, line {self.number}: {why}")


def _form(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return 'write it as "2024-01-15T12:00:00Z"' if kind.tz else 'write it as "2024-01-15T12:00:00", without a zone'
    for is_of, form in (
        (pa.types.is_decimal, 'write it as text, "1.50", with at most the digits of its type'),
        (pa.types.is_date, 'write it as "2024-01-15"'),
        (pa.types.is_binary, "write it as base64"),
        (pa.types.is_duration, "write it as a whole number of microseconds"),
        (pa.types.is_map, "write it as a list of pairs"),
    ):
        if is_of(kind):
            return form
    return "write a value of that type"


def _time_text(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _encoded(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_encoded(member, kind.value_type) for member in value]
    if pa.types.is_map(kind):
        return [[_encoded(key, kind.key_type), _encoded(item, kind.item_type)] for key, item in value.items()]
    if pa.types.is_struct(kind):
        return {field.name: _encoded(value[field.name], field.type) for field in kind}
    return _encoded_atom(value)


def json_row(row: Row) -> dict[str, Any]:
    """Return a row of a job's output as JSON: values as in a history's text, and maps as objects."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    encoded = _encoded_atom(value)
    return encoded if encoded is None or isinstance(encoded, (bool, int, float, str)) else str(encoded)


def _encoded_atom(value: Any) -> Any:
    match value:
        case datetime():
            return _time_text(value)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return b64encode(value).decode("ascii")
        case timedelta():
            return value // timedelta(microseconds=1)
        case float() if not isfinite(value):
            return str(value)
    return value


def _decoded(value: Any, kind: pa.DataType) -> Any:
    """Convert a JSON value to a value of a type; raise for a wrong form. The caller also checks the value's type."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_decoded(member, kind.value_type) for member in _is(list, value)]
    if pa.types.is_map(kind):
        pairs = [(_decoded(key, kind.key_type), _decoded(item, kind.item_type)) for key, item in _is(list, value)]
        if len(dict(pairs)) < len(pairs):
            raise ValueError(value)
        return dict(pairs)
    if pa.types.is_struct(kind):
        if set(_is(dict, value)) != {field.name for field in kind}:
            raise ValueError(value)
        return {field.name: _decoded(value[field.name], field.type) for field in kind}
    return next((decode(value, kind) for is_of, decode in _DECODED if is_of(kind)), value)


def _is(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(value)
    return value


def _timestamp(value: Any, kind: pa.DataType) -> datetime:
    read = datetime.fromisoformat(_is(str, value))
    if (read.tzinfo is None) != (kind.tz is None):
        raise ValueError(value)
    return read.astimezone(UTC) if kind.tz else read


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    read = Decimal(_is(str, value))
    if not read.is_finite():
        raise ValueError(value)
    return read


def _float(value: Any, kind: pa.DataType) -> float:
    if not isinstance(value, str):
        return float(_is((int, float), value))  # type: ignore[arg-type]
    if value not in ("nan", "inf", "-inf"):
        raise ValueError(value)
    return float(value)


_DECODED: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], Any]]] = (
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _float),
    (pa.types.is_integer, lambda value, _: _is(int, value)),
    (pa.types.is_boolean, lambda value, _: _is(bool, value)),
    (pa.types.is_string, lambda value, _: _is(str, value)),
    (pa.types.is_date, lambda value, _: date.fromisoformat(_is(str, value))),
    (pa.types.is_time, lambda value, _: time.fromisoformat(_is(str, value))),
    (pa.types.is_binary, lambda value, _: b64decode(_is(str, value), validate=True)),
    (pa.types.is_duration, lambda value, _: timedelta(microseconds=_is(int, value))),
)
