"""An operator on DuckDB: one statement over the arrivals of a cohort, and how its answer is decoded.

Values stay behind, for any JSON value must come back as it was: an answer names the position of its arrival. Only what
a statement has to reckon with goes along: numbers and strings that an aggregate compares, keys that a value names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...reference.core.records import Change, Key, Record, Value
from ...reference.definitions.aggregates import Aggregate


class Answer(Protocol):
    """What a statement answers, column by column."""

    def records(self, column: str) -> list[Value]:
        """Return the values of the arrivals whose positions a column names; null stays null."""
        ...

    def aggregates(self, column: str) -> list[Value]:
        """Return the aggregates that a column holds; null stays null."""
        ...


def options_of(definition: Any) -> dict[str, Any]:
    """Return the options of a definition by name."""
    return {name.removesuffix("_"): value for name, value in vars(definition).items()}


def beside(file: str) -> str:
    """Return the text of the statement that lies beside a module, under its name."""
    return Path(file).with_suffix(".sql").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Sql:
    """An operator on DuckDB.

    Attributes:
        statement: The statement, over the relation `arrivals`; its parameters are the options, and `clock`.
        aggregated: Of a definition: the aggregate, and the inputs whose values it aggregates; None without one.
        member: Of a definition: what of a value is aggregated, where it isn't the whole of it.
        key_named: Of a definition: of a record, the key that its value names (a foreign key, a group), if any.
        number_named: Of a definition: of a record, the number that its value names (a window's start), if any.
        values: Of a definition and an answer: the values of its rows.
        changed: Of a definition: what is made of each change of the answer.
        options: Of a definition: the options that the statement may name.
        refusal: Of a definition: why there is no statement for it; None where there is one.
    """

    statement: str
    aggregated: Callable[[Any], tuple[Aggregate, tuple[str, ...]] | None] = lambda definition: None
    member: Callable[[Any], Callable[[Value], Value] | None] = lambda definition: None
    key_named: Callable[[Any], Callable[[Record], Key | None] | None] = lambda definition: None
    number_named: Callable[[Any], Callable[[Record], int | None] | None] = lambda definition: None
    values: Callable[[Any, Answer], Iterable[Value]] = lambda definition, answer: answer.records("record")
    changed: Callable[[Any], Callable[[Change], Change] | None] = lambda definition: None
    options: Callable[[Any], Mapping[str, Any]] = options_of
    refusal: Callable[[Any], str | None] = lambda definition: None


def aggregated_events(definition: Any) -> tuple[Aggregate, tuple[str, ...]]:
    """Return the aggregate of a definition that aggregates its only input."""
    return definition.aggregate, ("events",)


def aggregate_values(definition: Any, answer: Answer) -> list[Value]:
    """Return the values of an answer whose rows are aggregates."""
    return answer.aggregates("value")


def pair_values(definition: Any, answer: Answer) -> list[Value]:
    """Return the values of an answer whose rows are pairs of records."""
    return pairs(answer.records("left_record"), answer.records("right_record"))


def pairs(left: Iterable[Value], right: Iterable[Value]) -> list[Value]:
    """Return joined values."""
    return [list(pair) for pair in zip(left, right, strict=True)]
