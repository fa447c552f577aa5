"""What switches a law off, or makes it less strict, is read from options here, so that no misread definition does it.

A law asks an operator's registration and its definition: `by_clock` and `free_order` decide which histories vary, and
how; `bounds_state` and `tables` whether the state is read; `unordered` and `keeps_lists_in_order` whether lists are
compared in order; `is_stream` whether changes are folded; `answers_all` whether schedules are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.registration.registration import FreeOrder, Registration, registered

Options = Mapping[str, Any]
WINDOWS = ("session_windows", "window_aggregate", "stream_stream_join", "windowed_table")
DIMENSIONS = ("scd1", "scd2")
ON_TABLES = ("table_table_join", "table_aggregate", "foreign_key_join", "one_to_many_join")


def is_timed(operator: str, options: Options) -> bool:
    return operator in WINDOWS and options.get("unit") != "tuple"


def is_clocked(operator: str, options: Options) -> bool:
    is_timed_or_forgets = is_timed(operator, options) or options.get("tombstone_ms") is not None
    return is_timed_or_forgets or "every_ms" in (options.get("early") or {})


def is_list(operator: str, options: Options) -> bool:
    return options.get("aggregate") == "list"


def is_unordered(operator: str, options: Options) -> bool:
    match operator:
        case "session_windows" | "table_aggregate":
            return options.get("aggregate") == "list"
        case "window_aggregate":
            by_session = options.get("type") == "session" and options.get("storage") != "full"
            return by_session and options.get("aggregate") == "list"
    return False


def is_stream(operator: str, options: Options) -> bool:
    match operator:
        case "range_aggregate" | "stream_stream_join" | "stream_table_join":
            return True
        case "window_aggregate":
            return options.get("storage") == "full"
        case "windowed_table":
            return options.get("with") == "stream_lookup" or options.get("to_stream") == "window_in_value"
    return False


def bounds_state(operator: str, options: Options) -> bool:
    return is_timed(operator, options) and options.get("with", "windowed_table") in (None, "windowed_table")


def tables(operator: str, options: Options) -> tuple[str, ...]:
    match operator:
        case "table_table_join" | "foreign_key_join" | "one_to_many_join":
            return ("left", "right")
        case "stream_table_join":
            return ("right",)
        case "table_aggregate":
            return ("events",)
    return ("right",) if options.get("with") in ("table", "table_lookup") else ()


def free_order(operator: str, options: Options) -> FreeOrder:
    if is_timed(operator, options) or operator in DIMENSIONS:
        return FreeOrder.ANY
    return FreeOrder.INPUTS if operator in ON_TABLES else FreeOrder.KEYS


def answers_all(operator: str, options: Options) -> bool:
    asks_always = options.get("join") == "left" or options.get("protocol") == "answer"
    return operator == "foreign_key_join" and asks_always


Switch = tuple[Callable[[str, Options], object], Callable[[Registration, Options, Any], object]]
SWITCHES: dict[str, Switch] = {
    "by_clock": (is_clocked, lambda one, options, definition: one.by_clock(definition)),
    "free_order": (free_order, lambda one, options, definition: one.free_order(definition)),
    "bounds_state": (bounds_state, lambda one, options, definition: one.bounds_state(definition)),
    "tables": (tables, lambda one, options, definition: one.tables_stored(definition)),
    "unordered": (is_unordered, lambda one, options, definition: definition.unordered),
    "keeps_lists_in_order": (is_list, lambda one, options, definition: one.keeps_lists_in_order(definition)),
    "is_stream": (is_stream, lambda one, options, definition: definition.is_stream),
    "answers_all": (
        answers_all,
        lambda one, options, definition: one.protocol is not None and one.protocol.answers_all(options),
    ),
}


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("operator", registered())
def test_what_switches_a_law_off_is_as_the_options_say(operator: str, switch: str) -> None:
    registration = registered()[operator]
    by_options, as_asked = SWITCHES[switch]
    for options in draw_definitions(registration, 0, 0):
        asked = as_asked(registration, options, registration.declare(options))
        assert asked == by_options(operator, options), options
