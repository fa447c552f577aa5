"""Histories and changelogs as one writes them on a blackboard, and random ones for the laws of the reference.

`L`, `R` and `E` say on which input the records after them come (`left`, `right`, `events`). `k=v@5` is a record, `-` no
key, `∅` a tombstone; without `@` the n-th record comes at n ms. `v|r1` is the value `{"v": "v", "fk": "r1"}`, `v/g` has
the group g, `v:20` the start of a window. `~5` is a clock advance, `|` a cut, `>r1` delivers a subscription, `<r1/l` a
response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import draw_schedule
from streamproof.properties.laws.folding import by_batch, folded_differences
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, Line
from streamproof.reference.core.operator import Behaviour, operator_named
from streamproof.reference.core.play import Played, play
from streamproof.reference.core.records import Bag, Dropped, Output, Record, Table

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


def histories_drawn(
    operator: str,
    count: int,
    seed: int = 1,
    options: dict[str, Any] | None = None,
    null_keys: bool = True,
    clock: str | None = None,
) -> list[History]:
    """Histories with a cut after each arrival, under some options or, if none are given, under drawn ones."""
    registration = registration_of(operator)
    chosen = draw_definitions(registration, 1, seed) if options is None else [options_of(operator, options)]
    found: list[History] = []
    for one in chosen:
        schedule = draw_schedule(operator, one, seed)
        settings = HistorySettings(operator, one, schedule, 8, ("a", "b"), null_keys=null_keys)
        for history in draw_histories(settings, max(1, count // len(chosen)), seed):
            lines = [(line, CUT) for line in history.lines if line != CUT]
            drawn = clock or ("stream_time", "stream_time", "batch")[len(found) % 3]
            found.append(replace(history.with_lines(chain.from_iterable(lines)), clock=drawn))
    return found


# Laws, as functions from a history to what breaks them.


def broken_prefix(history: History, machine: Machine | None = None) -> list[Difference]:
    """Where the behaviour doesn't fold to the meaning, and how; empty if it does at every prefix."""
    played = play(history, machine)
    return folded_differences(history, played, by_batch(played.entries, len(played.steps)))
