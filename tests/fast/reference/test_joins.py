from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from notation import history_of, options_of, shown
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.records import Record
from streamproof.reference.definitions.joins import MATRIX, require_join

KINDS = ("KStream", "KTable", "WTable")
JOINS = ("inner", "left", "outer")

# The matrix of Kafka Streams Join Semantics, row by row; the inner stream-table join came later (KIP-77).

LOOKED: dict[str, Any] = {"size_ms": 10, "window_start": "start"}
ALLOWED: dict[tuple[str, str], tuple[str, dict[str, Any], str]] = {
    # primary, secondary: operator, options, the joins that there are
    ("KStream", "KStream"): ("stream_stream_join", {"before_ms": 5, "after_ms": 5}, "inner left outer"),
    ("KStream", "KTable"): ("stream_table_join", {}, "inner left"),
    ("KStream", "WTable"): ("windowed_table", {**LOOKED, "with": "stream_lookup"}, "left"),
    ("KTable", "KTable"): ("table_table_join", {}, "inner left outer"),
    ("KTable", "WTable"): ("windowed_table", {**LOOKED, "with": "table_lookup"}, "left"),
    ("WTable", "KTable"): ("windowed_table", {"size_ms": 10, "with": "table"}, "left"),
    ("WTable", "WTable"): ("windowed_table", {"size_ms": 10, "with": "windowed_table"}, "inner left outer"),
}
REFUSED: dict[tuple[str, str, str], str] = {
    ("KStream", "KTable", "outer"): (
        "there is no outer join of KStream and KTable: the stream alone drives its join with a KTable, "
        "whose rows never emit by themselves: use left or inner"
    ),
    ("KStream", "WTable", "inner"): (
        "there is no inner join of KStream and WTable: the stream alone drives its join with a WTable, "
        "whose rows never emit by themselves: use left"
    ),
    ("KStream", "WTable", "outer"): (
        "there is no outer join of KStream and WTable: the stream alone drives its join with a WTable, "
        "whose rows never emit by themselves: use left"
    ),
    **{
        (primary, secondary, join): (
            f"there is no {join} join of {primary} and {secondary}: a {primary} emits its rows "
            f"with or without a row of the {secondary}: use left"
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
WORKS = [(*sides, join) for sides, (_, _, joins) in ALLOWED.items() for join in joins.split()]


def test_every_row_of_the_matrix_works_or_is_refused() -> None:
    assert sorted([*WORKS, *REFUSED]) == sorted(product(KINDS, KINDS, JOINS))
    assert {(*sides, join) for sides, joins in MATRIX.items() for join in joins} == set(WORKS)
    for primary, secondary, join in WORKS:
        require_join(primary, secondary, join)
        operator, options, _ = ALLOWED[primary, secondary]
        assert operator_named(operator).declare({**options, "join": join}).join == join


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
    operator, options, _ = ALLOWED[sides[0], sides[1]]
    with pytest.raises(BadInput) as refused:
        operator_named(operator).declare({**options, "join": join})
    assert str(refused.value) == REFUSED[sides[0], sides[1], join]


@pytest.mark.parametrize("table_first", [True, False])
@pytest.mark.parametrize(
    ("operator", "side", "text", "expected"),
    [
        ("foreign_key_join", "left", "R r1=A L l=v|r1 l=∅", ["-", "l=((v|r1,A),v|r1)@1", "l=∅@2"]),
        ("table_table_join", "right", "L k=A R k=a", ["-", "k=((A,a),a)@1"]),
    ],
    ids=["10 KAFKA-9500", "25 KAFKA-6443"],
)
def test_a_result_joined_again_with_a_table_of_its_own_is_emitted_once(
    operator: str, side: str, text: str, expected: list[str], table_first: bool
) -> None:
    join, rejoin = (
        operator_named(name).behaviour(operator_named(name).declare(options_of(name, {"join": "inner"})), StreamTime())
        for name in (operator, "table_table_join")
    )
    emitted = []
    for record in history_of(text, operator).records:
        mirrored = [record._replace(input="right")] if record.input == side else []
        changes = [Record("left", one.key, one.value, one.timestamp) for one in join.arrive(record)]  # type: ignore[union-attr]
        own = [*mirrored, *changes] if table_first else [*changes, *mirrored]
        emitted.append(" ".join(shown(output) for one in own for output in rejoin.arrive(one)) or "-")
    assert emitted == expected
