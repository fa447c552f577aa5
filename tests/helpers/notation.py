"""Histories and changelogs as one writes them on a blackboard, and random ones for the laws of the reference.

`L`, `R` and `E` say on which input the records after them come (`left`, `right`, `events`). `k=v@5` is a record, `-` no
key, `∅` a tombstone; without `@` the n-th record comes at n ms. `v|r1` is the value `{"v": "v", "fk": "r1"}`, `v/g` has
the group g, `v:20` the start of a window. `~5` is a clock advance, `|` a cut, `>r1` delivers a subscription, `<r1/l` a
response.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, Line
from streamproof.reference.core.operator import Behaviour, collect, operator_named
from streamproof.reference.core.play import Played, play
from streamproof.reference.core.records import Bag, Change, Dropped, Output, Record, Table

SIDES = {"L": "left", "R": "right", "E": "events"}
FIELDS = {"|": "fk", "/": "group", ":": "start"}
USUAL: dict[str, dict[str, Any]] = {
    "foreign_key_join": {"foreign_key": "fk"},
    "one_to_many_join": {"foreign_key": "fk"},
    "session_windows": {"gap_ms": 10},
    "table_aggregate": {"group_by": "group"},
}
Machine = Callable[[Any, Any], Behaviour]


def options_of(operator: str, options: dict[str, Any]) -> dict[str, Any]:
    return {**USUAL.get(operator, {}), **{name.removesuffix("_"): value for name, value in options.items()}}


def value_of(text: str) -> Any:
    if text in ("∅", "null"):
        return None
    for mark, field in FIELDS.items():
        if mark in text:
            value, other = text.split(mark)
            named = None if other == "null" else int(other) if field == "start" else other
            return {"v": value_of(value), field: named}
    return int(text) if text.lstrip("-").isdigit() else text


def lines_of(text: str, side: str = "events") -> list[Line]:
    lines: list[Line] = []
    records = 0
    for word in text.split():
        if word in SIDES:
            side = SIDES[word]
        elif word == "|":
            lines.append(CUT)
        elif word.startswith("~"):
            lines.append(ClockAdvance(int(word[1:])))
        elif word.startswith(">"):
            lines.append(Delivery("subscription", word[1:], None))
        elif word.startswith("<"):
            lines.append(Delivery("response", *word[1:].split("/")))
        else:
            who, _, timestamp = word.partition("@")
            key, _, value = who.partition("=")
            at = int(timestamp) if timestamp else records
            lines.append(Record(side, None if key == "-" else key, value_of(value or "1"), at))
            records += 1
    return lines


def history_of(text: str, operator: str, clock: str = "stream_time", **options: Any) -> History:
    declared = options_of(operator, options)
    side = operator_named(operator).declare(declared).inputs[0]
    return History(operator, declared, tuple(lines_of(text, side)), clock)


def shown_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"({','.join(map(shown_value, value))})"
    if isinstance(value, dict):
        for mark, field in FIELDS.items():
            if set(value) == {"v", field}:
                return f"{shown_value(value['v'])}{mark}{shown_value(value[field])}"
    return str(value)


def shown(output: Output) -> str:
    if isinstance(output, Dropped):
        return f"{output.key or '-'}!{output.reason}"
    window = "" if output.window is None else "[{},{}]".format(*output.window)
    value = "∅" if output.value is None else shown_value(output.value)
    return f"{output.key or '-'}{window}={value}@{output.timestamp}"


def steps_of(played: Played, history: History) -> list[str]:
    emitted: list[list[str]] = [[] for line in history.lines if line != CUT]
    for entry in played.entries:
        emitted[entry.arrival].append(shown(entry.output))
    return [" ".join(outputs) or "-" for outputs in emitted]


def steps(text: str, operator: str, machine: Machine | None = None, **options: Any) -> list[str]:
    """What each arrival sets off, `-` where nothing."""
    history = history_of(text, operator, **options)
    return steps_of(play(history, machine), history)


def changelog(text: str, operator: str, machine: Machine | None = None, **options: Any) -> str:
    played = play(history_of(text, operator, **options), machine)
    return " ".join(shown(entry.output) for entry in played.entries)


def rows_of(rows: Iterable[tuple[str, str]], operator: str, **options: Any) -> None:
    """Asserts a table of facts: an arrival a row, with what it sets off."""
    rows = list(rows)
    emitted = steps(" ".join(arrival for arrival, _ in rows), operator, **options)
    assert list(zip([arrival for arrival, _ in rows], emitted, strict=True)) == rows


def result_of(text: str, operator: str, machine: Machine | None = None, **options: Any) -> Table | Bag:
    return play(history_of(text, operator, **options), machine).result


def values_of(result: Table | Bag) -> dict[Any, Any]:
    assert isinstance(result, dict)
    return {row: value for row, (value, _) in result.items()}


# Random histories.


def options_drawn(draw: random.Random, operator: str) -> dict[str, Any]:
    """Options of an operator, from all that there are."""
    size = draw.choice([1, 5, 10])
    step = draw.choice([step for step in (1, 3, 5, 10) if step <= size])
    grace = draw.choice([0, 3, 20])
    match operator:
        case "session_windows":
            named = {"emit": draw.choice(["update", "close"]), "late": draw.choice(["merged", "own"])}
            kept = {"retention_ms": size + grace + draw.choice([0, 1, 1000])}
            return {"gap_ms": size, "grace_ms": grace, "aggregate": "list", **named, **kept}
        case "window_aggregate":
            early = draw.choice([None, {"every_tuples": draw.randint(1, 3)}, {"every_ms": draw.choice([1, 4, 10])}])
            late = draw.choice([{}, {"retention_ms": grace}, {"retention_ms": grace + 5, "late": "update"}])
            kind = draw.choice(
                [
                    {"size": size, "step": step},
                    {"size": draw.randint(1, 4), "unit": "tuple", "step": 1},
                    {"size": draw.randint(1, 4), "unit": "tuple"},
                    {"type": "session", "size": size},
                ]
            )
            aggregate = draw.choice(["count", "sum", "min", "max", "list", "average"])
            return {
                **kind,
                **late,
                "early": early,
                "aggregate": aggregate,
                "storage": draw.choice(["aggregate", "full"]),
            }
        case "range_aggregate":
            return {"preceding_ms": size, "aggregate": draw.choice(["count", "sum", "min", "list", "average"])}
        case "stream_stream_join":
            join = draw.choice(["inner", "left", "outer"])
            emit = draw.choice(["eager", "close", *(["arrival"] if join == "left" else [])])
            bounds = {"before_ms": draw.choice([0, 2, 10]), "after_ms": draw.choice([0, 3, 10])}
            keep = draw.choice(["drop", "keep"])
            return {**bounds, "join": join, "emit": emit, "grace_ms": grace, "null_key": keep}
        case "stream_table_join":
            return {"join": draw.choice(["left", "inner"]), "null_key": draw.choice(["drop", "keep"])}
        case "table_table_join":
            return {"join": draw.choice(["inner", "left", "outer"])}
        case "table_aggregate":
            return {"group_by": "group", "aggregate": draw.choice(["count", "sum", "list"]), "field": "v"}
        case "windowed_table":
            given = draw.choice([None, "table", "windowed_table", "windowed_table", "stream_lookup", "table_lookup"])
            options: dict[str, Any] = {"size_ms": size, "step_ms": step, "grace_ms": grace, "with": given}
            options |= {"emit": draw.choice(["update", "close"]), "aggregate": draw.choice(["count", "sum", "list"])}
            if given == "windowed_table":
                options |= {"join": draw.choice(["inner", "left", "outer"]), "shift_ms": step * draw.randint(-1, 2)}
            if given in ("stream_lookup", "table_lookup"):
                options["window_start"] = "start"
            else:
                options["to_stream"] = draw.choice([None, None, "window_in_key", "window_in_value"])
            return options
        case "foreign_key_join" | "one_to_many_join":
            options = {"foreign_key": "fk", "join": draw.choice(["inner", "left"])}
            options["null_foreign_key"] = draw.choice(["ignore", "keep"])
            return {**options, "protocol": draw.choice(["kip", "answer"])}
    raise AssertionError(operator)


def value_drawn(draw: random.Random, operator: str, side: str, options: dict[str, Any], index: int) -> Any:
    tombstone = draw.random() < 0.25
    match operator, side:
        case (("foreign_key_join" | "one_to_many_join"), "left"):
            return None if tombstone else {"v": draw.randint(0, 2), "fk": draw.choice(["r1", "r1", "r2", None])}
        case "table_aggregate", _:
            return None if tombstone else {"v": draw.randint(0, 2), "group": draw.choice(["g", "g", "h", None])}
        case (("window_aggregate" | "range_aggregate"), _):
            return index
        case "windowed_table", "events":
            return index
        case "windowed_table", "right":
            if options["with"] == "windowed_table":
                return index
            start = options["step_ms"] * draw.randint(0, 3)
            looked = options["with"] in ("stream_lookup", "table_lookup")
            return None if tombstone else {"v": index, "start": draw.choice([start, start, None])} if looked else index
    return None if tombstone else f"{side[0]}{index}"


def history_drawn(
    draw: random.Random,
    operator: str,
    options: dict[str, Any] | None = None,
    arrivals: int = 8,
    clock_advances: bool = True,
    null_keys: bool = True,
    keys: Sequence[str] = ("a", "b"),
    clock: str | None = None,
) -> History:
    """A history with a cut after each arrival, and arrivals out of order."""
    options = options_drawn(draw, operator) if options is None else options
    inputs = operator_named(operator).declare(options).inputs
    by_foreign_key = operator in ("foreign_key_join", "one_to_many_join")
    lines: list[Line] = []
    for index in range(draw.randint(1, arrivals)):
        now = max(0, index * 3 + draw.randint(-12, 8))
        if clock_advances and draw.random() < 0.1:
            lines += [ClockAdvance(now), CUT]
        side = draw.choice(inputs)
        key: str | None = draw.choice(["r1", "r2"] if by_foreign_key and side == "right" else list(keys))
        if null_keys and draw.random() < 0.06:
            key = None
        lines += [Record(side, key, value_drawn(draw, operator, side, options, index), now), CUT]
    return History(operator, options, tuple(lines), clock or draw.choice(["stream_time", "stream_time", "batch"]))


def histories_drawn(operator: str, count: int, seed: int = 1, **given: Any) -> list[History]:
    draw = random.Random(f"{operator} {seed}")
    return [history_drawn(draw, operator, **given) for _ in range(count)]


# Laws, as functions from a history to what breaks them.


def canonical(result: Table | Bag, unordered: bool) -> Any:
    """A result in which lists that the meaning fixes up to order only are sorted."""
    if not unordered or not isinstance(result, dict):
        return result
    return {row: (sorted(value, key=repr), at) for row, (value, at) in result.items()}


def broken_prefix(history: History, machine: Machine | None = None) -> str | None:
    """Where the behaviour doesn't fold to the meaning, and how; None if it does at every prefix."""
    played = play(history, machine)
    definition = played.definition
    meaning = operator_named(history.operator).meaning
    outputs = [entry.output for entry in played.entries]
    for batch, (emitted, accepted, clock) in enumerate(played.steps):
        folded = canonical(collect(definition, outputs[:emitted]), definition.unordered)
        meant = canonical(meaning(definition, played.accepted[:accepted], clock), definition.unordered)
        if folded != meant:
            return f"{history.to_text()}\nbatch {batch}: behaviour {folded}\nmeaning {meant}"
    return None


def without_other_keys(history: History, key: str) -> History:
    """The same history for one key; the other keys leave clock advances, so that the clock is the same."""
    return history.with_lines(
        ClockAdvance(line.timestamp) if isinstance(line, Record) and line.key != key else line for line in history.lines
    )


def of_key(history: History, key: str, machine: Machine | None = None) -> list[tuple[int, Change]]:
    """What comes out for a key, with the arrival that sets it off; keys of windows in the key count too."""
    emitted = [(entry.arrival, entry.output) for entry in play(history, machine).entries]
    return [
        (at, output)
        for at, output in emitted
        if isinstance(output, Change) and output.key is not None and output.key.partition("@")[0] == key
    ]


def keys_that_meet(history: History, machine: Machine | None = None) -> list[str]:
    """The keys whose changelog is another one without the other keys."""
    keys = sorted({record.key for record in history.records if record.key is not None})
    return [
        key for key in keys if of_key(history, key, machine) != of_key(without_other_keys(history, key), key, machine)
    ]


def twice(history: History) -> History:
    """The same history, in which every record comes twice running."""
    return history.with_lines(
        again for line in history.lines for again in ([line, line] if isinstance(line, Record) else [line])
    )
