"""An operator on DuckDB: one SQL statement for the histories of many definitions, and the decoding of its result.

DuckDB doesn't get the values, because any JSON value must be returned unchanged: a result contains the positions of
arrivals instead. DuckDB gets only values with which a statement computes: numbers and strings that an aggregate
compares, and keys in values. This witness reads options from the history file, never through the reference, because
both could then misread an option in the same way. Defaults are therefore repeated in the statements and in the
registrations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ...reference.core.records import Change, Key, Record, Value

Options: TypeAlias = Mapping[str, Any]
"""Options of an operator, as in a history file; durations in ms."""

AGGREGATES = {
    "count": "count(value.position)",
    "sum": "{whole: sum(value.whole_term), fraction: sum(value.fraction_term ORDER BY place)}",
    "min": "{whole: min(value.whole), fraction: min(value.fraction), text: min(value.text)}",
    "max": "{whole: max(value.whole), fraction: max(value.fraction), text: max(value.text)}",
    "list": "coalesce(list(value.position ORDER BY place) FILTER (value.position IS NOT NULL), [])",
    "average": (
        "{whole: sum(value.whole_term), fraction: sum(value.fraction_term ORDER BY place), "
        "members: count(value.position)}"
    ),
}
"""The macro `aggregated(value, place)` of statements has a field for each aggregate: over `value`, a struct of the
number of its arrival (`position`) and, if the definition's aggregate computes with it, of the value itself, to be
compared (`whole`, `fraction`, `text`) or added (`whole_term`, `fraction_term`); and over `place`, its order."""

CLOCK = """
    coalesce(CASE clock_kind
        WHEN 'stream_time' THEN max(timestamp) FILTER (moves) OVER (PARTITION BY history ORDER BY position)
        WHEN 'batch' THEN max(timestamp) FILTER (moves) OVER (
            PARTITION BY history ORDER BY batch RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    END, 0)
"""
"""The macro `clock_at(clock_kind, timestamp, moves, history, position, batch)` of statements: the clock of an arrival,
which is the largest timestamp of the arrivals that move it, so far or of earlier batches."""


class Answer(Protocol):
    """A statement's result for a definition, column by column."""

    def records(self, column: str) -> list[Value]:
        """Return the values of the arrivals whose positions a column contains; null stays null."""
        ...

    def aggregates(self, column: str) -> list[Value]:
        """Return the aggregates in a column; null stays null."""
        ...


def beside(file: str, *before: str) -> str:
    """Return the statement in the .sql file with a module's name, preceded by the files `before` in the same folder."""
    paths = (*map(Path(file).with_name, before), Path(file).with_suffix(".sql"))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def _never(options: Options) -> bool:
    return False


@dataclass(frozen=True)
class Sql:
    """An operator on DuckDB; options are as in a history file.

    Attributes:
        statement: The statement, over the relations `arrivals` and `definitions`; it contains the defaults of the
            options.
        aggregated: Returns the aggregate's name and the aggregated inputs for options; None if nothing is aggregated.
        member: Returns for options a function that returns the aggregated part of a value; None for the whole value.
        key_named: Returns for options a function that returns the key in a record's value (a foreign key, a group);
            None without such a key.
        number_named: Returns for options a function that returns the number in a record's value (a window's start);
            None without such a number.
        is_stream: Returns whether the result for options is a stream (a bag of all results) rather than a table.
        values: Returns the values of a result's rows, given the options and the statement's result.
        changed: Returns for options a function that converts each change of the result; None for no conversion.
        refusal: Returns the reason why there is no statement for options; None if there is a statement.
        reads_values: Whether the statement reads fields of values; if so, `arrivals` contains the values as JSON text.
    """

    statement: str
    aggregated: Callable[[Options], tuple[str, tuple[str, ...]] | None] = lambda options: None
    member: Callable[[Options], Callable[[Value], Value] | None] = lambda options: None
    key_named: Callable[[Options], Callable[[Record], Key | None] | None] = lambda options: None
    number_named: Callable[[Options], Callable[[Record], int | None] | None] = lambda options: None
    is_stream: Callable[[Options], bool] = _never
    values: Callable[[Options, Answer], Iterable[Value]] = lambda options, answer: answer.records("record")
    changed: Callable[[Options], Callable[[Change], Change] | None] = lambda options: None
    refusal: Callable[[Options], str | None] = lambda options: None
    reads_values: bool = False


def aggregated_events(options: Options) -> tuple[str, tuple[str, ...]]:
    """Return the aggregate of options that aggregate their only input; the default is a count."""
    return options.get("aggregate", "count"), ("events",)


def always(options: Options) -> bool:
    """Return True, for an operator whose result is always a stream."""
    return True


def aggregate_values(options: Options, answer: Answer) -> list[Value]:
    """Return the values of a result whose rows are aggregates."""
    return answer.aggregates("value")


def pair_values(options: Options, answer: Answer) -> list[Value]:
    """Return the values of a result whose rows are pairs of records."""
    return pairs(answer.records("left_record"), answer.records("right_record"))


def pairs(left: Iterable[Value], right: Iterable[Value]) -> list[Value]:
    """Return joined values."""
    return [list(pair) for pair in zip(left, right, strict=True)]
