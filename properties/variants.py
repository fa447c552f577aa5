"""Variants of an operator's histories, and how what comes out of a variant is related to what came out of its original.

A variant travels in its original's cohort. Spark's outcome of the one is held to Spark's outcome of the other, never to
the reference: so these laws believe nobody.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from ..reference.aggregates import Aggregate
from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.records import Change, Key, Record, Value, bag
from .cohorts import clock_schedule, with_heartbeats
from .laws import Variant, record_batches, variants_of
from .outcomes import Difference, Outcome, Result, canonical, differences, grouped_by_key, result_differences

TABLES = ("table_table_join", "table_aggregate", "foreign_key_join", "one_to_many_join")
BY_FOREIGN_KEY = ("foreign_key_join", "one_to_many_join")

PATIENT: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "window_aggregate": {
        "hopping, late update": {"retention_ms": 1000},
        "session, early": {"late": "update", "retention_ms": 1000},
    },
    "stream_stream_join": {"outer, close": {"grace_ms": 1000}},
    "windowed_table": {
        "close": {"grace_ms": 1000, "aggregate": "list"},
        "outer, shifted": {"grace_ms": 1000},
    },
}
"""Where time decides: the definitions whose result no order and no cut can change, once nothing is late.

By shape, with the options that differ from it. A join told at arrival or eagerly isn't one of them (who comes first is
told alone), nor is a look-up (it finds what is there by then).
"""


class Order(Enum):
    """Which records of a history may change places without effect, as a law says it.

    All, where nothing is late: a window or a pair doesn't ask who came first, and the final result stays. Those of
    different keys or inputs: of a table's rows the last to arrive stands, and the final values stay (a joined row is
    stamped by the side that came last). Those of different keys: a record is answered by what came before it, and each
    key's changes stay, one by one.
    """

    ANY = "when nothing is late"
    INPUTS = "between records of different keys or inputs"
    KEYS = "between records of different keys"


def order_of(operator: str, definition: Any) -> Order:
    """Say which records of a history may change places."""
    if operator in TABLES:
        return Order.INPUTS
    timeless = operator in ("stream_table_join", "range_aggregate") or getattr(definition, "unit", "ms") == "tuple"
    return Order.KEYS if timeless else Order.ANY


def is_timeless(operator: str, definition: Any) -> bool:
    """Whether the clock means nothing to an operator: no record is late, and nothing waits for the clock."""
    return order_of(operator, definition) is not Order.ANY


def laws_under(operator: str, definition: Any) -> tuple[str, ...]:
    """Name the laws of variants in which nothing is late.

    Windows of tuples have no law of repeats: a record more cuts all later windows elsewhere.
    """
    by_tuple = getattr(definition, "unit", "ms") == "tuple"
    return ("order", "cuts") if by_tuple else ("order", "cuts", "repeats")


@dataclass(frozen=True)
class Companion:
    """A variant that travels with its original.

    Attributes:
        original: The original.
        place: The original's place in the cohort.
        variant: The variant, and the law that relates the two.
        key: Of the law `keys`: the key (of a table aggregate, the group) whose changes are to stay.
    """

    original: History
    place: int
    variant: Variant
    key: Key | None = None

    @property
    def changed(self) -> bool:
        """Whether the variant isn't the original itself."""
        return self.variant.history.lines != self.original.lines


def without_other_keys(histories: Sequence[History], generator: random.Random) -> Iterator[Companion]:
    """Give for each history the variant that has nothing but what concerns one of its keys."""
    for place, history in enumerate(histories):
        keys = keys_told(history)
        if keys:
            key = generator.choice(keys)
            yield Companion(history, place, alone(history, key), key)


def changed_without_effect(histories: Sequence[History], generator: random.Random) -> Iterator[Companion]:
    """Give for each history, in which nothing can be late, its variants: reordered, cut elsewhere, repeated."""
    for place, history in enumerate(histories):
        definition = operator_named(history.operator).declare(history.options)
        line_of = _LINES[order_of(history.operator, definition)]
        for variant in variants_of(history, generator.shuffle, generator.randint, line_of):
            if variant.law in laws_under(history.operator, definition):
                yield Companion(history, place, variant)


_LINES: Mapping[Order, Callable[[Record], Hashable] | None] = {
    Order.ANY: None,
    Order.INPUTS: lambda record: (record.input, record.key),
    Order.KEYS: lambda record: record.key,
}


def parted(companion: Companion, original: Outcome, other: Outcome) -> list[Difference]:
    """Judge a companion: give where Spark's outcomes of the original and of the variant aren't related as they must be.

    Of each difference the left is what the original lets expect, and the right is what the variant gave.
    """
    definition = operator_named(companion.original.operator).declare(companion.original.options)
    name = companion.variant.history.name
    match companion.variant.law:
        case "keys":
            ours = [_told_for(outcome, companion, definition) for outcome in (original, other)]
            return differences(ours[0], ours[1])
        case "repeats":
            return _repeated(companion, definition, original, other)
        case law:
            return _moved(law, name, companion.original.operator, definition, original, other)


def keys_told(history: History) -> list[Key]:
    """Give the keys under which a history's records may be told, sorted; of a table aggregate, the groups."""
    if history.operator == "table_aggregate":
        groups = operator_named(history.operator).declare(history.options)
        found = {groups.group(record.value) for record in history.records}
    else:
        by_left = history.operator in BY_FOREIGN_KEY
        found = {record.key for record in history.records if not by_left or record.input == "left"}
    return sorted(key for key in found if key is not None)


def alone(history: History, key: Key) -> Variant:
    """Make the variant that has nothing but what concerns one key, under the same clock.

    By foreign key that is the left row and all right rows; of a table aggregate the changes that enter a group, stay in
    it, or leave it.
    """
    concerns = _of_group(history, key) if history.operator == "table_aggregate" else _of_key(history.operator, key)
    batches = [[record for record in batch if concerns(record)] for batch in record_batches(history)]
    lines = with_heartbeats(batches, clock_schedule(history))
    return Variant("keys", replace(history, lines=lines, name=f"{history.name}/keys"))


def _of_key(operator: str, key: Key) -> Callable[[Record], bool]:
    everyone = operator in BY_FOREIGN_KEY
    return lambda record: record.key == key or (everyone and record.input == "right")


def _of_group(history: History, group: Key) -> Callable[[Record], bool]:
    groups = operator_named(history.operator).declare(history.options)
    rows: dict[Key | None, Value] = {}

    def concerns(record: Record) -> bool:
        before, after = groups.group(rows.get(record.key)), groups.group(record.value)
        rows[record.key] = record.value
        return group in (before, after)

    return concerns


def _told_for(outcome: Outcome, companion: Companion, definition: Any) -> Outcome:
    """What an outcome tells for the companion's key."""
    key = companion.key

    def is_its(told: Key | None) -> bool:
        if told is None or key is None:
            return False
        if companion.original.operator == "one_to_many_join":
            return bool(json.loads(told)[1] == key)
        in_key = getattr(definition, "to_stream", None) == "window_in_key"
        return told == key or (in_key and told.startswith(f"{key}@"))

    return replace(outcome, entries=[entry for entry in outcome.entries if is_its(entry.output.key)])


def _moved(law: str, name: str, operator: str, definition: Any, original: Outcome, other: Outcome) -> list[Difference]:
    order = order_of(operator, definition)
    if order is Order.KEYS or (law == "cuts" and order is Order.INPUTS):
        return differences(_in_one_batch(original), _in_one_batch(other))
    unordered = definition.unordered or (law == "order" and _aggregates_lists(definition))
    results = [canonical(outcome.result, unordered) for outcome in (original, other)]
    if order is Order.INPUTS and operator != "table_aggregate":
        # Which side's change came last stamps a joined row.
        results = [_untimed(result) for result in results]
    return result_differences(name, None, results[0], results[1])


def _in_one_batch(outcome: Outcome) -> Outcome:
    """The outcome as if there were no cuts: each key's changes in order, whenever they were told."""
    return replace(outcome, entries=[entry._replace(batch=0) for entry in outcome.entries])


def _aggregates_lists(definition: Any) -> bool:
    return getattr(definition, "aggregate", None) is not None and definition.aggregate.ordered


def _untimed(result: Result) -> Result:
    assert isinstance(result, dict)
    return {row: (value, 0) for row, (value, _) in result.items()}


def _repeated(companion: Companion, definition: Any, once: Outcome, twice: Outcome) -> list[Difference]:
    """Judge a history whose every record comes twice in a row."""
    operator, name = companion.original.operator, companion.variant.history.name
    if operator == "range_aggregate":
        # The answer to a record's second coming sees everything twice.
        by = definition.aggregate
        answers = bag(change._replace(value=_doubled(by, change.value)) for change in _changes(once))
        seconds = [entry.output for of_key in grouped_by_key(twice.entries).values() for entry in of_key[1::2]]
        return result_differences(name, None, answers, bag(seconds))
    expected = once.result
    if isinstance(expected, list):
        expected = bag(change for change in expected for _ in range(_times(operator, change.value)))
    elif operator not in TABLES:
        expected = {row: (_each_doubled(definition, value), at) for row, (value, at) in expected.items()}
    ours, theirs = (canonical(result, definition.unordered) for result in (expected, twice.result))
    return result_differences(name, None, ours, theirs)


def _changes(outcome: Outcome) -> list[Change]:
    return [entry.output for entry in outcome.entries if isinstance(entry.output, Change)]


def _times(operator: str, value: Value) -> int:
    """How often a result comes when every record comes twice: a pair for either partner, everything else for one."""
    return 4 if operator == "stream_stream_join" and None not in value else 2


def _each_doubled(definition: Any, value: Value) -> Value:
    """A window's value when every record counts twice; of a join, on either side."""
    if getattr(definition, "with_", None) is None:
        return _doubled(definition.aggregate, value)
    return [None if side is None else _doubled(definition.aggregate, side) for side in value]


def _doubled(aggregate: Aggregate, value: Value) -> Value:
    match aggregate.name:
        case "count" | "sum":
            return 2 * value
        case "list":
            return [member for member in value for _ in range(2)]
    return value
