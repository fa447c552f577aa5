"""Laws that the reference of every operator keeps on random histories: the fold, keys, and repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from notation import Machine, broken_prefix, histories_drawn, keys_that_meet, twice
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.clocks import CLOCKS
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.operator import OPERATORS, Behaviour, operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Dropped, Output, Record

Arrive = Callable[[Record], list[Output]]
BY_FOREIGN_KEY: list[dict[str, Any]] = [
    {"foreign_key": "fk", "join": join, "null_foreign_key": null, "protocol": protocol}
    for join in ("inner", "left")
    for null in ("ignore", "keep")
    for protocol in ("kip", "answer")
]
JOINS: list[dict[str, Any]] = [{"join": join} for join in ("inner", "left", "outer")]
GROUPS: list[dict[str, Any]] = [
    {"group_by": "group", "aggregate": aggregate, "field": "v"} for aggregate in ("count", "sum", "list")
]
SUMS: list[dict[str, Any]] = [
    {"size_ms": 10, "aggregate": "sum", "step_ms": 5, "grace_ms": 3, "emit": emit} for emit in ("update", "close")
]


def named(part: object) -> str:
    return " ".join(map(str, part.values())) if isinstance(part, dict) else str(part)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_behaviour_folds_to_the_meaning_and_the_law_finds_where_it_does_not(operator: str, seed: int) -> None:
    histories = histories_drawn(operator, 300, seed)
    for history in histories:
        assert broken_prefix(history) == []
    assert any(broken_prefix(history, mutant(operator, silent_about_the_last)) for history in histories)


def mutant(operator: str, arrive: Callable[[Arrive, Record], list[Output]]) -> Machine:
    """The behaviour of an operator that takes a record in another way."""

    def machine(definition: Any, clock: Any) -> Behaviour:
        behaviour: Any = operator_named(operator).behaviour(definition, clock)
        right = behaviour.arrive
        behaviour.arrive = lambda record: arrive(right, record)
        return behaviour  # type: ignore[no-any-return]

    return machine


def silent_about_the_last(right: Arrive, record: Record) -> list[Output]:
    emitted = right(record)
    return emitted if record.key is None else emitted[:-1]


def as_one_key(right: Arrive, record: Record) -> list[Output]:
    return [output._replace(key=record.key) for output in right(record._replace(key="k"))]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_null_key_is_dropped_on_each_input_and_moves_no_clock_unless_it_is_kept(operator: str) -> None:
    for options in draw_definitions(registration_of(operator), 1, 0):
        if options.get("null_key") != "keep":
            inputs = operator_named(operator).declare(options).inputs
            lines = [line for side in inputs for line in (Record(side, None, "any", 90), CUT)]
            for clock in CLOCKS:
                played = play(History(operator, options, tuple(lines), clock))
                assert [entry.output for entry in played.entries] == [Dropped(None, "null key")] * len(inputs)
                assert played.clock == 0


KEYED = [
    "session_windows",
    "window_aggregate",
    "windowed_table",
    "stream_stream_join",
    "stream_table_join",
    "range_aggregate",
    "table_table_join",
]


@pytest.mark.parametrize("operator", KEYED)
def test_keys_do_not_meet_and_the_law_finds_them_where_they_do(operator: str) -> None:
    drawn = histories_drawn(operator, 200, 2, null_keys=False)
    assert [history for history in drawn if keys_that_meet(history)] == []
    assert any(keys_that_meet(history, mutant(operator, as_one_key)) for history in drawn)


def of_table(history: History, times: int) -> Any:
    """The rows of a table, their values so many times as large."""
    result = play(history).result
    assert isinstance(result, dict)
    return {row: (value if times == 1 else value * times, at) for row, (value, at) in result.items()}


def of_stream(history: History, times: int) -> Any:
    """The results of a stream, each so many times."""
    result = play(history).result
    assert isinstance(result, list)
    return [change for change in result for _ in range(times)]


def of_counts(history: History, times: int) -> Any:
    """The counts of a changelog so many times as large, where each is the last of so many."""
    changes = [entry.output for entry in play(history).entries if isinstance(entry.output, Change)]
    counts = [change.value for change in changes]
    return [count * times for count in counts] if times > 1 else counts[1::2]


REPEATED: list[tuple[str, int, Callable[..., Any], int, list[dict[str, Any]]]] = [
    # operator, histories, what of them, and so many times of it once every record comes twice
    ("session_windows", 100, of_table, 2, [{"gap_ms": 10, "grace_ms": grace} for grace in (0, 1000)]),
    ("window_aggregate", 100, of_table, 2, [{"size": 10, "step": 5}]),
    ("windowed_table", 100, of_table, 2, SUMS),
    ("stream_stream_join", 100, of_stream, 4, [{"before_ms": 10, "after_ms": 10, "grace_ms": 5}]),
    ("stream_table_join", 100, of_stream, 2, JOINS[:2]),
    ("range_aggregate", 100, of_counts, 2, [{"preceding_ms": 5}]),
    ("table_table_join", 100, of_table, 1, JOINS),
    ("table_aggregate", 100, of_table, 1, GROUPS),
    ("foreign_key_join", 60, of_table, 1, BY_FOREIGN_KEY),
    ("one_to_many_join", 40, of_table, 1, BY_FOREIGN_KEY),
]


@pytest.mark.parametrize(
    ("operator", "count", "what", "times", "options"),
    [(*case[:4], options) for case in REPEATED for options in case[4]],
    ids=lambda part: getattr(part, "__name__", None) or named(part),
)
def test_a_record_that_comes_twice_counts_twice_in_a_stream_and_changes_no_row_of_a_table(
    operator: str, count: int, what: Callable[..., Any], times: int, options: dict[str, Any]
) -> None:
    for history in histories_drawn(operator, count, 3, options=options, null_keys=operator != "range_aggregate"):
        assert what(twice(history), 1) == what(history, times), history.to_text()
