from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from notation import changelog, history_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change
from streamproof.reference.definitions.joins import (
    MATRIX,
    require_join,
)

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


# Stream-stream joins.


# Joins by foreign key.


# All of them.
