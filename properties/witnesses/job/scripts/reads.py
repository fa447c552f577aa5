"""The reads of a script: which of the check's frames answers which of its sources, and what doesn't fit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput
from ....system.visible import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPICS = ("subscribe", "subscribepattern", "assign")
"""The options of a Kafka source that name its topics."""
FILES = ("csv", "json", "orc", "parquet", "text", "xml")
"""Formats that readers have a method for."""


@dataclass
class Read:
    """A source that the script reads.

    Attributes:
        format: The source's format; empty where the script doesn't say it.
        options: The options of the reader, by their names in small letters.
        target: The path or table that is loaded, if one is.
        schema: The schema that the reader is given, if it is.
        line: The script's line.
    """

    format: str = ""
    options: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    schema: Any = None
    line: int = 0

    def load(self, method: str, target: Any, arguments: Sequence[Any], named: dict[str, Any]) -> None:
        """Take up what a call that loads the source says: its method, target, further arguments and named ones."""
        first = next(iter(arguments), None)
        target = target if target is not None else named.get("path", named.get("tableName", named.get("url")))
        if method == "jdbc":
            target = named.get("table", first if first is not None else target)
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
        """The names by which the check may know the source: topic, path, table, their last parts, other options."""
        return [*dict.fromkeys(name.casefold() for name in self._names() if name)]

    def _names(self) -> Iterator[str]:
        for option in TOPICS:
            yield from _topics(self.options.get(option, ""))
        for text in (self.target or self.options.get("path", ""), self.options.get("dbtable", "")):
            path = PurePosixPath(text.partition("?")[0].rstrip("/*"))
            yield from (text, path.name, path.stem, text.rpartition(".")[2])
        for option, text in self.options.items():
            if option not in (*TOPICS, "path") and text.isprintable() and not text.isdecimal():
                yield text
        yield self.format

    def __str__(self) -> str:
        topics = next((f"the topic {self.options[option]}" for option in TOPICS if option in self.options), None)
        what = topics or self.target or self.options.get("path") or f"the source {self.format or 'without a format'}"
        return visible(what)


def _topics(text: str) -> Iterable[str]:
    if text.startswith("{"):
        try:
            return [*json.loads(text)]
        except ValueError:
            return [text]
    return [text, *(topic.strip() for topic in text.split(","))]


@dataclass
class Frames:
    """The frames that answer a script's reads, by name; each read is answered by its name, else in order.

    Attributes:
        frames: The frames.
        taken: The reads that were answered so far, by the frame's name.
    """

    frames: Mapping[str, DataFrame]
    taken: dict[str, list[Read]] = field(default_factory=dict)

    def answer(self, read: Read, *, in_order: bool) -> tuple[str, DataFrame] | None:
        """Return the frame that answers a read, with its name; None: there is none.

        Args:
            read: The read.
            in_order: Whether a read of which no frame has the name takes the next frame that none has taken.
        """
        again = [name for name, reads in self.taken.items() if any(_same(read, before) for before in reads)]
        by_name = [name for name in self.frames if name.casefold() in read.names]
        rest = [name for name in self.frames if name not in self.taken and in_order]
        name = next(iter([*again, *by_name, *rest]), None)
        if name is None:
            return None
        frame, others = self.frames[name], self.taken.setdefault(name, [])
        others.append(read)
        return name, frame if len(others) == 1 else renewed(frame)

    def unread(self) -> list[str]:
        """Return the names of the frames that no read has taken."""
        return [name for name in self.frames if name not in self.taken]


def _same(one: Read, other: Read) -> bool:
    return (one.format, one.target, one.options) == (other.format, other.target, other.options)


def renewed(frame: DataFrame) -> DataFrame:
    """Return the frame with columns of their own, as a second read has them, so that a join can tell them apart."""
    from pyspark.sql import functions as F

    return frame.select([F.col(f"`{name.replace('`', '``')}`").alias(name) for name in frame.columns])


def as_declared(frame: DataFrame, read: Read, name: str, where: str, *, cast: bool = False) -> DataFrame:
    """Return the frame with the columns that the reader's schema names, in its order.

    Args:
        frame: The frame that answers the read.
        read: The read.
        name: The input's name.
        where: What messages call the script.
        cast: Whether a column of another type is cast to the schema's.

    Raises:
        BadInput: The frame lacks a column, or has it with another type.
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
                f"{column.dataType.simpleString()}, and reads[{name!r}] has it as {given.dataType.simpleString()}: "
                f"give its Input the columns {visible(shown_schema(schema))!r}"
            )
    if cast:
        return frame.select([F.col(column.name).cast(column.dataType).alias(column.name) for column in schema])
    names = [own[column.name.casefold()].name for column in schema]
    return frame if names == frame.columns else frame.select(names)


def shown_schema(schema: Sequence[Any]) -> str:
    """Return the columns of a schema as DDL."""
    return ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in schema)
