"""An operator on Kafka Streams: its topology, and the encoding and decoding of values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...reference.core.records import Key, Record, Value
from ...reference.definitions.aggregates import Aggregate


def as_text(value: Value) -> str:
    """Return a value as JSON text, the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def value_text(definition: Any, record: Record) -> str | None:
    """Return a record's value as JSON text; null stays null."""
    return None if record.value is None else as_text(record.value)


def read_text(definition: Any, key: Key | None, text: str) -> Value:
    """Parse a JSON text into a value."""
    return json.loads(text)


def read_members(aggregate: Aggregate, key: Key | None, text: str) -> Value:
    """Return an aggregate: a count, or the aggregate of its members, a line each.

    Kafka keeps the members in their order; Python folds them, because method handles can't do arithmetic on JSON.
    """
    if text == "null" or aggregate.name == "count":
        return json.loads(text)
    return aggregate.of(key or "", json.loads(f"[{text[:-1].replace(chr(10), ',')}]"))


def read_aggregate(definition: Any, key: Key | None, text: str) -> Value:
    """Return the value that is the aggregate of a definition."""
    return read_members(definition.aggregate, key, text)


@dataclass(frozen=True)
class Kafka:
    """An operator on Kafka Streams.

    Attributes:
        topology: Takes a builder (of the Kafka witness) and a definition; returns the resulting KTable or KStream.
        refusals: Takes a definition and a history's records; returns the reasons why Kafka has no counterpart, if any.
        clocks: Takes a definition; returns an input for each of its clocks: a windowed aggregate has its own, a join
            one.
        moves_all_clocks: Whether a record on one of these inputs must move the other clocks too, as in the reference.
        is_windowed: Whether the result's keys are windowed.
        sent: Takes a definition and a record; returns the text that is sent as its value.
        is_text: Whether the result's values are texts already.
        read: Takes a definition, a key and the text of a value; returns the value.
        observed: The name of the model, in `witnesses.kafka.divergences`, of Kafka's observed behaviour; None if it
            agrees with the reference.
    """

    topology: Callable[[Any, Any], Any]
    refusals: Callable[[Any, Sequence[Record]], Iterable[str]] = lambda definition, records: ()
    clocks: Callable[[Any], tuple[str, ...]] = lambda definition: ()
    moves_all_clocks: bool = False
    is_windowed: bool = False
    sent: Callable[[Any, Record], str | None] = value_text
    is_text: bool = True
    read: Callable[[Any, Key | None, str], Value] = read_text
    observed: str | None = None


def refuse_dropped_null_keys(definition: Any, records: Sequence[Record]) -> Iterable[str]:
    """Refuse `null_key` drop for left and outer joins: Kafka's keep null keys."""
    if definition.null_key != "drop" or definition.join == "inner":
        return
    sides = ("left", "right") if definition.join == "outer" else ("left",)
    if any(record.key is None and record.value is not None and record.input in sides for record in records):
        yield f"kafka has no {definition.join} join that drops null keys: say null_key keep"
