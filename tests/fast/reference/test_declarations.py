from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.records import Record
from streamproof.reference.definitions.declarations import (
    PYTHON_ONLY,
    Definition,
    declare,
    field_of,
    is_whole,
    not_negative,
    one_of,
    text_field,
    whole_milliseconds,
)


@dataclass(frozen=True)
class Sample(Definition):
    size: Any = field(metadata={"needed": 'how large it is, such as "size": 1'})
    with_: Any = None
    many: Any = field(default=0, metadata={"read": lambda text: text * 2, "give": "a number or two"})
    callback: Callable[[], None] | None = field(default=None, metadata=PYTHON_ONLY)


def test_options_become_fields() -> None:
    assert declare("sample", Sample, {"size": 3}) == Sample(3)


def test_an_option_named_like_one_of_pythons_words_is_written_without_its_underscore() -> None:
    assert declare("sample", Sample, {"size": 3, "with": "it"}) == Sample(3, "it")
    with pytest.raises(BadInput, match="sample has no option 'with_': it takes many, size, with"):
        declare("sample", Sample, {"size": 3, "with_": "it"})


def test_an_option_is_read_as_its_field_says() -> None:
    assert declare("sample", Sample, {"size": 3, "many": 2}).many == 4


def test_a_missing_option_is_named_with_what_it_is_and_an_example() -> None:
    with pytest.raises(BadInput, match=r'^sample needs the option size: how large it is, such as "size": 1$'):
        declare("sample", Sample, {})


def test_an_unknown_option_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadInput, match=r"^sample has no option 'sise': it takes many, size, with$"):
        declare("sample", Sample, {"sise": 3, "size": 3})


def test_an_option_that_only_python_can_give_is_none_of_a_history_file() -> None:
    with pytest.raises(BadInput, match="sample has no option 'callback'"):
        declare("sample", Sample, {"size": 3, "callback": None})


def test_null_is_no_value_but_where_it_is_the_default() -> None:
    assert declare("sample", Sample, {"size": 3, "with": None}) == Sample(3)
    with pytest.raises(BadInput, match=r"^many is null: give a number or two$"):
        declare("sample", Sample, {"size": 3, "many": None})


@pytest.mark.parametrize("value", [1, 0, -1, 10**20])
def test_whole_numbers_are_whole(value: int) -> None:
    assert is_whole(value)
    whole_milliseconds(Sample(value), "size")


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, [1]])
def test_nothing_else_is_whole(value: Any) -> None:
    assert not is_whole(value)
    with pytest.raises(BadInput, match=r"size is .*: give a whole number of milliseconds"):
        whole_milliseconds(Sample(value), "size")


def test_a_negative_duration_is_refused() -> None:
    not_negative(Sample(0), "size")
    with pytest.raises(BadInput, match="size is -1: it can't be negative; use 0 for none"):
        not_negative(Sample(-1), "size")


@pytest.mark.parametrize("value", ["one", "other", None])
def test_a_value_of_a_choice_is_taken(value: Any) -> None:
    one_of(Sample(value), "size", "one", "other", None)


@pytest.mark.parametrize("value", ["third", "", "One", 1, True, ["one"], {}])
def test_another_value_is_refused_with_those_that_there_are(value: Any) -> None:
    with pytest.raises(BadInput, match=r"size is .*: use one or other$"):
        one_of(Sample(value), "size", None, "one", "other")


def test_a_choice_is_named_by_the_options_own_name() -> None:
    with pytest.raises(BadInput, match=r"^with is 1: use one$"):
        one_of(Sample(3, 1), "with_", "one")


def test_a_field_of_an_object_is_read() -> None:
    assert field_of({"a": [1]}, "a", "it") == [1]
    assert text_field({"a": "x"}, "a", "it") == "x"
    assert text_field({"a": None}, "a", "it") is None


@pytest.mark.parametrize("value", ["x", 1, None, ["a"]])
def test_a_value_that_is_no_object_is_refused_with_how_to_write_it(value: Any) -> None:
    with pytest.raises(BadInput, match=r"is no object: the group is read from its field 'a': write {.a.: …}"):
        field_of(value, "a", "the group")


def test_an_object_without_the_field_is_refused() -> None:
    with pytest.raises(BadInput, match="has no field 'a': the group is read from it; use null for none"):
        field_of({"b": 1}, "a", "the group")


@pytest.mark.parametrize("value", [1, True, ["x"], {"x": 1}])
def test_a_field_that_holds_no_text_is_refused(value: Any) -> None:
    with pytest.raises(
        BadInput, match=r"the field 'a' holds .*, which is no string: the group is a string, or null for"
    ):
        text_field({"a": value}, "a", "the group")


def test_a_definition_takes_events_and_gives_a_table_unless_it_says_otherwise() -> None:
    plain = Definition()
    assert (plain.inputs, plain.is_stream, plain.unordered) == (("events",), False, False)
    plain.check(Record("events", "k", object(), 0))


# Every operator's options are refused alike.

NEEDED: dict[str, dict[str, Any]] = {
    "session_windows": {"gap_ms": 10},
    "window_aggregate": {"size": 10},
    "range_aggregate": {"preceding_ms": 10},
    "stream_stream_join": {"before_ms": 5, "after_ms": 5},
    "stream_table_join": {},
    "table_table_join": {},
    "table_aggregate": {"group_by": "group"},
    "windowed_table": {"size_ms": 10},
    "foreign_key_join": {"foreign_key": "fk"},
    "one_to_many_join": {"foreign_key": "fk"},
}


def test_every_operator_is_here() -> None:
    assert list(NEEDED) == list(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_declared_with_what_it_needs(name: str) -> None:
    definition = operator_named(name).declare(NEEDED[name])
    assert isinstance(definition, operator_named(name).definition)
    assert definition == operator_named(name).declare(dict(NEEDED[name]))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_no_option_that_it_does_not_know(name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name} has no option 'window': it takes .*"):
        operator_named(name).declare({**NEEDED[name], "window": 1})


@pytest.mark.parametrize(("name", "option"), [(name, option) for name in NEEDED for option in NEEDED[name]])
def test_an_operator_says_what_it_needs(name: str, option: str) -> None:
    options = {other: value for other, value in NEEDED[name].items() if other != option}
    with pytest.raises(BadInput, match=f"{option}"):
        operator_named(name).declare(options)


@pytest.mark.parametrize("name", OPERATORS)
def test_two_declarations_of_one_thing_are_equal_and_can_be_kept_in_a_set(name: str) -> None:
    assert len({operator_named(name).declare(NEEDED[name]) for _ in range(2)}) == 1


# The options of Samza's operators.

SAMZA: list[tuple[str, dict[str, Any], str]] = [
    ("window_aggregate", {}, 'window_aggregate needs the option size: how long a window is, such as "size": 10'),
    ("window_aggregate", {"size": 0}, "size is 0: give a whole number, 1 or more"),
    ("window_aggregate", {"size": -10}, "size is -10: give a whole number, 1 or more"),
    ("window_aggregate", {"size": 1.5}, "size is 1.5: give a whole number, 1 or more"),
    ("window_aggregate", {"size": True}, "size is True: give a whole number, 1 or more"),
    ("window_aggregate", {"size": 10, "step": 0}, "step is 0: give a whole number, 1 or more"),
    ("window_aggregate", {"size": 10, "step": 11}, r"step is 11, more than size \(10\): records between two windows"),
    ("window_aggregate", {"size": 10, "type": "sliding"}, "type is 'sliding': use fixed or session"),
    ("window_aggregate", {"size": 10, "unit": "s"}, "unit is 's': use ms or tuple"),
    ("window_aggregate", {"size": 10, "storage": "disk"}, "storage is 'disk': use aggregate or full"),
    ("window_aggregate", {"size": 10, "late": "keep"}, "late is 'keep': use drop or update"),
    (
        "window_aggregate",
        {"size": 10, "late": "update"},
        "late messages can't update windows that aren't kept: give re",
    ),
    ("window_aggregate", {"size": 10, "retention_ms": -1}, "retention_ms is -1: it can't be negative; use 0 for none"),
    ("window_aggregate", {"size": 10, "type": "session", "unit": "tuple"}, "a session has a gap in time, no number of"),
    ("window_aggregate", {"size": 10, "type": "session", "step": 5}, "a session has no step, because it begins at its"),
    (
        "window_aggregate",
        {"size": 10, "aggregate": "median"},
        "unknown aggregate 'median': use one of count, sum, min,",
    ),
    *[
        ("window_aggregate", {"size": 10, "early": early}, message)
        for early, message in [
            (5, r'early is 5: use {"every_tuples": n} or {"every_ms": n}, or leave it out'),
            ({}, "early is {}: use"),
            ({"every": 5}, "early is .*: use"),
            ({"every_ms": 5, "every_tuples": 5}, "early is .*: use"),
            ({"every_ms": 0}, "early has every_ms 0: give a whole number, 1 or more"),
            ({"every_tuples": 1.5}, "early has every_tuples 1.5: give a whole number, 1 or more"),
        ]
    ],
    ("range_aggregate", {}, 'range_aggregate needs the option preceding_ms: how far back .* such as "preceding_ms": 6'),
    ("range_aggregate", {"preceding_ms": -1}, "preceding_ms is -1: it can't be negative; use 0 for none"),
    ("range_aggregate", {"preceding_ms": "10 min"}, "preceding_ms is '10 min': give a whole number of milliseconds"),
    ("range_aggregate", {"preceding_ms": 1, "aggregate": "avg"}, "unknown aggregate 'avg': use one of count, sum, min"),
    ("table_aggregate", {}, 'table_aggregate needs the option group_by: the field .* such as "group_by": "country"'),
    ("table_aggregate", {"group_by": 1}, "group_by is 1: give the name of a field of the value object"),
    ("table_aggregate", {"group_by": "g", "field": 1}, "field is 1: give the name of a field of the value object"),
    ("table_aggregate", {"group_by": "g", "aggregate": "sum"}, "sum needs the option field: the field that is summed"),
    ("table_aggregate", {"group_by": "g", "aggregate": "max"}, "unknown aggregate 'max': use one of count, sum, list"),
]


@pytest.mark.parametrize(("name", "options", "message"), SAMZA)
def test_a_declaration_that_cannot_be_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}"):
        operator_named(name).declare(options)
