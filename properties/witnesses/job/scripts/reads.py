"""A script's reads, the check's frame for each read, and the errors for frames that don't fit."""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput
from ....system.visible import visible
from .statements import tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PATTERN = "subscribepattern"
TOPICS = ("subscribe", PATTERN, "assign")
"""The options of a Kafka source that name its topics."""
FILES = ("csv", "json", "orc", "parquet", "text", "xml")
"""Formats for which readers have a separate method, such as `json`."""
_OF_TABLE = ("collection", "container", "dbtable", "query", "table", "tablename")
"""Options that name a database table, by its full name or in a statement."""
_PART = re.compile(r"[^/]*[*?\[{][^/]*|[\w-]+=[^/]*|\.?")
"""A part of a path that matches many files, or a partition of a table."""


@dataclass
class Read:
    """A source that the script reads.

    Attributes:
        format: The source's format; empty if the script doesn't set it.
        options: The reader's options, by their lower-case names.
        target: The path or table of the load, if any.
        schema: The reader's schema, if any.
        line: The script's line.
        where: The file of the line, as in messages.
    """

    format: str = ""
    options: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    schema: Any = None
    line: int = 0
    where: str = ""

    def load(self, method: str, target: Any, arguments: Sequence[Any], named: dict[str, Any]) -> None:
        """Record the arguments of the load call: method, target, other positional and named arguments."""
        first = next(iter(arguments), None)
        target = target if target is not None else named.get("path", named.get("tableName", named.get("url")))
        if method == "jdbc":
            self.format, target = method, named.get("table", first if first is not None else target)
        if target is not None:
            self.target = str(target[0] if isinstance(target, list) else target)
        if method in FILES:
            self.format = method
            self.schema = first if first is not None else self.schema
        elif method == "load" and (kind := named.get("format") or first):
            self.format = str(kind).casefold()
        if named.get("schema") is not None:
            self.schema = named["schema"]

    @property
    def names(self) -> list[str]:
        """The names that may identify the source: topic, path, table, their last parts, other options."""
        return [*dict.fromkeys(name.casefold() for name in self._names() if name)]

    @property
    def name(self) -> str:
        """The first name, as the script writes it; empty: the source has no name."""
        return next((name for name in self._names() if name), "")

    @property
    def has_headers(self) -> bool:
        """Return whether the read asks for the headers of Kafka's records."""
        return self.format == "kafka" and self.options.get("includeheaders", "").casefold() == "true"

    @property
    def topics(self) -> list[str]:
        """The topics that the read names; empty for a pattern of topics."""
        texts = (self.options.get(option, "") for option in TOPICS if option != PATTERN)
        return [topic for text in texts for topic in _topics(text)]

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Return the names that identify the source to the check: all names of a read with several topics, or the
        closest name.
        """
        names, topics = [*names], self.topics
        if len(topics) > 1 or PATTERN in self.options:
            whole = [name for name in names if name in (self.options.get(option) for option in TOPICS)]
            return whole or [name for name in names if self.topics_of(name)]
        known = self.names
        ranks = {name: known.index(name.casefold()) for name in names if name.casefold() in known}
        ranks |= {name: len(known) for name in names if name not in ranks and self._is_within(name.casefold())}
        return sorted(ranks, key=lambda name: ranks[name])[:1]

    def topics_of(self, name: str) -> list[str]:
        """Return the topics of the read whose full name or last part is among the given names."""
        if (pattern := self.options.get(PATTERN)) is not None:
            return [name] * bool(_matches(pattern, name))
        return [topic for topic in self.topics if name.casefold() in map(str.casefold, names_of(topic))]

    def _is_within(self, name: str) -> bool:
        """Return whether the name of one path or table is the end of the other's name."""
        own = [one.casefold() for one in [*names_of(self.target or self.options.get("path", ""))][:2] if one]
        wanted = [*names_of(name)][1]
        return any(one.endswith(f"/{wanted}") or name.endswith((f"/{one}", f".{one}")) for one in own)

    def _names(self) -> Iterator[str]:
        yield from (self.options.get(option, "") for option in (PATTERN, "subscribe"))
        for topic in self.topics:
            yield from names_of(topic)
        yield from names_of(self.target or self.options.get("path", ""))
        for option in _OF_TABLE:
            for text in (self.options.get(option, ""), *tables_of(self.options.get(option, ""))):
                yield from names_of(text)
        yield from re.findall(r"\bEntityPath=([^;]+)", self.options.get("eventhubs.connectionstring", ""))
        for option, text in self.options.items():
            if option not in (*TOPICS, "path") and text.isprintable() and not text.isdecimal():
                yield text
        yield self.format

    def __str__(self) -> str:
        topics = next((f"the topic {self.options[option]}" for option in TOPICS if option in self.options), None)
        what = topics or self.target or self.options.get("path") or f"the source {self.format or 'without a format'}"
        return visible(what)


def names_of(target: str) -> Iterator[str]:
    """Yield the names of a path or table: the full name, the name without wildcard parts, and the last part."""
    path = re.sub(r"^[a-z][\w+.-]*:/*", "/", target.partition("?")[0] if "://" in target else target)
    parts = path.split("/")
    while len(parts) > 1 and _PART.fullmatch(parts[-1]):
        parts.pop()
    path = posixpath.normpath("/".join(parts)) if parts[-1] else ""
    stem, ending = posixpath.splitext(parts[-1])
    is_file = "/" in target or ending[1:] in (*FILES, "avro", "delta", "gz", "txt")
    yield from (target, path, parts[-1], *[stem] * is_file, target.rpartition(".")[2])


def _topics(text: str) -> list[str]:
    if text.startswith("{"):
        with contextlib.suppress(ValueError):
            return [*json.loads(text)]
    return [topic.strip() for topic in text.split(",") if topic.strip()]


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:  # Python can't parse every pattern of Java
        return False


@dataclass
class Frames:
    """The frames for a script's reads; a read gets the frame with its name, or otherwise the next frame in order.

    Attributes:
        frames: The frames, by name.
        topics: The topic of a frame's records, if the topic differs from the frame's name.
        taken: The reads that got a frame, by the frame's name.
    """

    frames: Mapping[str, DataFrame]
    topics: Mapping[str, str] = field(default_factory=dict)
    taken: dict[str, list[Read]] = field(default_factory=dict)

    def answer(self, read: Read, *, in_order: bool) -> dict[str, DataFrame]:
        """Return the frames of a read, by name; a read of several topics may get several frames, and an unknown read
        gets none.

        Args:
            read: The read.
            in_order: Whether a read whose name no frame has gets the next unused frame.
        """
        again = [name for name, reads in self.taken.items() if any(_same(read, before) for before in reads)]
        rest = [name for name in self.frames if name not in self.taken and in_order][:1]
        found = {}
        for name in again or read.chosen(self.frames) or rest:
            others = self.taken.setdefault(name, [])
            others.append(read)
            found[name] = self.frames[name] if len(others) == 1 else renewed(self.frames[name])
        return found

    def has(self, read: Read) -> bool:
        """Return whether a frame matches the name of a read."""
        return bool(read.chosen(self.frames))

    def unread(self) -> list[str]:
        """Return the names of the frames that no read has used."""
        return [name for name in self.frames if name not in self.taken]


def _same(one: Read, other: Read) -> bool:
    return (one.format, one.target, one.options) == (other.format, other.target, other.options)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the union of all frames, with null for the columns that a frame lacks."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def renewed(frame: DataFrame) -> DataFrame:
    """Return the frame with new column ids, so that a join can distinguish two reads of the same frame."""
    from pyspark.sql import functions as F

    return frame.select([F.col(f"`{name.replace('`', '``')}`").alias(name) for name in frame.columns])


def of_topics(frame: DataFrame, topics: Sequence[str]) -> DataFrame:
    """Return Kafka records with the given topics, which alternate by offset."""
    from pyspark.sql import functions as F

    each = F.array(*map(F.lit, topics))
    topic = F.element_at(each, F.pmod("offset", F.lit(len(topics))).cast("int") + 1) if topics[1:] else F.lit(topics[0])
    return frame.select([topic.alias(name) if name == "topic" else F.col(name) for name in frame.columns])


def as_declared(frame: DataFrame, read: Read, name: str, where: str, *, cast: bool = False) -> DataFrame:
    """Return the frame with the columns of the reader's schema, in the schema's order.

    Args:
        frame: The frame of the read.
        read: The read.
        name: The input's name.
        where: The script's name in messages.
        cast: Whether to cast columns of other types to the schema's types.

    Raises:
        BadInput: A column is missing from the frame, or has another type.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import _parse_datatype_string

    schema = read.schema
    if schema is None:
        return frame
    if isinstance(schema, str):
        schema = _parse_datatype_string(schema)
    own = {field.name.casefold(): field for field in frame.schema}
    for column in schema:
        given = own.get(column.name.casefold())
        if given is None:
            raise BadInput(
                f"line {read.line} of {where} reads the column {visible(column.name)} of {read}, and reads[{name!r}] "
                f"has {', '.join(frame.columns)}: give its Input the columns {visible(shown_schema(schema))!r}"
            )
        if not cast and given.dataType.simpleString() != column.dataType.simpleString():
            raise BadInput(
                f"line {read.line} of {where} reads {visible(column.name)} of {read} as "
                f"{column.dataType.simpleString()}, and its type in reads[{name!r}] is {given.dataType.simpleString()}"
                f": give its Input the columns {visible(shown_schema(schema))!r}"
            )
    if cast:
        return frame.select([F.col(column.name).cast(column.dataType).alias(column.name) for column in schema])
    names = [own[column.name.casefold()].name for column in schema]
    return frame if names == frame.columns else frame.select(names)


def shown_schema(schema: Sequence[Any]) -> str:
    """Return the columns of a schema as DDL."""
    return ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in schema)
