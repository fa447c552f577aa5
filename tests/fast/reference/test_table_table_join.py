from __future__ import annotations

import pytest
from notation import histories_drawn, rows_of, steps, values_of
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Key, Value

JOIN = "table_table_join"
JOINS = ("inner", "left", "outer")


# What Kafka Streams does (docs/facts.md), row by row: arrivals at 0, 1, 2 …

ROWS = [
    ("L k=l1", "-", "k=(l1,null)@0", "k=(l1,null)@0"),
    ("R k=r1", "k=(l1,r1)@1", "k=(l1,r1)@1", "k=(l1,r1)@1"),
    ("L k=∅", "k=∅@2", "k=∅@2", "k=(null,r1)@2"),
    ("L k=∅", "k=∅@3", "k=∅@3", "k=(null,r1)@3"),
    ("L k=l2", "k=(l2,r1)@4", "k=(l2,r1)@4", "k=(l2,r1)@4"),
    ("R k=∅", "k=∅@5", "k=(l2,null)@5", "k=(l2,null)@5"),
    ("R k=∅", "k=∅@6", "k=(l2,null)@6", "k=(l2,null)@6"),
    ("L k=∅", "-", "k=∅@7", "k=∅@7"),
    ("L k=∅", "-", "-", "-"),
    ("R k=r2", "-", "-", "k=(null,r2)@9"),
    ("R k=∅", "-", "-", "k=∅@10"),
]


@pytest.mark.parametrize("join", JOINS)
def test_the_changelog_is_that_of_kafka_streams(join: str) -> None:
    rows_of([(row[0], row[1 + JOINS.index(join)]) for row in ROWS], JOIN, join=join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L k=l@50 R k=r@10", "k=(l,r)@50"),
        ("L k=l@10 R k=r@50", "k=(l,r)@50"),
        ("L k=l@50 R k=r@10 L k=m@20", "k=(m,r)@20"),
        ("L k=l@10 R k=r@50 L k=m@20", "k=(m,r)@50"),
        ("L k=l@10 R k=r@50 L k=∅@20", "k=∅@50"),
        ("L k=l@50 R k=r@10 k=∅@20", "k=∅@50"),
    ],
)
def test_a_change_is_stamped_with_the_later_of_its_own_and_the_other_row(text: str, expected: str) -> None:
    assert steps(text, JOIN)[-1] == expected


# Bugs that shipped (docs/facts.md).


def test_a_row_that_was_sent_again_is_emitted_again() -> None:
    # 11 KAFKA-12508: state that survived a crash before the output did must not silence the replay
    assert steps("L k=A k=A", JOIN, join="left") == ["k=(A,null)@0", "k=(A,null)@1"]


# The law of the join of tables: join(f(T1), f(T2)) is f(join(T1, T2)), where f reads a stream as a table.


def table_of_stream(history: History, side: str) -> dict[Key, Value]:
    """Return of every key the last value, if it is no tombstone."""
    table = {one.key: one.value for one in history.records if one.input == side and one.key is not None}
    return {key: value for key, value in table.items() if value is not None}


@pytest.mark.parametrize("join", JOINS)
def test_the_join_of_the_tables_is_the_table_of_the_join(join: str) -> None:
    for history in histories_drawn(JOIN, 300, options={"join": join}):
        left, right = (table_of_stream(history, side) for side in ("left", "right"))
        keys = {"inner": left.keys() & right.keys(), "left": left.keys(), "outer": left.keys() | right.keys()}[join]
        joined = {(key, None): [left.get(key), right.get(key)] for key in keys}
        assert values_of(play(history).result) == joined, history.to_text()
