"""Histories: records in arrival order, with cuts between micro-batches. Any program can write a history as a file.

A file is JSON Lines in UTF-8. The first line of a history file contains the operator, its options and the clock. Each
other line is a record, a clock advance (`heartbeat`), the delivery of a waiting message, or a cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ..definitions.declarations import Definition
from ..definitions.joins import ForeignKeyJoin
from .clocks import CLOCKS
from .errors import BadInput
from .files import read_text
from .operator import operator_named
from .records import Record


class ClockAdvance(NamedTuple):
    """An advance of the clock to `timestamp` (ms) without a record; in a history file: `{"heartbeat": 10}`."""

    timestamp: int


class Cut(NamedTuple):
    """The end of a micro-batch."""


class Delivery(NamedTuple):
    """The delivery of the oldest message on a route of a foreign-key join with manual delivery. A route is the
    subscriptions to one right key, or the responses from one right key to one left key.
    """

    channel: str
    foreign_key: str
    key: str | None


Line: TypeAlias = Record | ClockAdvance | Cut | Delivery
CUT = Cut()
ROUTES = {"subscription": ("foreign_key",), "response": ("foreign_key", "key")}
"""The fields of a delivery that identify a route, by channel."""
LARGEST_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999, the latest time that Spark's Python workers can represent."""


@dataclass(frozen=True)
class History:
    """The arrivals at an operator, in order of arrival.

    Attributes:
        operator: The operator's name.
        options: The operator's options, as in a history file; durations in ms.
        lines: Records, clock advances, deliveries and cuts, in order of arrival.
        clock: `stream_time` or `batch`.
        name: The history's name in reports: the file's name without its extension.
        numbers: The number of each line in the history's file; empty if the history wasn't read from a file.
    """

    operator: str
    options: Mapping[str, Any]
    lines: tuple[Line, ...]
    clock: str = "stream_time"
    name: str = field(default="history", compare=False)
    numbers: tuple[int, ...] = field(default=(), compare=False)

    @property
    def records(self) -> list[Record]:
        """The records among the lines, in order of arrival."""
        return [line for line in self.lines if isinstance(line, Record)]

    @property
    def has_schedule(self) -> bool:
        """Return whether the join's messages wait until a `Delivery` delivers them."""
        return self.options.get("delivery") == "manual"

    @property
    def batches(self) -> list[list[Line]]:
        """The lines of each micro-batch, without the cuts; n cuts make n + 1 batches."""
        batches: list[list[Line]] = [[]]
        for line in self.lines:
            if isinstance(line, Cut):
                batches.append([])
            else:
                batches[-1].append(line)
        return batches

    def with_lines(self, lines: Iterable[Line]) -> History:
        """Return a copy of this history with the given lines."""
        return replace(self, lines=tuple(lines), numbers=())

    def location(self, index: int) -> str:
        """Return the location of a line, for messages: `history: line 3`, or `history: arrival 2` without a file."""
        if self.numbers:
            return f"{self.name}: line {self.numbers[index]}"
        return f"{self.name}: arrival {sum(not isinstance(line, Cut) for line in self.lines[:index])}"

    def to_text(self) -> str:
        """Return the history as the text of a history file; `parse_history` is the inverse."""
        header: dict[str, Any] = {"operator": self.operator, "options": dict(self.options)}
        if self.clock != "stream_time":
            header["clock"] = self.clock
        return "".join(json.dumps(line) + "\n" for line in [header, *map(_line_to_json, self.lines)])


def _line_to_json(line: Line) -> dict[str, Any]:
    match line:
        case Record():
            return line._asdict()
        case ClockAdvance():
            return {"heartbeat": line.timestamp}
        case Delivery():
            route = {"deliver": line.channel, "foreign_key": line.foreign_key}
            return route if line.key is None else {**route, "key": line.key}
        case Cut():
            return {"cut": True}


def read_history(path: Path) -> History:
    """Read a history file.

    Raises:
        BadInput: The file is unreadable, larger than 64 MB or empty, or a line is invalid; the message names the file
            and the line.
    """
    return parse_history(read_text(path), name=path.stem, source=str(path))


def parse_history(text: str, name: str = "history", source: str = "history") -> History:
    """Parse a history from the text of a history file.

    Args:
        text: The file's text.
        name: The history's name.
        source: The name of the text in error messages, such as the file's path.

    Raises:
        BadInput: The text is empty, or a line is invalid; the message names the source, the line and the remedy.
    """
    reader = _Reader(source)
    lines_of_text = enumerate(text.removeprefix("\ufeff").split("\n"), 1)
    objects = [(number, reader.load(number, line)) for number, line in lines_of_text if line.strip()]
    if not objects:
        raise BadInput(f'{source}: empty: the first line must be a header such as {{"operator": "session_windows", …}}')
    number, header = objects[0]
    operator, definition, options, clock = reader.header(number, header)
    lines = tuple(reader.line(number, content, operator, definition) for number, content in objects[1:])
    return History(operator, options, lines, clock, name, tuple(number for number, _ in objects[1:]))


def read_object(text: str, source: str, number: int) -> dict[str, Any]:
    """Parse one line of JSON Lines into an object, by the strict rules of history files.

    Args:
        text: The line.
        source: The name of the file in error messages.
        number: The line's number, from 1.

    Raises:
        BadInput: The line isn't a JSON object; the message names the source, the line's number and the remedy.
    """
    return _Reader(source).load(number, text)


class _Reader:
    """Parses the lines of a history file; every error names the line's number."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, number: int, problem: str) -> NoReturn:
        raise BadInput(f"{self.source}: line {number}: {problem}")

    def load(self, number: int, line: str) -> dict[str, Any]:
        def refuse(constant: str) -> NoReturn:
            self.fail(number, f"{constant} isn't a JSON value: use null or leave the record out")

        def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
            names = [name for name, _ in found]
            for name in names:
                if names.count(name) > 1:
                    self.fail(number, f"{name!r} appears twice in one object: keep one of them")
            return dict(found)

        def number_of(text: str) -> float:
            found = float(text)
            return (
                found
                if isfinite(found)
                else self.fail(number, f"{text} is too large for a number: write a smaller one")
            )

        try:
            content = json.loads(line, parse_constant=refuse, parse_float=number_of, object_pairs_hook=pairs)
            json.dumps(content, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            self.fail(number, f"not JSON: {error.msg} at column {error.colno}: write one JSON object a line")
        except UnicodeEncodeError:
            self.fail(number, "half of a surrogate pair, which isn't text: write the whole character")
        except ValueError:
            self.fail(number, "a whole number with too many digits: write it as a string")
        except RecursionError:
            self.fail(number, "nested too deeply to be read: flatten the value, or write it as a string")
        if not isinstance(content, dict):
            self.fail(number, f"a line must be a JSON object, not {type(content).__name__}: write {{…}}")
        return content

    def header(self, number: int, content: dict[str, Any]) -> tuple[str, Definition, dict[str, Any], str]:
        if "operator" not in content:
            self.fail(number, 'the first line must be the header: {"operator": …, "options": {…}}')
        self.only(number, content, {"operator", "options", "clock"}, "the header")
        options, clock = content.get("options", {}), content.get("clock", "stream_time")
        if not isinstance(options, dict):
            self.fail(number, 'options must be an object, such as {"gap_ms": 10}')
        if clock not in tuple(CLOCKS):
            self.fail(number, f"unknown clock {clock!r}: use one of {', '.join(CLOCKS)}")
        try:
            operator = operator_named(content["operator"])
            return operator.name, operator.declare(options), options, clock
        except BadInput as error:
            self.fail(number, str(error))

    def line(self, number: int, content: dict[str, Any], operator: str, definition: Definition) -> Line:
        if "cut" in content:
            self.only(number, content, {"cut"}, "a cut")
            return CUT if content["cut"] is True else self.fail(number, 'a cut is written {"cut": true}')
        if "heartbeat" in content:
            self.only(number, content, {"heartbeat"}, "a heartbeat")
            return ClockAdvance(self.timestamp(number, content["heartbeat"], "heartbeat"))
        if "deliver" in content:
            return self.delivery(number, content, operator, definition)
        if "operator" in content:
            self.fail(number, "a second header: a history file has one, on its first line")
        self.only(number, content, {"input", "key", "value", "timestamp"}, "a record")
        for name in ("input", "key", "value", "timestamp"):
            if name not in content:
                self.fail(number, f"a record without {name!r}: it needs input, key, value and timestamp")
        if content["input"] not in definition.inputs:
            inputs = ", ".join(definition.inputs)
            more = (
                "; the input right needs the option with"
                if (operator, content["input"]) == ("windowed_table", "right")
                else ""
            )
            self.fail(number, f"unknown input {content['input']!r}: {operator} has {inputs}{more}")
        if not isinstance(content["key"], str | None):
            self.fail(number, f"the key {content['key']!r} isn't a string: quote it, or use null for no key")
        record = Record(
            content["input"],
            content["key"],
            content["value"],
            self.timestamp(number, content["timestamp"], "timestamp"),
        )
        try:
            definition.check(record)
        except BadInput as error:
            self.fail(number, str(error))
        return record

    def delivery(self, number: int, content: dict[str, Any], operator: str, definition: Definition) -> Delivery:
        if not isinstance(definition, ForeignKeyJoin):
            self.fail(number, f"{operator} has no channels to deliver from: leave the line out")
        if definition.delivery != "manual":
            self.fail(number, 'no message waits: say "delivery": "manual" in the options, or leave it out')
        names = ROUTES.get(content["deliver"]) if isinstance(content["deliver"], str) else None
        if names is None:
            self.fail(number, f"unknown channel {content['deliver']!r}: deliver a subscription or a response")
        self.only(number, content, {"deliver", *names}, f"the delivery of a {content['deliver']}")
        for name in names:
            if not isinstance(content.get(name), str):
                self.fail(number, f"the delivery of a {content['deliver']} needs the string {name} for its route")
        return Delivery(content["deliver"], content["foreign_key"], content.get("key"))

    def timestamp(self, number: int, value: Any, name: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            self.fail(number, f"the {name} {value!r} isn't a whole number: give milliseconds as an integer")
        if not 0 <= value <= LARGEST_TIMESTAMP_MS:
            self.fail(number, f"the {name} {value} is out of range: give milliseconds since 1970, up to the year 9999")
        return value

    def only(self, number: int, content: dict[str, Any], allowed: set[str], what: str) -> None:
        unknown = sorted(set(content) - allowed)
        if unknown:
            self.fail(number, f"{what} has no {unknown[0]!r}: it takes {', '.join(sorted(allowed))}")
