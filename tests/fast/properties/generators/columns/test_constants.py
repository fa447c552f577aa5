"""Values around the constants of a job: on both sides of each comparison, and at it."""

from __future__ import annotations

import math
import random
import warnings
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.histories.constants import (
    FEW,
    Compares,
    _chosen,
    _moved,
    _near,
    _near_number,
    compares,
    unreached,
    with_constants,
)
from streamproof.properties.generators.columns.histories.drawing import draw_histories, start_of
from streamproof.properties.generators.columns.histories.goals import covered, goals
from streamproof.properties.generators.columns.inputs import BoundaryValues, Input, ResolvedInput
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.generators.columns.terms import (
    COLUMN,
    CONSTANT,
    Term,
    evaluate,
    is_comparison,
    outcome,
    shown,
    shown_negated,
    solutions,
)

MINUTE = 60_000_000
COLUMNS = (
    "user string, at timestamp, amount bigint, small tinyint, price decimal(6,2), rate double, thin float, kind string,"
    " due date, seen timestamp, made timestamp_ntz"
)
ORDERS = resolve(Input(COLUMNS, "at", key="user", name="orders"))
START = start_of(0)


def column(name: str) -> Term:
    return Term(COLUMN, (), name)


def constant(value: Any) -> Term:
    return Term(CONSTANT, (), value)


def term(kind: str, *children: Any, value: Any = None, zone: str | None = None) -> Term:
    return Term(kind, tuple(one if isinstance(one, Term) else constant(one) for one in children), value, zone)


def drawn(found: Term, given: ResolvedInput = ORDERS, *, exact: bool = False) -> BoundaryValues:
    (one,) = with_constants([given], [Compares(given.name, found)], (), START, exact=exact)
    return one.constants


amount, price, rate, kind, due, seen = map(column, ("amount", "price", "rate", "kind", "due", "seen"))


@pytest.mark.parametrize(
    ("comparison", "name", "wanted"),
    [
        (term("GreaterThan", amount, 1000), "amount", {999, 1000, 1001}),
        (term("LessThan", 1000, amount), "amount", {999, 1000, 1001}),
        (term("GreaterThan", term("Multiply", amount, 100), 5000), "amount", {49, 50, 51}),
        (term("GreaterThan", term("Multiply", amount, 100), 5050), "amount", {50, 51}),
        (term("EqualTo", term("Remainder", amount, 7), 3), "amount", {3, 10, 4}),
        (term("LessThan", term("Abs", amount), 5), "amount", {5, -5, 4, -4, 6}),
        (term("EqualTo", term("Subtract", 10, amount), 3), "amount", {7}),
        (term("EqualTo", term("Add", amount, 3), 3), "amount", {0}),
        (term("EqualTo", term("Divide", amount, 4), 3.5), "amount", {14}),
        (term("EqualTo", term("UnaryMinus", term("Coalesce", amount, 0)), 3), "amount", {-3}),
        (term("GreaterThan", term("Sum", amount), 50), "amount", {50, 51}),
        (term("In", amount, 3, 700), "amount", {3, 700, 701}),
        (term("LessThan", column("small"), 127), "small", {126, 127}),
        (term("GreaterThanOrEqual", price, Decimal("9.995")), "price", {Decimal("9.99"), Decimal("10.00")}),
        (term("GreaterThan", price, Decimal("9.99")), "price", {Decimal("9.98"), Decimal("9.99"), Decimal("10.00")}),
        (term("LessThan", rate, 1000.0), "rate", {999.5, 1000.0, 1000.5}),
        (term("LessThan", rate, Decimal("0.1")), "rate", {0.1}),
        (term("EqualTo", kind, "paid"), "kind", {"paid", "PAID", "paidx", "pai"}),
        (term("Like", kind, "x%_"), "kind", {"xx", "xxyx"}),
        (term("EqualTo", term("Lower", kind), "paid"), "kind", {"paid", "PAID"}),
        (term("EqualTo", term("Substring", kind, 2, 2), "ab"), "kind", {"xab"}),
        (term("GreaterThan", term("Length", kind), 3), "kind", {"xx", "xxx", "xxxx"}),
        (term("GreaterThan", term("Cast", kind, value="integer"), 41), "kind", {"40", "41", "42"}),
        (term("EndsWith", kind, "ing"), "kind", {"ing", "xing"}),
        (term("LessThan", due, date(2024, 3, 1)), "due", {date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 2)}),
        (
            term("EqualTo", term("Cast", seen, value="date", zone="Europe/Berlin"), date(2024, 7, 1)),
            "seen",
            {datetime(2024, 6, 30, 22, tzinfo=UTC), datetime(2024, 6, 30, 21, 59, 59, 999_999, UTC)},
        ),
        (term("EqualTo", term("Month", due), 8), "due", {date(2024, 8, 1), date(2024, 9, 1)}),
        (
            term("LessThan", column("made"), datetime(2024, 7, 1)),
            "made",
            {datetime(2024, 7, 1), datetime(2024, 6, 30, 23, 59, 59, 999_999)},
        ),
    ],
    ids=lambda given: shown(given) if isinstance(given, Term) else "",
)
def test_values_are_at_a_constant_and_just_beside(comparison: Term, name: str, wanted: set[Any]) -> None:
    (values,) = drawn(comparison).values[name]
    assert wanted <= set(values)
    if not comparison.kinds & {"Sum"}:
        row = dict.fromkeys(ORDERS.source.schema.names)
        assert {outcome(comparison, {**row, name: value}) for value in values} == {True, False}


def test_a_regular_expression_is_matched_by_drawn_texts() -> None:
    (values,) = drawn(term("RLike", kind, "^a[0-9]{2}$")).values["kind"]
    assert {outcome(term("RLike", kind, "^a[0-9]{2}$"), {"kind": value}) for value in values} == {True, False}
    assert not drawn(term("RLike", kind, "(?<")).values
    with warnings.catch_warnings(action="error"):
        assert drawn(term("RLike", kind, "[[x]y")).values


@pytest.mark.parametrize(
    "comparison",
    [
        term("EqualTo", column("user"), "bot"),
        term("GreaterThan", amount, 2**62),
        term("LessThan", term("Cosine", amount), 3),
        term("EqualTo", term("Multiply", amount, 0), 3),
        term("LessThan", rate, float("nan")),
        term("LessThan", rate, float("inf")),
        term("LessThan", term("Multiply", rate, 1e-200), 1e200),
    ],
    ids=shown,
)
def test_keys_and_expressions_that_cannot_be_solved_have_no_values(comparison: Term) -> None:
    assert not drawn(comparison).values


def test_columns_with_values_of_the_user_s_keep_them() -> None:
    given = resolve(Input(COLUMNS, "at", key="user", name="orders", values={"amount": [1]}))
    assert not drawn(term("GreaterThan", amount, 1000), given).values


@pytest.mark.parametrize("number", [0.1, 1e-9, 0.7, 12345.678])
@pytest.mark.parametrize("name", ["rate", "thin"])
def test_sums_of_values_next_to_a_fraction_are_exact(number: float, name: str) -> None:
    (values,) = drawn(term("LessThan", column(name), number), exact=True).values[name]
    assert [value < number for value in values] == [True, False]
    assert all(Fraction(value).denominator.bit_length() < 50 for value in values)
    assert sum(values) == float(sum(map(Fraction, values)))


def with_limits(seed: int = 0) -> list[ResolvedInput]:
    hour = term("Hour", column("at"), zone="UTC")
    terms = [term("GreaterThan", amount, 1000), term("EqualTo", kind, "refund"), term("EqualTo", hour, 9)]
    return with_constants([ORDERS], [Compares("orders", one) for one in terms], [77, "vip"], start_of(seed))


def histories(given: list[ResolvedInput], seed: int, late: bool = True) -> list[JobHistory]:
    return draw_histories(given, [10 * MINUTE], 300, seed, late=late, delay_us=5 * MINUTE)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_both_sides_are_drawn_and_what_was_drawn_before_still_is(seed: int, late: bool) -> None:
    given = with_limits(seed)
    plain, around = histories([ORDERS], seed, late), histories(given, seed, late)
    assert around == histories(given, seed, late)
    same = sum(one == other for one, other in zip(plain, around, strict=True))
    assert 150 <= same <= 220
    found = covered(around, [ORDERS.source], [10 * MINUTE], 5 * MINUTE)
    assert set(goals([ORDERS], [10 * MINUTE], late)) <= found
    rows = [row for history in around for _, row in history.arrivals]
    values = {(row["amount"], row["kind"]) for row in rows}
    assert {(1001, "refund"), (1000, "refund"), (999, "refund")} <= values
    assert {row["at"].hour for row in rows} >= {8, 9, 10}
    assert {77, 76, 78} <= {row["amount"] for row in rows}
    assert "vip" in {row["kind"] for row in rows}


SECOND = 1_000_000


@pytest.mark.parametrize(
    ("batch", "at", "times", "moved"),
    [
        (0, 5, [4, 8], [(0, 4), (0, 8)]),
        (0, 5, [11], [(0, 5)]),  # beyond the clock there is no row
        (1, 15, [12, 18, 4], [(1, 12), (1, 18)]),
        (1, 15, [7, 25], [(0, 7)]),  # on time in its batch, it can't be late: it comes in the first
        (1, 7, [3, 8, 9], [(1, 3), (1, 8)]),
        (1, 7, [9, 15], [(0, 9)]),
    ],
)
def test_a_row_stays_in_its_batch_on_time_or_late_wherever_it_is_moved(
    batch: int, at: int, times: list[int], moved: list[tuple[int, int]]
) -> None:
    """The clock is at 10 and at 20 s, and the watermark 2 s behind it."""
    row = {"at": from_microseconds(at * SECOND), "amount": 1}
    clock, wanted = (10 * SECOND, 20 * SECOND), {(to, from_microseconds(time * SECOND)) for to, time in moved}
    found = set()
    for seed in range(20):
        generator, times_us = random.Random(seed), [time * SECOND for time in times]
        to, placed = _moved(generator, clock, batch, row, ORDERS.source, times_us, 2 * SECOND)
        assert placed["amount"] == 1
        found.add((to, placed["at"]))
    assert found == wanted


def test_replaced_values_stay_null_equal_in_time_and_under_their_keys() -> None:
    given = with_limits()
    for plain, around in zip(histories([ORDERS], 0), histories(given, 0), strict=True):
        assert len(plain.arrivals) == len(around.arrivals)
        assert sorted(row["user"] for _, row in plain.arrivals) == sorted(row["user"] for _, row in around.arrivals)
        horizon = None
        for number, (before, after) in enumerate(zip(plain.batches, around.batches, strict=True)):
            for _, row in after:
                assert ORDERS.source.time_us(row) <= around.clock[number]
            if horizon is not None:
                late = [sum(ORDERS.source.time_us(row) <= horizon for _, row in one) for one in (before, after)]
                assert late[0] >= late[1]
            horizon = around.clock[number] - 5 * MINUTE
        nulls = [sum(row[name] is None for _, row in one.arrivals for name in row) for one in (plain, around)]
        assert nulls[0] == nulls[1]


def test_constants_of_functions_are_drawn_seldom_and_fit_their_columns() -> None:
    (given,) = with_constants([ORDERS], (), [9_999, 0.5, "vip", "amount"], START)
    seldom = given.constants.seldom
    assert seldom["amount"] == [(9_999, 9_998, 10_000), (0, 1)]
    assert {*seldom} == {"amount", "small", "price", "rate", "thin", "kind"}
    assert all(abs(value) < 128 for kind in seldom["small"] for value in kind)
    assert [kind[0] for kind in seldom["kind"]] == ["vip"]


@pytest.mark.parametrize("found", [{"values": {"amount": [range(20)]}}, {"seldom": {"amount": [range(2), range(20)]}}])
def test_few_values_around_constants_are_drawn_in_a_history(found: Any) -> None:
    chosen = [_chosen(random.Random(seed), BoundaryValues(**found)) for seed in range(200)]
    sizes = {len({*one["amount"]}) for one in chosen if one}
    assert max(sizes) == FEW
    assert {value for one in chosen for value in one.get("amount", ())} == {*range(20)}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (term("LessThan", None, 5), None),
        (term("LessThan", 5, None), None),
        (term("Contains", None, "a"), None),
        (term("Add", 1, None), None),
        (term("In", None, 1), None),
        (term("In", None, None), None),
        (term("In", 1, 1, None), True),
        (term("In", 2, 1, None), None),
        (term("In", 2, 1), False),
        (term("EqualNullSafe", None, None), True),
        (term("Least", None, 2, 1), 1),
        (term("Alias", 5), 5),
        (term("Nvl", None), None),
    ],
)
def test_an_expression_is_null_where_it_is_on_spark(made: Term, expected: Any) -> None:
    assert evaluate(made, {}) == expected


@pytest.mark.parametrize("value", [5, "2024-07-01", True, b"x"])
def test_a_value_of_another_type_has_no_neighbours_in_time(value: Any) -> None:
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()):
        assert _near(value, pa.field("at", kind), False) == []


@pytest.mark.parametrize("field", ["values", "seldom", "times_us"])
def test_boundary_values_are_known_by_any_of_their_kinds(field: str) -> None:
    assert BoundaryValues(**{field: {"amount": [(1,)]} if field != "times_us" else (1,)}).are_known  # type: ignore[arg-type]
    assert not BoundaryValues(passing={"amount": (1,)}, passing_us=(1,)).are_known


@pytest.mark.parametrize(
    ("made", "target", "expected"),
    [
        (amount, 5, [("amount", Fraction(5))]),
        (kind, True, [("kind", True)]),
        (term("Substring", kind, 2, 2), "ab", [("kind", "xab")]),
        (term("Substring", kind, 2, 2), 5, []),
        (term("Lower", kind), 5, []),
    ],
)
def test_a_solution_has_the_type_of_its_target(made: Term, target: Any, expected: list[Any]) -> None:
    found = [*solutions(made, target)]
    assert found == expected
    assert [*map(type, dict(found).values())] == [*map(type, dict(expected).values())]


@pytest.mark.parametrize("name", ["In", "Like", "RLike", "Contains", "StartsWith", "EndsWith"])
def test_a_text_is_compared_with_a_constant_on_the_right_alone(name: str) -> None:
    assert is_comparison(term(name, kind, "paid"))
    assert not is_comparison(term(name, "paid", kind))
    assert not is_comparison(term(name, kind, price))
    assert not is_comparison(term(name, kind, None))
    assert is_comparison(term("EqualTo", "paid", kind))
    assert not is_comparison(term("Upper", kind))


def row_of(**values: Any) -> JobHistory:
    row = {**dict.fromkeys(ORDERS.source.schema.names), "user": "a", "at": START, **values}
    return JobHistory(((Arrival("orders", row),),))


def test_a_side_of_a_comparison_that_no_row_is_on_is_named() -> None:
    found = [
        Compares("orders", term("GreaterThan", amount, 1000)),
        Compares("orders", term("In", kind, "a", "b")),
        Compares("orders", term("EqualTo", column("user"), "a")),
        Compares("orders", term("LessThan", term("Cosine", amount), 1)),
    ]
    below = row_of(amount=5, kind="a")
    assert unreached(found, [ORDERS], [below], keys=False) == [
        "no drawn row of orders has amount > 1000",
        "no drawn row of orders has amount = 1000",
        "no drawn row of orders has kind NOT IN ('a', 'b')",
    ]
    assert unreached(found, [ORDERS], [below], keys=True)[-1] == "no drawn row of orders has user <> 'a'"
    others = [row_of(amount=1000, kind="c"), row_of(amount=1001)]
    assert unreached(found, [ORDERS], [below, *others], keys=False) == []


def test_a_comparison_is_of_the_inputs_that_have_its_columns_and_of_the_fields_of_payloads() -> None:
    names = tuple(ORDERS.source.schema.names)
    on = Term("GreaterThan", (Term(COLUMN, (), (names, "amount")), constant(3)))
    assert [shown(one.term) for one in compares([on], [ORDERS.source])] == ["amount > 3"]
    other = resolve(Input("user string, at timestamp", key="user", name="clicks")).source
    assert compares([on], [other]) == []
    kafka = resolve(Input("user string, amount bigint", key="user", name="orders", format="kafka")).source
    value = Term(COLUMN, (), (tuple(kafka.wire_schema.names), "value"))
    in_payload = Term("GreaterThan", (Term("Field", (Term("JsonToStructs", (value,)),), "amount"), constant(3)))
    assert [shown(one.term) for one in compares([in_payload], [kafka])] == ["amount > 3"]
    absent = Term("GreaterThan", (Term("Field", (value,), "price"), constant(3)))
    assert compares([absent], [kafka]) == []


@pytest.mark.parametrize(
    ("comparison", "text"),
    [
        (term("GreaterThanOrEqual", amount, 3), "amount < 3"),
        (term("Like", kind, "x%"), "kind NOT LIKE 'x%'"),
        (term("StartsWith", kind, "x"), "NOT startswith(kind, 'x')"),
    ],
)
def test_the_opposite_of_a_comparison_is_said_as_sql(comparison: Term, text: str) -> None:
    assert shown_negated(comparison) == text


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (term("Round", 2.345, 2), Fraction("2.35")),
        (term("Floor", -1.5), -2),
        (term("Pmod", -3, 7), 4),
        (term("Add", Decimal("0.1"), 0.25), Decimal("0.35")),
        (term("Remainder", -3, 7), -3),
        (term("DayOfWeek", date(2024, 1, 7)), 1),
        (term("WeekDay", date(2024, 1, 7)), 6),
        (term("Quarter", date(2024, 5, 7)), 2),
        (term("Hour", datetime(2024, 1, 1, 23, tzinfo=UTC), zone="Asia/Tokyo"), 8),
        (
            term("DateFormatClass", datetime(2024, 1, 1, 23, 5, tzinfo=UTC), "yyyy-MM-dd HH:mm", zone="UTC"),
            "2024-01-01 23:05",
        ),
        (term("Least", 3, None, 2), 2),
        (term("Coalesce", None, 4), 4),
        (term("Cast", "12", value="integer"), 12),
        (term("Cast", "12.9", value="integer"), 12),
        (term("Cast", 60, value="timestamp", zone="UTC"), datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
        (term("Cast", 0.5, value="timestamp", zone="UTC"), datetime(1970, 1, 1, 0, 0, 0, 500_000, UTC)),
        (term("Cast", date(1970, 1, 2), value="timestamp", zone="UTC"), datetime(1970, 1, 2, tzinfo=UTC)),
        (term("Cast", Decimal("-12.9"), value="long"), -12),
        (term("Cast", datetime(1970, 1, 1, 0, 1, tzinfo=UTC), value="long"), 60),
        (term("Cast", "2024-01-01 10:00", value="timestamp", zone="UTC"), datetime(2024, 1, 1, 10, tzinfo=UTC)),
        (term("MillisToTimestamp", 60_000), datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
    ],
    ids=lambda given: given.kind if isinstance(given, Term) else "",
)
def test_expressions_are_what_they_are_on_spark(made: Term, expected: Any) -> None:
    assert outcome(Term("EqualTo", (made, constant(expected))), {}) is True


@pytest.mark.parametrize(
    "value", [Fraction(0), Fraction(7), Fraction(-3), Fraction(5, 2), Fraction(-1, 4), Fraction(127)]
)
@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (pa.int8(), 1),
        (pa.int64(), 1),
        (pa.decimal128(9, 0), 1),
        (pa.decimal128(9, 2), Fraction(1, 100)),
        (pa.decimal128(38, 2), Fraction(1, 100)),
        (pa.string(), 1),
    ],
    ids=str,
)
def test_the_nearest_numbers_of_a_type_are_drawn_on_both_sides_of_a_constant(
    kind: pa.DataType, unit: Fraction, value: Fraction
) -> None:
    found = {Fraction(one) for one in _near_number(value, kind, exact=True)}
    below, above = math.ceil(value / unit) * unit - unit, math.floor(value / unit) * unit + unit
    wanted = {below, above, *([value] if (value / unit).denominator == 1 else [])}
    if pa.types.is_string(kind) and value.denominator > 1:
        wanted = set()
    assert found == {one for one in wanted if kind != pa.int8() or abs(one) < 128}


@pytest.mark.parametrize("value", [Fraction(0), Fraction(3), Fraction(-5, 2), Fraction(1, 3), Fraction(2**30)])
def test_numbers_beside_a_constant_are_near_it_and_the_constant_comes_where_sums_stay_exact(value: Fraction) -> None:
    for exact in (True, False):
        found = [Fraction(one) for one in _near_number(value, pa.float64(), exact)]
        near = [one for one in found if one != Fraction(float(value))]
        assert min(near) < value < max(near)
        assert all(abs(one - value) <= max(abs(value), 1) / 2**8 or value == 0 for one in near)
        assert (Fraction(float(value)) in found) == (not exact or value.denominator != 3)
