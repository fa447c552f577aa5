"""Creates each input of a script from its queries' plans, with the Python code that a user would write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from ....generators.columns.debezium import COLUMNS as OF_DEBEZIUM
from ....generators.columns.forms.avro import avro
from ....generators.columns.forms.envelopes import ENVELOPES
from ....generators.columns.forms.payloads import JSON_ARRAY
from ....generators.columns.forms.times import TimeForm, time_form
from ....generators.columns.inputs import Input
from ..scripts.lifting import FORMS
from ..scripts.reads import Read
from .tracing import SQL_TYPES, Payload, Place, Split, Traced, TracedTime

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

LINE = "line"
"""The column of a plain-text payload."""
_NO_KEYS = (LINE, "_corrupt_record", "_rescued_data")
_TIMESTAMPS = ("timestamp", "timestamp_ntz")
_NUMBERS = ("int", "bigint", "double", "float")
_IMAGES = ("after", "before")
_READABLE = ("json", JSON_ARRAY, "csv")
"""Payload forms whose values Spark reads by column."""
TEXTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("1", "2", "0", "-3")),
    **dict.fromkeys(("float", "double"), ("1.0", "2.5", "0.25", "-3")),
    "boolean": ("true", "false"),
    "date": ("2024-10-27", "2024-02-29", "1970-01-01"),
}
"""Example texts for each type that a job may parse from text, the narrowest type first."""
TIMES = (datetime(2024, 10, 27, 13, 32, 47, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC))
"""Example texts of times."""
NAMES_IN_MAPS = ("a", "b")
"""The field names of a payload that the job reads as a map."""
PLAIN_TEXTS = ("x", "y", "z", "A")
"""Texts without any separator."""
_ID = re.compile(r"(^|_)id$|Id$|ID$")
_KEYS = ("string", "int", "bigint", "smallint", "tinyint")
"""Types that can be the key of a job without state, where any column may be the key."""


@dataclass(frozen=True)
class InferredInput:
    """An inferred input of a script.

    Attributes:
        name: The input's name in `reads`.
        input: The input.
        text: The input as Python code.
        read: The script's read of the input.
        guesses: The guesses, each as a sentence with the option that replaces the guess.
        text_of_value: The payload's form as Python code, if it differs from the form's name.
    """

    name: str
    input: Input
    text: str
    read: Read
    guesses: Sequence[str]
    text_of_value: str = ""

    def with_option(self, name: str, value: Any) -> InferredInput:
        """Return the input with another value for an argument of `Input`."""
        changed = replace(self.input, **{name: value})
        return replace(self, input=changed, text=as_text(changed, self.text_of_value))


def inferred_input(
    name: str, read: Read, columns: StructType, query: Traced, all_queries: Sequence[Traced]
) -> InferredInput:
    """Infer an input.

    Args:
        name: The input's name in `reads`.
        read: The script's read of the input.
        columns: The columns of the source.
        query: The plan of the checked query.
        all_queries: The plans of all queries of the script, because all queries read the same rows.
    """
    return _Reading(name, read, columns, query, all_queries).input()


class _Reading:
    def __init__(
        self, name: str, read: Read, columns: StructType, query: Traced, all_queries: Sequence[Traced]
    ) -> None:
        self.name, self.read, self.query = name, read, query
        self.form = FORMS.get(read.format, read.format)
        self.envelope = ENVELOPES.get(self.form)
        self.has_payload = self.envelope is not None or (self.form == "text" and columns.names == ["value"])
        self.guesses: list[str] = []
        self.values: dict[str, Sequence[str]] = {}
        self.parts: list[str] = []
        self.value: Any = "json"
        self.text_of_value = ""
        self.columns = [*columns]
        self.times = [time for time in query.times if time.place.source == name]
        self.times += [time for one in all_queries for time in one.times if time.place.source == name]
        if self.has_payload:
            self.read_payload([one.payloads for one in all_queries])
        self.other_times = [time for one in (query, *all_queries) for time in one.other_times]
        self.take_types([one.casts for one in all_queries])
        self.take_texts([split for one in all_queries for split in one.splits])

    @property
    def payload_column(self) -> str:
        return "value" if self.envelope is None else self.envelope.payload

    def read_payload(self, found: Sequence[Mapping[Place, Payload]]) -> None:
        """Use the fields of all schemas that parse the payload, and the fields that the job extracts one by one."""
        from pyspark.sql.types import StringType, StructField, StructType, _parse_datatype_string

        whole = Place(self.name, self.payload_column, (), parsed=True)
        payloads = [each[whole] for each in found if whole in each]
        if not payloads:
            self.value, self.text_of_value = "text", '"text"'
            self.columns = [StructField(LINE, StringType())]
            return
        self.value = payloads[0].form
        if self.value == "split":
            self.read_parts(payloads[0])
            return
        fields: dict[str, StructField] = {}
        for payload in payloads:
            schema = payload.schema if isinstance(payload.schema, Mapping) else {}
            if self.value == "avro":
                self.value = avro(payload.schema, 1 if payload.has_header else None)
                self.text_of_value = f"avro({payload.schema!r}{', schema_id=1' * payload.has_header})"
                fields |= {name: StructField(name, kind) for name, kind in _of_avro(payload.schema)}
                break
            if schema.get("type") == "array" and isinstance(schema["elementType"], Mapping):
                self.value, self.text_of_value = JSON_ARRAY, f'"{JSON_ARRAY}"'
                schema = schema["elementType"]
            if schema.get("type") == "struct":
                fields |= {one.name: one for one in StructType.fromJson({**schema}) if one.name not in fields}
            if schema.get("type") == "map" and isinstance(schema["valueType"], str):
                kind = _parse_datatype_string(SQL_TYPES.get(schema["valueType"], schema["valueType"]))
                fields |= {name: StructField(name, kind) for name in NAMES_IN_MAPS}
            taken = _of_paths(payload.fields)
            fields |= {name: field for name, field in taken.items() if name not in fields}
        known: dict[str, str] = {}
        for name in [name for name in fields if known.setdefault(name.casefold(), name) != name]:
            del fields[name]
            self.guesses.append(
                f"{name} of {self.name} is null, because its name differs from {known[name.casefold()]} only in case"
            )
        if not fields:
            self.value, self.text_of_value = "text", '"text"'
            self.columns = [StructField(LINE, StringType())]
            self.guesses.append(
                f"the payload of {self.name} is any text, because its fields aren't known: set them with --input"
            )
            return
        if {"op", *_IMAGES} <= {*fields}:
            self.value, self.text_of_value = "debezium", '"debezium"'
            of_debezium = {one.name for one in OF_DEBEZIUM}
            image: Any = fields["after"].dataType
            fields = {one.name: one for one in image if one.name not in of_debezium}
        elif self.value == "csv":
            self.text_of_value = '"csv"'
        self.columns = [*fields.values()]

    def read_parts(self, payload: Payload) -> None:
        """Use the separated parts of a text payload as columns."""
        from pyspark.sql.types import StructField, _parse_datatype_string

        numbers = range(1 + max(int(number) for (number,) in payload.fields))
        self.parts = [payload.names.get((str(number),), f"part{number}") for number in numbers]
        self.parts = [
            name if self.parts.count(name) == 1 else f"part{number}" for number, name in enumerate(self.parts)
        ]
        kinds = [payload.fields.get((str(number),), "string") for number in numbers]
        pairs = zip(self.parts, kinds, strict=True)
        self.columns = [StructField(name, _parse_datatype_string(SQL_TYPES.get(kind, kind))) for name, kind in pairs]
        self.values = {one.name: PLAIN_TEXTS for one in self.columns if one.dataType.simpleString() == "string"}
        parts, separator = (*self.parts,), payload.separator
        self.value = lambda row: separator.join("" if row[name] is None else str(row[name]) for name in parts).encode()
        self.text_of_value = (
            f"lambda row: {_double_quoted(separator)}.join(str(row[name]) for name in {_double_quoted(parts)}).encode()"
        )

    def take_types(self, found: Sequence[Mapping[Place, frozenset[str]]]) -> None:
        """Draw only numbers or booleans in text columns that the job casts, because Spark fails on other texts.

        Columns of files and tables keep their declared types, and get example values.
        """
        from pyspark.sql.types import StructField, _parse_datatype_string

        uses: dict[str, set[str]] = {}
        for place, kinds in (item for each in found for item in each.items()):
            if (name := self.column_of(place)) is not None:
                uses.setdefault(name, set()).update(kinds)
        for number, column in enumerate(self.columns):
            able = [kind for kind in TEXTS if kind in uses.get(column.name, ())]
            if not able or column.dataType.simpleString() != "string" or self.value not in _READABLE:
                continue
            if self.has_payload:
                self.columns[number] = StructField(column.name, _parse_datatype_string(able[0]))
            else:
                self.values[column.name] = TEXTS[able[0]]

    def take_texts(self, splits: Sequence[Split]) -> None:
        """Draw only texts that the job can parse as times or split into parts, because Spark fails on other texts."""
        texts = {one.name for one in self.columns if one.dataType.simpleString() == "string"}
        if self.has_payload and not self.parts and self.value not in _READABLE:
            return
        times = [(self.column_of(time.place), time) for time in self.other_times if holds_time(time)]
        for column, time in reversed(times):  # the format that the job tries first comes last, and replaces the others
            if column in texts:
                form = TimeForm(pa.string(), time.form, 1)
                self.values[str(column)] = [form.of(one) for one in TIMES]
        for column in texts & {self.column_of(split.place) for split in splits}:
            parts = {split.number: split for split in splits if self.column_of(split.place) == column}
            kinds = [SQL_TYPES.get(parts[n].kind, parts[n].kind) if n in parts else "" for n in range(1 + max(parts))]
            each = [TEXTS.get(kind, PLAIN_TEXTS) for kind in kinds]
            separator = next(iter(parts.values())).separator
            self.values[str(column)] = [separator.join(texts[n % len(texts)] for texts in each) for n in range(3)]

    def column_of(self, place: Place) -> str | None:
        """Return the input's column, or the path in a column, with the value of a source position (None: no single
        column).
        """
        if place.source != self.name:
            return None
        if not self.has_payload:
            return ".".join((place.column, *place.path))
        if place.parsed:
            path = place.path
            if self.parts:
                path = (self.parts[int(path[0])],) if path else ()
            if self.value == "debezium":
                path = path[1:] if path[:1] in [(one,) for one in _IMAGES] else ()
            return ".".join(path) or None
        if self.value == "text" and place.column == self.payload_column:
            return LINE
        return None

    def input(self) -> InferredInput:
        time, time_format = self.time()
        key = self.key({time or self.only_timestamp})
        values = {name: texts for name, texts in self.values.items() if name not in (*key, time)}
        own: dict[str, Any] = {"key": key[0] if len(key) == 1 else key, "time": time, "time_format": time_format}
        if self.has_payload:
            own |= {"format": self.form, "value": self.value, "headers": self.read.has_headers or None}
        own["values"] = values or None
        if identity := self.identity():
            own["identity"] = identity[0] if len(identity) == 1 else identity
            names = " and ".join(identity)
            said = f"rows of {self.name} that agree in {names} are copies of an event: the query keeps only one of them"
            self.guesses.append(said)
        own = {name: given for name, given in own.items() if given not in (None, (), "json")}
        found = Input(ddl(self.columns), name=plain_name(self.name), **own)
        return InferredInput(self.name, found, as_text(found, self.text_of_value), self.read, self.guesses)

    def identity(self) -> tuple[str, ...]:
        """Return the columns by which the query deduplicates the source's rows, and which therefore identify an
        event.
        """
        there = [column.name for column in self.columns]
        for places in self.query.identities:
            names = [self.column_of(place) for place in places if place.source == self.name]
            found = tuple(dict.fromkeys(name for name in names if name is not None and name in there))
            if self.value != "debezium" and found and len(found) == len({*names}) < len(there):
                return found
        return ()

    def key(self, times: set[str | bool | None]) -> tuple[str, ...]:
        """Return the columns by which all operators group rows; for a job without state, a column of its result."""
        groups = [places for below, places in self.query.groups if self.name in below]
        times |= {self.column_of(time.place) for time in self.times}
        # A shared query adds a prefix to keys, so a text that the job parses as a number can't be a key.
        times |= {name for name, texts in self.values.items() if texts is not PLAIN_TEXTS}
        of_key = None if self.envelope is None else Place(self.name, self.envelope.key)
        if self.value == "debezium":
            return self.primary_key(groups)
        if not groups:
            if of_key in self.query.kept and of_key is not None:
                return (self.with_key(of_key.column),)
            return self.key_without_state(times)
        texts = {column.name for column in self.columns if column.dataType.simpleString() == "string"}
        others = groups
        # events of different keys have different identities, so a deduplication needn't contain the key
        if texts & {*self.identity()}:
            others = [places for places in groups if places not in self.query.identities]
        return self.common(groups, times, of_key) or self.common(others, times, of_key)

    def common(
        self, groups: Sequence[Sequence[Place]], times: set[str | bool | None], of_key: Place | None
    ) -> tuple[str, ...]:
        """Return the columns that all grouping operators use, except event times."""
        found: list[str] | None = None
        for places in groups:
            names = [self.column_of(place) for place in places if place.source == self.name]
            if of_key is not None and of_key in places:
                names.append(self.with_key(of_key.column))
            own = [name for name in names if name is not None and "." not in name and name not in times]
            found = own if found is None else [name for name in found if name in own]
        there = {column.name for column in self.columns}
        return tuple(name for name in dict.fromkeys(found or ()) if name in there)

    def primary_key(self, groups: Sequence[Sequence[Place]]) -> tuple[str, ...]:
        """Return the primary key of a change-data input: the job's grouping key, or a column such as `id`."""
        grouped = [name for places in groups for place in places if (name := self.column_of(place)) is not None]
        columns = [column.name for column in self.columns]
        found = tuple(name for name in dict.fromkeys(grouped) if name in columns)
        if not found:
            found = tuple(sorted(columns, key=lambda name: not _ID.search(name))[:1])
            self.guesses.append(f"the table's primary key is {found[0]}: set another with --key")
        return found

    def with_key(self, column: str) -> str:
        """Add the record's own key to the columns, because the job groups by the key."""
        from pyspark.sql.types import StringType, StructField

        if all(one.name != column for one in self.columns):
            self.columns = [StructField(column, StringType()), *self.columns]
        return column

    def key_without_state(self, times: set[str | bool | None]) -> tuple[str, ...]:
        kept = {self.column_of(place) for place in self.query.kept}
        able = [
            column.name
            for column in self.columns
            if column.name in kept - times and column.dataType.simpleString() in _KEYS and column.name not in _NO_KEYS
        ]
        return tuple(sorted(able, key=lambda name: not _ID.search(name))[:1])

    @property
    def timestamps(self) -> list[str]:
        return [one.name for one in self.columns if one.dataType.simpleString() in _TIMESTAMPS]

    @property
    def only_timestamp(self) -> str | None:
        stamps = self.timestamps
        return stamps[0] if len(stamps) == 1 else None

    def time(self) -> tuple[str | bool | None, str | None]:
        """Return the event-time column, and the format of times that aren't timestamps."""
        stamps = self.timestamps
        for time in self.times:
            return self.watermarked(time, stamps)
        for time in self.other_times:
            column = self.column_of(time.place)
            if column is not None and holds_time(time) and ((stamps[1:] and column in stamps) or not stamps):
                return self.watermarked(time, stamps)
        if self.value == "debezium" or (self.has_payload and not stamps):
            return None, None
        if len(stamps) > 1:
            self.guesses.append(
                f"its event time is {stamps[0]}, the first of {', '.join(stamps)}, because no watermark names a "
                "column: set another with --time"
            )
            return stamps[0], None
        return (None if stamps else False), None

    def watermarked(self, time: TracedTime, stamps: Sequence[str]) -> tuple[str | bool | None, str | None]:
        column = self.column_of(time.place)
        if column is None:  # not a payload column, but the record's own timestamp
            own = None if self.envelope is None else self.envelope.time
            return ("timestamp" if stamps and own == time.place.column else None), None
        kind = self.kind_of(column)
        if kind in _TIMESTAMPS:
            return (None if [column] == [*stamps] else column), None
        form = time.form or ("s" if kind in _NUMBERS else None)
        if not time.is_known:
            self.guesses.append(f"the format of its event time {column} isn't known: set it with --time-format")
        return column, form

    def kind_of(self, path: str) -> str:
        """Return the type of a column, or of a field within it."""
        fields: Any = self.columns
        kind: Any = None
        for name in path.split("."):
            kind = next((one.dataType for one in fields if one.name == name), None)
            fields = kind if kind is not None and kind.typeName() == "struct" else ()
        return "" if kind is None else str(kind.simpleString())


def holds_time(time: TracedTime) -> bool:
    """Return whether the format of an event time is known, and contains the date and the time."""
    try:
        return time.is_known and (time.form is None or time_form("", pa.string(), time.form) is not None)
    except BadInput:
        return False


def _of_paths(paths: Mapping[tuple[str, ...], str]) -> dict[str, StructField]:
    """Return the fields that path expressions extract from a payload, each with its type's name."""
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    below: dict[str, dict[tuple[str, ...], str]] = {}
    for path, kind in paths.items():
        below.setdefault(path[0], {})[path[1:]] = kind
    fields = {}
    for name, within in below.items():
        whole = within.pop((), "string")
        nested = StructType([*_of_paths(within).values()])
        fields[name] = StructField(name, nested if within else _parse_datatype_string(SQL_TYPES.get(whole, whole)))
    return fields


def as_text(given: Input, value: str = "") -> str:
    """Return an input as Python code, without its name.

    Args:
        given: The input.
        value: The payload's form as Python code, if it differs from the form's name.
    """
    names = ("key", "time", "time_format", "format", "value", "headers", "values", "identity")
    plain = Input()
    said = {name: of for name in names if (of := getattr(given, name)) != getattr(plain, name)}
    texts = [_double_quoted(given.schema)]
    texts += [f"{name}={value if name == 'value' and value else _double_quoted(of)}" for name, of in said.items()]
    return f"Input({', '.join(texts)})"


def _double_quoted(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_double_quoted, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_double_quoted(key)}: {_double_quoted(one)}' for key, one in value.items())}}}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def ddl(columns: Sequence[StructField]) -> str:
    """Return columns as DDL, without a limit on their number."""
    return ", ".join(f"{_quoted(column.name)} {_ddl_of(column.dataType)}" for column in columns)


def _ddl_of(kind: DataType) -> str:
    of: Any = kind
    match kind.typeName():
        case "struct":
            return f"struct<{', '.join(f'{_quoted(one.name)}: {_ddl_of(one.dataType)}' for one in of)}>"
        case "array":
            return f"array<{_ddl_of(of.elementType)}>"
        case "map":
            return f"map<{_ddl_of(of.keyType)}, {_ddl_of(of.valueType)}>"
    return kind.simpleString()


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name.replace('`', '``')}`"


def _of_avro(schema: str) -> Iterator[tuple[str, DataType]]:
    from pyspark.sql import SparkSession

    session: Any = SparkSession.getActiveSession()
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    jvm = session._jvm
    parsed = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(jvm.org.apache.avro.Schema.Parser().parse(schema))
    kind = _parse_datatype_json_string(parsed.dataType().json())
    assert isinstance(kind, StructType)
    yield from ((one.name, one.dataType) for one in kind)


def plain_name(name: str) -> str:
    """Return a name that SQL accepts unquoted: the last part of a topic, path or table."""
    last = re.sub(r"\W+", "_", re.split(r"[/.]", name.rstrip("/*."))[-1], flags=re.ASCII).strip("_")
    return last if re.match("[A-Za-z]", last) else f"events_{last}".rstrip("_")
