from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.spark.expressions import Expression, column, constant


def of(function: str, *values: Any) -> Any:
    return Expression(function, tuple(map(constant, values))).of({})


@pytest.mark.parametrize("function", ["=", "<>", "<", "<=", ">", ">=", "+"])
def test_with_a_null_a_comparison_and_a_sum_are_null(function: str) -> None:
    assert of(function, None, 1) is of(function, 1, None) is of(function, None, None) is None


@pytest.mark.parametrize(
    ("function", "results"),
    [
        ("=", (False, True, False)),
        ("<>", (True, False, True)),
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
        ("+", (3, 4, 5)),
    ],
)
def test_without_a_null_they_are_those_of_arithmetic(function: str, results: tuple[Any, ...]) -> None:
    assert tuple(of(function, value, 2) for value in (1, 2, 3)) == results


@pytest.mark.parametrize(
    ("one", "other", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, None, None, None),
    ],
)
def test_and_and_or_have_three_values(one: Any, other: Any, both: Any, either: Any) -> None:
    assert of("and", one, other) is of("and", other, one) is both
    assert of("or", one, other) is of("or", other, one) is either


@pytest.mark.parametrize(
    ("function", "values", "result"),
    [
        ("not", (True,), False),
        ("not", (False,), True),
        ("not", (None,), None),
        ("is null", (None,), True),
        ("is null", (False,), False),
        ("is not null", (None,), False),
        ("is not null", (0,), True),
        ("coalesce", (None, 0, 1), 0),
        ("coalesce", (None, None), None),
        ("case", (False, 1, True, 2, 3), 2),
        ("case", (True, 1, True, 2, 3), 1),
        ("case", (None, 1, False, 2, 3), 3),
        ("case", (True, None, 3), None),
        ("upper", ("a",), "A"),
        ("lower", ("A",), "a"),
        ("lower", (None,), None),
        ("as timestamp", (None,), None),
    ],
)
def test_each_function_has_the_value_that_it_has_in_spark(function: str, values: tuple[Any, ...], result: Any) -> None:
    found = of(function, *values)
    assert (found, type(found)) == (result, type(result))


def test_a_column_has_the_value_of_the_row() -> None:
    more = Expression("+", (column("v"), Expression("+", (column("w"), constant(1)))))
    assert more.of({"v": 2, "w": 3}) == 6
    assert more.columns == {"v", "w"}
