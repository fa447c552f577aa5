"""Small histories of all operators, drawn with definitions, clocks, keys and values that no profile has."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from mutant_player import Batch, Row, Stage, play_staged, play_stateful
from streamproof.properties.registration.key_space import prefixed_key
from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.records import Change, Dropped, Output, Record
from streamproof.reference.one_to_many_join import combined
from streamproof.spark_impl.foreign_key_stages import foreign_key_hops
from streamproof.spark_impl.one_to_many_join import one_to_many_hops
from streamproof.spark_impl.runtime.logic import DROPPED
from streamproof.spark_impl.table_aggregate import table_aggregate_hops

KEYS = ("a", "a", "a", "A", "b", "", " a", "a@5", "a@6", "\u00e9", "e\u0301")
WHOLE = (0, 1, 2, 9, 10, -1, -3, -10, 2**31, 2**53 + 1, -(2**53) - 1)
FRACTIONS = (0.0, 0.1, 0.25, 1.5, -0.75, -2.5, 10.0)
TEXTS = ("", "a", "A", "b", " a", "B", "\u00e9", "e\u0301")
MIXED = (0, 1, True, False, 1.0, 1.5, "", "a", " a", "A", "e\u0301", [], [0], -2, 2**31, 2**53 + 1)
NAMED = {
    "count": ((None,),),
    "sum": (WHOLE, FRACTIONS, (0, -1, 2**53 + 1)),
    "average": (WHOLE, FRACTIONS),
    "min": (WHOLE, FRACTIONS, TEXTS, ("B", "a"), (-1, -2, 1)),
    "max": (WHOLE, FRACTIONS, TEXTS, ("B", "a"), (-1, -2, 1, -10)),
    "list": ((*MIXED, None), (0, "", None, 1, True), WHOLE),
}
FOREIGN_KEY = "to"


class Drawn(NamedTuple):
    """A declaration, and batches of rows as a query has them.

    With typed columns values are JSON text, and keys have the prefix of their history; otherwise both are as drawn.
    """

    options: dict[str, Any]
    definition: Any
    batches: list[Batch]


def draw(operator: str, seed: int, as_text: bool) -> Drawn:
    """Return a history of an operator."""
    random = Random(f"{operator} {seed}")
    options = OPTIONS[operator](random)
    definition: Any = operator_named(operator).declare(options)
    sides = inputs_of(definition)
    keys = random.sample(KEYS, 3)
    groups = random.choice(
        (("x", "y", None), ("", "x", None), ("x", "X", " x", None), ("\u00e9", "e\u0301", "x@5", "x"))
    )
    value = _values(random, operator, definition, as_text, groups)
    null_keys = operator not in STAGED and random.random() < 0.2
    batches, clock, last = [], 0, 0
    for _ in range(random.randint(1, 5)):
        rows = []
        for _ in range(random.choice((0, 1, 2, 4, 8))):
            near = random.choice((clock, last, 0, clock - random.randint(0, 60)))
            last = max(0, near + random.choice((-10, -5, -1, 0, 0, 1, 2, 5, 9, 10, 11, random.randint(0, 20))))
            side = random.randrange(len(sides))
            known = [group for group in groups if group is not None] if operator in STAGED and side else keys
            key = None if null_keys and random.random() < 0.3 else in_query(random.choice(known), as_text)
            rows.append(Row(key, last, side, value(sides[side], last)))
        advance = random.choice((0, clock, clock + random.randint(1, 30), clock + random.randint(1, 9), clock + 200))
        clock = max([clock, advance, *(row.timestamp for row in rows)])
        batches.append(Batch(rows, advance))
    # Then the clock moves on in small steps, so that it stands at every edge.
    for _ in range(random.randint(0, 3)):
        clock += random.choice((1, 1, 2, 5, 10))
        batches.append(Batch([], clock))
    return Drawn(options, definition, batches)


def in_query(key: str, with_prefix: bool) -> str:
    """Return a key with the prefix of its history, or as it is."""
    return prefixed_key(7, key) if with_prefix else key


def inputs_of(definition: Any) -> tuple[str, ...]:
    """Return the names of a definition's inputs."""
    return getattr(definition, "inputs", ("events",))


def _values(
    random: Random, operator: str, definition: Any, as_text: bool, groups: tuple[str | None, ...]
) -> Callable[[str, int], Any]:
    aggregate = getattr(definition, "aggregate", None)
    full = getattr(definition, "storage", None) == "full"
    of_aggregate = random.choice(NAMED[aggregate.name]) if aggregate and not full else MIXED
    of_rows = random.choice((MIXED, (0, 1, True), ("", "a", "e\u0301", " a"), (2**53 + 1, -(2**40), 1.5), (False, 0)))
    texts = as_text and (aggregate is None or aggregate.name == "list" or full)

    def text(value: Any, wanted: bool = as_text) -> Any:
        return json.dumps(value, sort_keys=True) if wanted and value is not None else value

    def value(side: str, near: int) -> Any:
        if aggregate is not None and side != "right" and operator != "table_aggregate":
            member = random.choice(of_aggregate)
            return json.dumps(member) if texts and aggregate.name == "list" and not full else text(member, texts)
        if operator == "table_aggregate":
            group, member = random.choice(groups), random.choice(of_aggregate)
            member = json.dumps(member) if texts else member
            return None if group is None else (in_query(group, as_text), member)
        if operator == "windowed_table":
            if definition.with_ == "windowed_table":
                return text(random.choice(of_aggregate), texts)
            found = random.choice((*of_rows, None))
            start = random.choice((0, max(0, near - near % definition.step_ms), None)) if definition.looked_up else None
            held = {"start": start, "value": found} if definition.looked_up else found
            return None if found is None else {"value": text(held), "start": start}
        found = random.choice((*of_rows, None))
        if operator in STAGED and side == "left":
            foreign_key = random.choice(groups)
            to = None if foreign_key is None else in_query(foreign_key, as_text)
            return None if found is None else (text({FOREIGN_KEY: foreign_key, "value": found}), to)
        return text(found)

    return value


def _sessions(random: Random) -> dict[str, Any]:
    gap_ms, grace_ms = random.choice((1, 5, 10, 30)), random.choice((0, 1, 5, 40))
    longer = random.choice((0, 0, 1, 30))
    return {
        "gap_ms": gap_ms,
        "grace_ms": grace_ms,
        "retention_ms": gap_ms + grace_ms + longer,
        "aggregate": random.choice(("count", "sum", "min", "max", "list")),
        "emit": random.choice(("update", "close")),
        "late": random.choice(("merged", "own")),
    }


def _windows(random: Random) -> dict[str, Any]:
    kind, unit = random.choice((("fixed", "ms"), ("fixed", "tuple"), ("session", "ms")))
    size = random.choice((1, 2, 3, 4)) if unit == "tuple" else random.choice((1, 5, 10, 12))
    early = random.choice((None, {"every_tuples": random.choice((1, 2, 3))}, {"every_ms": random.choice((1, 5, 7))}))
    late = random.choice(("drop", "update"))
    return {
        "type": kind,
        "unit": unit,
        "size": size,
        **({} if kind == "session" else {"step": random.randint(1, size)}),
        "retention_ms": random.choice((1, 5, 15, 30)) if late == "update" else random.choice((0, 5)),
        "storage": random.choice(("aggregate", "aggregate", "full")),
        "aggregate": random.choice(("count", "sum", "min", "max", "list", "average")),
        "early": early,
        "late": late,
    }


def _windowed(random: Random) -> dict[str, Any]:
    size = random.choice((1, 5, 10))
    step = random.randint(1, size)
    joined = random.choice((None, "table", "windowed_table", "windowed_table", "stream_lookup", "table_lookup"))
    both = joined == "windowed_table"
    return {
        "size_ms": size,
        "step_ms": step,
        "grace_ms": random.choice((0, 1, 5, 25)),
        "aggregate": random.choice(("count", "sum", "min", "max", "list")),
        "emit": random.choice(("update", "close")),
        "with": joined,
        **({"join": random.choice(("inner", "left", "outer"))} if both else {}),
        **({"shift_ms": step * random.choice((-3, -1, 0, 1, 2))} if both else {}),
        **({"window_start": "start"} if joined in ("stream_lookup", "table_lookup") else {}),
    }


def _stream_stream(random: Random) -> dict[str, Any]:
    join = random.choice(("inner", "left", "outer"))
    return {
        "before_ms": random.choice((0, 1, 5, 10)),
        "after_ms": random.choice((0, 1, 5, 10)),
        "join": join,
        "grace_ms": random.choice((0, 1, 5, 40)),
        "emit": random.choice(("eager", "close") if join == "outer" else ("arrival", "eager", "close")),
        "null_key": random.choice(("drop", "keep")),
    }


def _by_foreign_key(random: Random) -> dict[str, Any]:
    return {
        "foreign_key": FOREIGN_KEY,
        "join": random.choice(("inner", "left")),
        "null_foreign_key": random.choice(("ignore", "keep")),
        "protocol": random.choice(("kip", "answer")),
    }


def _grouped(random: Random) -> dict[str, Any]:
    aggregate = random.choice(("count", "sum", "list"))
    return {"group_by": "group", "aggregate": aggregate, **({} if aggregate == "count" else {"field": "member"})}


OPTIONS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "session_windows": _sessions,
    "window_aggregate": _windows,
    "range_aggregate": lambda random: {
        "preceding_ms": random.choice((0, 1, 5, 10, 40)),
        "aggregate": random.choice((*NAMED,)),
    },
    "stream_stream_join": _stream_stream,
    "stream_table_join": lambda random: {
        "join": random.choice(("inner", "left")),
        "null_key": random.choice(("drop", "keep")),
    },
    "table_table_join": lambda random: {"join": random.choice(("inner", "left", "outer"))},
    "table_aggregate": _grouped,
    "windowed_table": _windowed,
    "foreign_key_join": _by_foreign_key,
    "one_to_many_join": _by_foreign_key,
}


def _of_row(row: Row) -> tuple[Any, ...]:
    return row.value or (None, None)


STAGED: dict[str, list[Stage]] = {
    "table_aggregate": [Stage("rows", [""], table_aggregate_hops(1)[0]), Stage("groups", ["messages"])],
    "foreign_key_join": [
        Stage("sender", ["left"], foreign_key_hops(1, 1)[0]),
        Stage("right", ["messages", "right"], foreign_key_hops(1, 1)[1]),
        Stage("receiver", ["messages"]),
    ],
    "one_to_many_join": [Stage("left", ["left"], one_to_many_hops(1)[0]), Stage("right", ["messages", "right"])],
}


def played(
    operator: str, make_logic: Callable[[Any], Any], drawn: Drawn
) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """Return what a logic emits of a history in each batch, and its states after each."""
    _, definition, batches = drawn

    def make() -> Any:
        return make_logic(definition)

    if operator in STAGED:
        return play_staged(make, STAGED[operator], batches, _of_row)
    return play_stateful(make, batches, inputs_of(definition))


def as_history(operator: str, drawn: Drawn) -> History:
    """Return a history whose values are as they were drawn as the reference takes it, under Spark's clock."""
    sides = inputs_of(drawn.definition)

    def value(row: Row) -> Any:
        if row.value is None:
            return None
        if operator == "table_aggregate":
            return {"group": row.value[0], "member": row.value[1]}
        if operator in STAGED and not row.side:
            return row.value[0]
        if operator == "windowed_table" and row.side and drawn.definition.with_ != "windowed_table":
            return row.value["value"]
        return row.value

    lines: list[Line] = []
    for number, batch in enumerate(drawn.batches):
        lines += [CUT] if number else []
        lines += [Record(sides[row.side], row.key, value(row), row.timestamp) for row in batch.rows]
        lines += [ClockAdvance(batch.advance)] if batch.advance else []
    return History(operator, drawn.options, tuple(lines), "batch")


def as_output(operator: str, change: dict[str, Any]) -> Output:
    """Return a change or a dropped row as the reference emits it."""
    key, value = change["key"], change["value"]
    if operator == "one_to_many_join" and change["change"] != DROPPED:
        key, value = combined(key, value[0]), value[1]
    if change["change"] == DROPPED:
        return Dropped(key, change["reason"])
    if isinstance(value, dict) and {*value} == {"left", "right"}:
        value = [value["left"], value["right"]]
    return Change(
        key, None if change["start"] is None else (change["start"], change["end"]), value, change["timestamp"]
    )
