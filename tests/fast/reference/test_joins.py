from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import product
from typing import Any

import pytest
from notation import changelog, history_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record
from streamproof.reference.definitions.declarations import Definition
from streamproof.reference.definitions.joins import (
    MATRIX,
    ForeignKeyJoin,
    OneToManyJoin,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    require_join,
)
from streamproof.reference.definitions.windows import WindowedTable

KINDS = ("KStream", "KTable", "WTable")
JOINS = ("inner", "left", "outer")

# The matrix of Kafka Streams Join Semantics, row by row; the inner stream-table join came later (KIP-77).

BOUNDS: dict[str, Any] = {"before_ms": 5, "after_ms": 5}
SIZE: dict[str, Any] = {"size_ms": 10}
LOOKED: dict[str, Any] = {**SIZE, "window_start": "start"}
ALLOWED: dict[tuple[str, str], tuple[str, dict[str, Any], dict[str, str], str]] = {
    # primary, secondary: operator, options, a history and what comes out for each join, the kind of the result
    ("KStream", "KStream"): (
        "stream_stream_join",
        BOUNDS,
        {"inner": "k=(a,b)@1", "left": "k=(a,null)@0", "outer": "k=(a,null)@0 k=(a,b)@1"},
        "L k=a R k=b",
    ),
    ("KStream", "KTable"): ("stream_table_join", {}, {"inner": "k=(b,a)@1", "left": "k=(b,a)@1"}, "R k=a L k=b"),
    ("KStream", "WTable"): (
        "windowed_table",
        {**LOOKED, "with": "stream_lookup"},
        {"left": "k=(a:0,1)@1"},
        "E k=1 R k=a:0",
    ),
    ("KTable", "KTable"): (
        "table_table_join",
        {},
        {"inner": "k=(a,b)@1", "left": "k=(a,null)@0 k=(a,b)@1", "outer": "k=(a,null)@0 k=(a,b)@1"},
        "L k=a R k=b",
    ),
    ("KTable", "WTable"): (
        "windowed_table",
        {**LOOKED, "with": "table_lookup"},
        {"left": "k=(a:0,1)@1 k=(a:0,2)@2"},
        "E k=1 R k=a:0 E k=1",
    ),
    ("WTable", "KTable"): (
        "windowed_table",
        {**SIZE, "with": "table"},
        {"left": "k[0,10]=(1,null)@0 k[0,10]=(1,x)@1"},
        "E k=1 R k=x",
    ),
    ("WTable", "WTable"): (
        "windowed_table",
        {**SIZE, "with": "windowed_table"},
        {
            "inner": "k[0,10]=(1,1)@1",
            "left": "k[0,10]=(1,null)@0 k[0,10]=(1,1)@1",
            "outer": "k[0,10]=(1,null)@0 k[0,10]=(1,1)@1",
        },
        "E k=1 R k=1",
    ),
}
REFUSED: dict[tuple[str, str, str], str] = {
    ("KStream", "KTable", "outer"): (
        "there is no outer join of KStream and KTable: the stream alone drives its join with a KTable, "
        "whose rows are never emitted by themselves: use left or inner"
    ),
    ("KStream", "WTable", "inner"): (
        "there is no inner join of KStream and WTable: the stream alone drives its join with a WTable, "
        "whose rows are never emitted by themselves: use left"
    ),
    ("KStream", "WTable", "outer"): (
        "there is no outer join of KStream and WTable: the stream alone drives its join with a WTable, "
        "whose rows are never emitted by themselves: use left"
    ),
    **{
        (primary, secondary, join): (
            f"there is no {join} join of {primary} and {secondary}: a {primary} keeps its rows whether "
            f"the {secondary} has one or not: use left"
        )
        for primary, secondary in (("KTable", "WTable"), ("WTable", "KTable"))
        for join in ("inner", "outer")
    },
    **{
        (primary, "KStream", join): (
            f"there is no {join} join of {primary} and KStream: a {primary} can't look up a stream, "
            "which keeps no row for a key: make the stream the primary side"
        )
        for primary in ("KTable", "WTable")
        for join in JOINS
    },
}
WORKS = [(*sides, join) for sides, (_, _, joins, _) in ALLOWED.items() for join in joins]


def test_every_row_of_the_matrix_works_or_is_refused() -> None:
    assert sorted([*WORKS, *REFUSED]) == sorted(product(KINDS, KINDS, JOINS))
    assert {(*sides, join) for sides, joins in MATRIX.items() for join in joins} == set(WORKS)


@pytest.mark.parametrize(("primary", "secondary", "join"), WORKS)
def test_a_join_of_the_matrix_works(primary: str, secondary: str, join: str) -> None:
    operator, options, joins, text = ALLOWED[primary, secondary]
    require_join(primary, secondary, join)
    assert changelog(text, operator, join=join, **options) == joins[join]


@pytest.mark.parametrize(("primary", "secondary", "join"), WORKS)
def test_the_result_of_a_join_is_of_the_primary_sides_kind(primary: str, secondary: str, join: str) -> None:
    operator, options, _, text = ALLOWED[primary, secondary]
    played = play(history_of(text, operator, join=join, **options))
    windowed = {entry.output.window is not None for entry in played.entries if isinstance(entry.output, Change)}
    assert (played.definition.is_stream, windowed) == (primary == "KStream", {primary == "WTable"})


@pytest.mark.parametrize(("primary", "secondary", "join"), REFUSED)
def test_another_join_is_refused_with_a_sentence_that_says_why(primary: str, secondary: str, join: str) -> None:
    with pytest.raises(BadInput) as refused:
        require_join(primary, secondary, join)
    assert str(refused.value) == REFUSED[primary, secondary, join]


@pytest.mark.parametrize(
    ("sides", "join"),
    [(sides, join) for *sides, join in REFUSED if tuple(sides) in ALLOWED],
    ids=lambda given: str(given),
)
def test_it_is_refused_where_it_is_declared_too(sides: list[str], join: str) -> None:
    operator, options, _, _ = ALLOWED[sides[0], sides[1]]
    with pytest.raises(BadInput) as refused:
        operator_named(operator).declare({**options, "join": join})
    assert str(refused.value) == REFUSED[sides[0], sides[1], join]


@pytest.mark.parametrize(
    ("operator", "options"),
    [("stream_stream_join", BOUNDS), ("stream_table_join", {}), ("table_table_join", {})],
)
@pytest.mark.parametrize("join", ["cross", "", "Inner", None, 1, ["inner"]])
def test_an_unknown_join_is_refused(operator: str, options: dict[str, Any], join: Any) -> None:
    wanted = "join is null: give a value" if join is None else "unknown join .*: use inner, left or outer$"
    with pytest.raises(BadInput, match=wanted):
        operator_named(operator).declare({**options, "join": join})


@pytest.mark.parametrize(
    ("operator", "options"),
    [("stream_stream_join", BOUNDS), ("table_table_join", {}), ("windowed_table", {**SIZE, "with": "windowed_table"})],
)
def test_a_right_join_is_refused_with_the_way_round(operator: str, options: dict[str, Any]) -> None:
    with pytest.raises(
        BadInput, match="unknown join 'right': use inner, left or outer; for a right join, swap the sides"
    ):
        operator_named(operator).declare({**options, "join": "right"})


def test_a_windowed_table_is_made_only_by_a_windowed_aggregate() -> None:
    # No operator takes a WTable as an input: its own are streams of events, or a stream or table of its other side.
    assert [WindowedTable(10).inputs, WindowedTable(10, with_="table").inputs] == [("events",), ("events", "right")]


# Stream-stream joins.


@pytest.mark.parametrize("missing", ["before_ms", "after_ms"])
def test_a_join_without_a_bound_is_refused_where_it_is_declared(missing: str) -> None:
    message = (
        f"{missing} is missing: an unbounded stream-stream join is refused, because its predicate must include "
        "timestamps from both streams; give before_ms and after_ms"
    )
    bounds = {name: bound for name, bound in BOUNDS.items() if name != missing}
    with pytest.raises(BadInput) as refused:
        StreamStreamJoin(**bounds)
    assert str(refused.value) == message


@pytest.mark.parametrize("name", ["before_ms", "after_ms", "grace_ms"])
def test_a_bound_or_grace_cannot_be_negative(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} is -1: it can't be negative; use 0 for none"):
        StreamStreamJoin(**{**BOUNDS, name: -1})


@pytest.mark.parametrize("name", ["before_ms", "after_ms", "grace_ms"])
@pytest.mark.parametrize("value", [1.5, "10", True, [1]])
def test_a_bound_or_grace_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"{name} is .*: give a whole number of milliseconds"):
        StreamStreamJoin(**{**BOUNDS, name: value})


@pytest.mark.parametrize(("join", "emit"), [("inner", "arrival"), ("left", "arrival"), ("outer", "eager")])
def test_the_default_of_emit_is_that_of_the_documents(join: Any, emit: str) -> None:
    assert StreamStreamJoin(5, 5, join).emit == emit


def test_an_outer_join_cannot_answer_on_the_left_records_arrival_alone() -> None:
    with pytest.raises(BadInput, match="emit is 'arrival', but both sides drive an outer join: use eager or close"):
        StreamStreamJoin(5, 5, "outer", emit="arrival")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "final"}, "emit is 'final': use arrival, eager or close"),
        ({"null_key": "ignore"}, "null_key is 'ignore': use drop or keep"),
        ({"null_key": None}, "null_key is null: give a value, or leave it out"),
    ],
)
def test_an_option_of_a_stream_stream_join_takes_its_values_alone(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        operator_named("stream_stream_join").declare({**BOUNDS, **options})


@pytest.mark.parametrize(("side", "last"), [("left", 24), ("right", 22)])
def test_a_row_is_open_until_the_clock_is_past_its_reach_and_grace(side: str, last: int) -> None:
    join = StreamStreamJoin(before_ms=5, after_ms=7, grace_ms=7)
    assert [join.is_open(side, 10, clock) for clock in (last, last + 1)] == [True, False]


def test_the_bounds_are_around_the_left_record() -> None:
    join = StreamStreamJoin(before_ms=2, after_ms=3)
    assert [right for right in range(20) if join.within(10, right)] == [8, 9, 10, 11, 12, 13]


# Joins by foreign key.

BY_FOREIGN_KEY: list[type[OneToManyJoin]] = [OneToManyJoin, ForeignKeyJoin]


@pytest.mark.parametrize("join", BY_FOREIGN_KEY)
@pytest.mark.parametrize("kind", ["outer", "right"])
def test_a_join_by_foreign_key_is_inner_or_left(join: type[OneToManyJoin], kind: Any) -> None:
    with pytest.raises(BadInput, match=f"there is no {kind} join by foreign key: a right row .*; use inner or left"):
        join("fk", kind)


@pytest.mark.parametrize("join", BY_FOREIGN_KEY)
@pytest.mark.parametrize("kind", ["cross", None, ["left"]])
def test_an_unknown_join_by_foreign_key_is_refused(join: type[OneToManyJoin], kind: Any) -> None:
    with pytest.raises(BadInput, match=r"unknown join .*: use inner or left"):
        join("fk", kind)


@pytest.mark.parametrize("join", BY_FOREIGN_KEY)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"foreign_key": 1}, "foreign_key is 1: give the name of a field of the left value object"),
        ({"foreign_key": "fk", "null_foreign_key": "drop"}, "null_foreign_key is 'drop': use ignore or keep"),
        ({"foreign_key": "fk", "protocol": "paxos"}, "protocol is 'paxos': use kip or answer"),
    ],
)
def test_an_option_of_a_join_by_foreign_key_takes_its_values_alone(
    join: type[OneToManyJoin], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        join(**options)


def test_the_delivery_is_immediate_or_manual() -> None:
    with pytest.raises(BadInput, match="delivery is 'async': use immediate or manual"):
        ForeignKeyJoin("fk", delivery="async")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["foreign_key_join", "one_to_many_join"])
def test_a_join_by_foreign_key_needs_the_field(name: str) -> None:
    with pytest.raises(
        BadInput, match=f'{name} needs the option foreign_key: the field .* such as "foreign_key": "art'
    ):
        operator_named(name).declare({})


def test_a_one_to_many_join_has_no_delivery() -> None:
    with pytest.raises(
        BadInput, match="one_to_many_join has no option 'delivery': it takes foreign_key, join, null_fo"
    ):
        operator_named("one_to_many_join").declare({"foreign_key": "fk", "delivery": "manual"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"v": 1}, r"the value {'v': 1} has no field 'fk': the foreign key is read from it; use null for none"),
        ("r1", "the value 'r1' is no object: the foreign key is read from its field 'fk'"),
        ([1], r"the value \[1\] is no object: the foreign key is read from its field 'fk'"),
        ({"fk": 1}, "the field 'fk' holds 1, which is no string: the foreign key is a string, or null for none"),
        ({"fk": ["r1"]}, "the field 'fk' holds .*, which is no string"),
    ],
)
@pytest.mark.parametrize("join", BY_FOREIGN_KEY)
def test_a_left_value_without_foreign_key_is_refused(join: type[OneToManyJoin], value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        join("fk").check(Record("left", "k", value, 0))


@pytest.mark.parametrize("join", BY_FOREIGN_KEY)
@pytest.mark.parametrize(
    "record",
    [
        Record("right", "r", "any value", 0),
        Record("left", "k", None, 0),
        Record("left", None, "any value", 0),
        Record("left", "k", {"fk": None}, 0),
        Record("left", "k", {"fk": ""}, 0),
    ],
)
def test_other_records_may_hold_anything(join: type[OneToManyJoin], record: Record) -> None:
    join("fk").check(record)


# All of them.


@pytest.mark.parametrize(
    ("definition", "stream"),
    [
        (StreamStreamJoin(5, 5), True),
        (StreamTableJoin(), True),
        (TableTableJoin(), False),
        (OneToManyJoin("fk"), False),
        (ForeignKeyJoin("fk"), False),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_join_has_two_inputs_and_a_stream_is_joined_to_a_stream(definition: Definition, stream: bool) -> None:
    assert (definition.inputs, definition.is_stream, definition.unordered) == (("left", "right"), stream, False)


def test_a_declaration_does_not_change() -> None:
    join = TableTableJoin()
    with pytest.raises(FrozenInstanceError):
        join.join = "left"  # type: ignore[misc]
