from __future__ import annotations

from typing import Any

import pytest
from notation import changelog, histories_drawn, history_of, play, rows_of, steps
from streamproof.reference.one_to_many_join import combined

JOIN = "one_to_many_join"


@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_row_without_reference_is_silently_left_out(join: str) -> None:
    # "Missing reference to A"
    assert changelog("R r=x L k=a|null", JOIN, join=join) == ""


# Rules, with timestamps: arrivals at 0, 1, 2 …

INNER = {
    "a row without partner": [("L k=a|r", "-"), ("L k=b|r", "-"), ("L k=∅", "-")],
    "the partner comes, changes and goes": [
        ("L k=a|r", "-"),
        ("R r=x", '["r", "k"]=(a|r,x)@1'),
        ("R r=y", '["r", "k"]=(a|r,y)@2'),
        ("R r=∅", '["r", "k"]=∅@3'),
        ("R r=∅", '["r", "k"]=∅@4'),
    ],
    "the row moves": [
        ("R r=x", "-"),
        ("R s=y", "-"),
        ("L k=a|r", '["r", "k"]=(a|r,x)@2'),
        ("L k=a|s", '["r", "k"]=∅@3 ["s", "k"]=(a|s,y)@3'),
        ("R r=z", "-"),
    ],
    "the row moves to where nothing is": [
        ("R r=x", "-"),
        ("L k=a|r", '["r", "k"]=(a|r,x)@1'),
        ("L k=a|s", '["r", "k"]=∅@2'),
    ],
    "the row loses its key": [
        ("R r=x", "-"),
        ("L k=a|r", '["r", "k"]=(a|r,x)@1'),
        ("L k=a|null", '["r", "k"]=∅@2'),
        ("L k=∅", "-"),
    ],
    "the row goes": [("R r=x", "-"), ("L k=a|r", '["r", "k"]=(a|r,x)@1'), ("L k=∅", '["r", "k"]=∅@2'), ("L k=∅", "-")],
}
LEFT = {
    "a row without partner": [
        ("L k=a|r", '["r", "k"]=(a|r,null)@0'),
        ("L k=b|r", '["r", "k"]=(b|r,null)@1'),
        ("L k=∅", '["r", "k"]=∅@2'),
        ("L k=∅", "-"),
    ],
    "the partner comes and goes": [
        ("L k=a|r", '["r", "k"]=(a|r,null)@0'),
        ("R r=x", '["r", "k"]=(a|r,x)@1'),
        ("R r=∅", '["r", "k"]=(a|r,null)@2'),
    ],
    "the row moves": [("L k=a|r", '["r", "k"]=(a|r,null)@0'), ("L k=a|s", '["r", "k"]=∅@1 ["s", "k"]=(a|s,null)@1')],
}
KEPT = [
    ("L k=a|null", '[null, "k"]=(a|null,null)@0'),
    ("L k=b|null", '[null, "k"]=(b|null,null)@1'),
    ("L k=b|r", '[null, "k"]=∅@2 ["r", "k"]=(b|r,null)@2'),
    ("L k=b|null", '["r", "k"]=∅@3 [null, "k"]=(b|null,null)@3'),
    ("L k=∅", '[null, "k"]=∅@4'),
]
ANSWERED = [("L k=a|r", '["r", "k"]=∅@0'), ("L k=a|s", '["r", "k"]=∅@1 ["s", "k"]=∅@1'), ("L k=∅", '["s", "k"]=∅@2')]


@pytest.mark.parametrize("rows", INNER.values(), ids=INNER)
def test_the_inner_join_emits_what_changes(rows: list[tuple[str, str]]) -> None:
    rows_of(rows, JOIN)


@pytest.mark.parametrize("rows", LEFT.values(), ids=LEFT)
def test_the_left_join_emits_every_left_row(rows: list[tuple[str, str]]) -> None:
    rows_of(rows, JOIN, join="left")


def test_the_left_join_may_keep_rows_without_foreign_key() -> None:
    rows_of(KEPT, JOIN, join="left", null_foreign_key="keep")


def test_with_answer_a_left_change_is_emitted_also_where_nothing_joins() -> None:
    rows_of(ANSWERED, JOIN, protocol="answer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L k=a|r@50 R r=x@10", '["r", "k"]=(a|r,x)@50'),
        ("R r=x@50 L k=a|r@10", '["r", "k"]=(a|r,x)@50'),
        ("R r=x@10 L k=a|r@50", '["r", "k"]=(a|r,x)@50'),
    ],
)
def test_a_result_is_stamped_with_the_later_of_both_rows(text: str, expected: str) -> None:
    assert steps(text, JOIN)[-1] == expected


def test_a_scan_finds_the_rows_of_one_key_in_their_order() -> None:
    text = "L b=1|r a=2|r B=3|r é=4|r c=5|r1 R r=x@9"
    assert steps(text, JOIN)[-1] == " ".join(
        f'["r", "{key}"]=({value}|r,x)@9' for key, value in [("B", 3), ("a", 2), ("b", 1), ("é", 4)]
    )


@pytest.mark.parametrize(
    ("text", "emitted"),
    [
        ("L 1x=v|r x=v|r1 R r=X@9", '["r", "1x"]=(v|r,X)@9'),
        ("L 1x=v|r x=v|r1 R r1=X@9", '["r1", "x"]=(v|r1,X)@9'),
    ],
)
def test_a_scan_finds_no_key_of_which_its_own_is_a_prefix(text: str, emitted: str) -> None:
    assert steps(text, JOIN)[-1] == emitted


@pytest.mark.parametrize(
    ("one", "other"), [(("r", "1x"), ("r1", "x")), (('a", "b', "c"), ("a", 'b", "c')), ((None, "k"), ("null", "k"))]
)
def test_two_pairs_of_keys_never_share_a_combined_key(one: tuple[Any, str], other: tuple[Any, str]) -> None:
    assert combined(*one) != combined(*other)


# Laws.


@pytest.mark.parametrize("join", ["inner", "left"])
def test_it_holds_the_pairs_of_the_foreign_key_join_under_both_keys(join: str) -> None:
    for history in histories_drawn(JOIN, 100, 4, options={"foreign_key": "fk", "join": join}):
        other = play(history_of("", "foreign_key_join", join=join).with_lines(history.lines)).result
        mine = play(history).result
        assert isinstance(other, dict)
        assert isinstance(mine, dict)
        by_key = {(combined(value[0]["fk"], key or ""), None): value for (key, _), (value, _) in other.items()}
        assert {row: value for row, (value, _) in mine.items()} == by_key
