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
    """Parse a value from JSON text."""
    return json.loads(text)


def read_members(aggregate: Aggregate, key: Key | None, text: str) -> Value:
    """Parse an aggregate from its text: a count, or the aggregate of its members, one member on each line.

    Kafka collects the members in order; Python aggregates the members, because method handles can't do arithmetic on
    JSON.
    """
    if text == "null" or aggregate.name == "count":
        return json.loads(text)
    return aggregate.of(key or "", json.loads(f"[{text[:-1].replace(chr(10), ',')}]"))


def read_aggregate(definition: Any, key: Key | None, text: str) -> Value:
    """Parse the value of a definition's aggregate from its text."""
    return read_members(definition.aggregate, key, text)


@dataclass(frozen=True)
class Kafka:
    """An operator on Kafka Streams.

    Attributes:
        topology: Returns the resulting KTable or KStream, given a builder (of the Kafka witness) and a definition.
        refusals: Returns the reasons why Kafka has no counterpart, if any, given a definition and a history's records.
        clocks: Returns one input for each of Kafka's clocks, given a definition: each windowed aggregate has a clock of
            its own, and a join has one.
        moves_all_clocks: Whether a record on one of these inputs must also move the other clocks, as in the reference.
        is_windowed: Whether the result's keys are windowed.
        sent: Returns the text that is sent as a record's value, given a definition and the record.
        is_text: Whether the result's values are already texts.
        read: Returns a value, given a definition, the key, and the value's text.
        observed: The name of the model in `witnesses.kafka.divergences` that describes how Kafka differs from the
            reference; None if Kafka agrees.
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
    """Refuse `null_key` drop for left and outer joins: Kafka's joins keep null keys."""
    if definition.null_key != "drop" or definition.join == "inner":
        return
    sides = ("left", "right") if definition.join == "outer" else ("left",)
    if any(record.key is None and record.value is not None and record.input in sides for record in records):
        yield f"kafka has no {definition.join} join that drops null keys: use null_key keep"
