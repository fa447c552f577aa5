"""The expressions in a job's comparisons: evaluate an expression on a row, and solve an expression for a column.

A `Term` is a copy of a Spark expression: the name of the expression's class, with its value and operands. Only
expressions that are common in jobs are supported; other expressions raise `Unknown`.
"""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from .forms.rows import EPOCH, Row, microseconds

COLUMN, CONSTANT = "Column", "Constant"
MAX_TEXT = 1000
"""The maximum length of a text drawn for a comparison of lengths."""
_ORDERS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": ("=", operator.eq),
    "EqualNullSafe": ("<=>", operator.eq),
    "LessThan": ("<", operator.lt),
    "LessThanOrEqual": ("<=", operator.le),
    "GreaterThan": (">", operator.gt),
    "GreaterThanOrEqual": (">=", operator.ge),
}
_NEGATED = {"=": "<>", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_OF_TEXT: Mapping[str, Callable[[str, str], bool]] = {
    "StartsWith": str.startswith,
    "EndsWith": str.endswith,
    "Contains": lambda text, part: part in text,
    "Like": lambda text, pattern: bool(re.fullmatch(_regex_of(pattern), text, re.DOTALL)),
    "RLike": lambda text, pattern: bool(pattern_of(pattern).search(text)),
}
COMPARISONS = (*_ORDERS, *_OF_TEXT, "In")
"""The classes of expressions that compare a value with constants."""
_SAME = (
    *("Alias", "UpCast", "KnownNotNull", "KnownNullable", "CheckOverflow", "PromotePrecision", "UnaryPositive"),
    *("KnownFloatingPointNormalized", "NormalizeNaNAndZero", "With", "CommonExpressionDef", "ToPrettyString"),
    *("Between", "Nvl", "Extract", "ParseToTimestamp", "ParseToDate", "TryDivide", "TryAdd"),
    *("TrySubtract", "TryMultiply"),
)
"""The expressions whose value is the value of their first child."""
_AGGREGATES = ("AggregateExpression", "Sum", "Max", "Min", "Average", "First", "Last")
"""The aggregates whose result can be a number that a row contains."""
_PARTS: Mapping[str, Callable[[Any], int]] = {
    "Hour": lambda time: int(time.hour),
    "Minute": lambda time: int(time.minute),
    "Second": lambda time: int(time.second),
    "DayOfWeek": lambda day: int(day.isoweekday() % 7 + 1),
    "WeekDay": lambda day: int(day.weekday()),
    "DayOfMonth": lambda day: int(day.day),
    "DayOfYear": lambda day: int(day.timetuple().tm_yday),
    "WeekOfYear": lambda day: int(day.isocalendar()[1]),
    "Month": lambda day: int(day.month),
    "Quarter": lambda day: int((day.month + 2) // 3),
    "Year": lambda day: int(day.year),
}
_IN_US = {"UnixMicros": 1, "UnixMillis": 1_000, "UnixSeconds": 1_000_000}
_FROM_US = {"MicrosToTimestamp": 1, "MillisToTimestamp": 1_000, "SecondsToTimestamp": 1_000_000}
_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "EEEE": "%A", "E": "%a"}
_INTEGERS = ("byte", "short", "integer", "long")
_SQL_NAMES = {"DayOfMonth": "day", "Average": "avg"}


FAILURES = (ArithmeticError, ValueError, TypeError, LookupError, AttributeError, re.error)
"""The errors of an expression on an invalid value."""


class Unknown(Exception):
    """Raised if an expression, or the type of its value, isn't supported."""


@dataclass(frozen=True)
class Term:
    """An expression.

    Attributes:
        kind: The name of the expression's class in Spark, or `COLUMN` or `CONSTANT`.
        children: Its children.
        value: The name of a column, the value of a constant, the type of a cast or the name of a field.
        zone: The time zone in which the expression evaluates times.
    """

    kind: str
    children: tuple[Term, ...] = ()
    value: Any = None
    zone: str | None = None

    @property
    def columns(self) -> list[Any]:
        """The names of the expression's columns."""
        own = [self.value] if self.kind == COLUMN else []
        return list(dict.fromkeys([*own, *(name for child in self.children for name in child.columns)]))

    @property
    def kinds(self) -> set[str]:
        """The class names of the term and all its subterms."""
        return {self.kind}.union(*(child.kinds for child in self.children))

    @property
    def has_time_parts(self) -> bool:
        """Return whether the term extracts a part of a time, such as its hour."""
        return not self.kinds.isdisjoint({*_PARTS, "DateFormatClass"})


def outcome(comparison: Term, row: Row) -> bool | None:
    """Return whether a comparison is true on a row; None if the result is null, or the evaluation fails.

    Raises:
        Unknown: The comparison contains an unsupported expression.
    """
    try:
        found = evaluate(comparison, row)
    except FAILURES:
        return None
    return None if found is None else bool(found)


def evaluate(term: Term, row: Row) -> Any:
    """Return the value of an expression on a row; None for null.

    Raises:
        Unknown: The expression is unsupported.
    """
    if term.kind == COLUMN:
        return row[term.value]
    if term.kind == CONSTANT:
        return term.value
    if term.kind in _SAME:
        return evaluate(term.children[0], row)
    if term.kind == "Coalesce":
        return next((value for child in term.children if (value := evaluate(child, row)) is not None), None)
    values = [_comparable(evaluate(child, row)) for child in term.children]
    if term.kind in ("Least", "Greatest"):
        known = [value for value in values if value is not None]
        return (min if term.kind == "Least" else max)(known, default=None)
    if term.kind == "EqualNullSafe":
        return values[0] == values[1]
    if not values or values[0] is None or (None in values[1:] and term.kind != "In"):
        return None
    if term.kind == "In":
        return True if values[0] in values[1:] else None if None in values else False
    if term.kind in _ORDERS:
        return _ORDERS[term.kind][1](values[0], values[1])
    if term.kind in _OF_TEXT:
        return _OF_TEXT[term.kind](_text(values[0]), _text(values[1]))
    return _computed(term, values)


def _computed(term: Term, values: list[Any]) -> Any:
    first, kind = values[0], term.kind
    if kind == "Cast":
        return _cast(first, term.value, term.zone)
    if kind in _PARTS:
        return _PARTS[kind](_local(first, term.zone))
    if kind in _IN_US:
        return microseconds(first) // _IN_US[kind]
    if kind in _FROM_US:
        return EPOCH + timedelta(microseconds=int(first * _FROM_US[kind]))
    if kind == "DateFormatClass":
        pattern = re.sub("[a-zA-Z]+", lambda found: _format_of(found[0]), values[1])
        return _local(first, term.zone).strftime(pattern)
    if kind in _TEXTS:
        return _TEXTS[kind](_text(first))
    if kind == "Substring":
        text, start, length = _text(first), values[1], values[2]
        start = start - 1 if start > 0 else max(0, len(text) + start) if start else 0
        return text[start : start + length]
    if kind in _NUMBERS:
        numbers = [Fraction(value) for value in values]
        return _NUMBERS[kind](*numbers)
    raise Unknown(kind)


_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "Length": len,
    "Lower": str.lower,
    "Upper": str.upper,
    "StringTrim": lambda text: text.strip(" "),
}
_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "IntegralDivide": lambda number, by: int(number / by),
    "Remainder": lambda number, by: number - by * int(number / by),
    "Pmod": lambda number, by: (number % by + by) % by,
    "UnaryMinus": operator.neg,
    "Abs": abs,
    "Floor": math.floor,
    "Ceil": math.ceil,
    "Round": lambda number, scale=0: (-1 if number < 0 else 1) * _half_up(abs(number), int(scale)),
}


def _half_up(number: Fraction, scale: int) -> Fraction:
    unit = Fraction(10) ** -scale
    return math.floor(number / unit + Fraction(1, 2)) * unit


def pattern_of(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression in Java's syntax, as far as Python parses that syntax.

    Raises:
        re.error: Python can't parse the pattern.
    """
    with warnings.catch_warnings(action="ignore"):  # Python warns about parts of Java's syntax
        return re.compile(pattern)


def _comparable(value: Any) -> Any:
    return Fraction(value) if isinstance(value, Decimal) else value  # Python can't compare a decimal with a fraction


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unknown(type(value).__name__)
    return value


def _format_of(letters: str) -> str:
    if letters not in _FORMATS:
        raise Unknown(letters)
    return _FORMATS[letters]


def _local(time: Any, zone: str | None) -> Any:
    return time.astimezone(_zone(zone)) if isinstance(time, datetime) and time.tzinfo else time


@cache
def _zone(name: str | None) -> Any:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError):
        raise Unknown(str(name)) from None


def _cast(value: Any, kind: str, zone: str | None) -> Any:
    if kind in _INTEGERS:
        if isinstance(value, datetime):
            return microseconds(value) // 1_000_000
        return int(Decimal(value)) if isinstance(value, str) else int(value)
    if kind in ("double", "float"):
        return float(value)
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").rpartition(",")[2])
        exact = Decimal(value) if isinstance(value, str) else _decimal(Fraction(value))
        return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if kind == "string" and (isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))):
        return str(value)
    if kind == "date":
        if isinstance(value, str):
            return date.fromisoformat(value.strip()[:10])
        return _local(value, zone).date() if isinstance(value, datetime) else value
    if kind == "timestamp":
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, (int, float, Fraction)):
            return EPOCH + timedelta(microseconds=int(value * 1_000_000))
        elif not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return (value if value.tzinfo else value.replace(tzinfo=_zone(zone))).astimezone(UTC)
    raise Unknown(kind)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def constants_of(comparison: Term) -> list[Any]:
    """Return the constants in a comparison."""
    found = []
    for child in comparison.children:
        if not child.columns:
            found.append(evaluate(child, {}))
    return [value for value in found if value is not None]


def compared(comparison: Term) -> Term:
    """Return the operand of a comparison that contains columns."""
    return next(child for child in comparison.children if child.columns)


def is_comparison(term: Term) -> bool:
    """Return whether a term is a comparison of an expression with columns and an expression of constants."""
    if term.kind not in COMPARISONS or len([child for child in term.children if child.columns]) != 1:
        return False
    if term.kind in ("In", *_OF_TEXT) and not term.children[0].columns:
        return False
    try:
        return bool(constants_of(term))
    except (Unknown, *FAILURES):
        return False


def solutions(term: Term, target: Any) -> Iterator[tuple[Any, Any]]:
    """Yield columns, each with a value for which an expression is equal, or almost equal, to `target`.

    Numbers are fractions. Yield nothing for an expression that can't be solved.
    """
    if isinstance(target, (int, float, Decimal)) and not isinstance(target, bool):
        target = Fraction(target)
    kind, columns = term.kind, [child for child in term.children if child.columns]
    if kind == COLUMN:
        yield term.value, target
    elif kind == "Cast" and isinstance(target, date) and not isinstance(target, datetime):
        yield from solutions(columns[0], _cast(target, "timestamp", term.zone))
    elif kind in (*_SAME, *_AGGREGATES, "Cast", "Coalesce", "Round", "Floor", "Ceil", "Least", "Greatest"):
        yield from solutions(columns[0], target)
    elif kind in ("UnaryMinus", "Abs"):
        yield from solutions(columns[0], -target)
        if kind == "Abs":
            yield from solutions(columns[0], target)
    elif kind in _INVERSES:
        yield from _solved_by_inverse(term, target)
    elif kind == "Length":
        for length in {target, target - 1, target + 1}:
            if 0 <= length <= MAX_TEXT:
                yield from solutions(columns[0], "x" * int(length))
    elif kind in ("Lower", "Upper", "StringTrim") and isinstance(target, str):
        for text in {"Lower": (target.upper(), target), "Upper": (target.lower(), target)}.get(
            kind, (f" {target} ", target)
        ):
            yield from solutions(columns[0], text)
    elif kind == "Substring" and isinstance(target, str):
        start = evaluate(term.children[1], {})
        before = "x" * (start - 1) if isinstance(start, int) and 0 < start <= MAX_TEXT else ""
        yield from solutions(columns[0], before + target)
    elif kind in _IN_US:
        yield from solutions(columns[0], EPOCH + timedelta(microseconds=int(target * _IN_US[kind])))
    elif kind in _FROM_US and isinstance(target, datetime):
        yield from solutions(columns[0], Fraction(microseconds(target), _FROM_US[kind]))


def _solved_by_inverse(term: Term, target: Fraction) -> Iterator[tuple[Any, Any]]:
    left, right = term.children[:2]
    if left.columns and right.columns:  # treat the other side as neutral (0 or 1)
        for side in (left, right):
            yield from solutions(side, target)
        return
    constant = Fraction(evaluate(right if left.columns else left, {}))
    for value in _INVERSES[term.kind](target, constant, bool(left.columns)):
        yield from solutions(left if left.columns else right, value)


_INVERSES: Mapping[str, Callable[[Fraction, Fraction, bool], list[Fraction]]] = {
    "Add": lambda target, constant, is_left: [target - constant],
    "Subtract": lambda target, constant, is_left: [target + constant if is_left else constant - target],
    "Multiply": lambda target, constant, is_left: [target / constant] if constant else [],
    "Divide": lambda target, constant, is_left: (
        [target * constant] if is_left else [constant / target] if target else []
    ),
    "IntegralDivide": lambda target, constant, is_left: [target * constant] if is_left else [],
    "Remainder": lambda target, constant, is_left: [target + constant, target] if is_left else [],
    "Pmod": lambda target, constant, is_left: [target + constant, target] if is_left else [],
}
"""For each operation, the values of one operand that reach a target, if the other operand is a constant."""


def texts_for(comparison: Term, pattern: str) -> list[str]:
    """Return texts that match a comparison's pattern; for an equality, the text itself."""
    if comparison.kind == "Like":
        plain = re.sub(r"\\(.)|%|_", lambda found: found[1] or {"%": "", "_": "x"}[found[0]], pattern)
        longer = re.sub(r"\\(.)|%|_", lambda found: found[1] or {"%": "xy", "_": "x"}[found[0]], pattern)
        return [plain, longer]
    if comparison.kind == "Contains":
        return [pattern, f"x{pattern}y"]
    if comparison.kind == "EndsWith":
        return [pattern, f"x{pattern}"]
    return [pattern]


def _regex_of(pattern: str) -> str:
    """Return the regular expression for a pattern of LIKE."""
    parts = re.findall(r"\\.|%|_|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return "".join(wild.get(part) or re.escape(part[1:] if len(part) > 1 else part) for part in parts)


def shown(term: Term) -> str:
    """Return an expression as SQL."""
    inner = [shown(child) for child in term.children]
    if term.kind == COLUMN:
        return str(term.value)
    if term.kind == CONSTANT:
        return f"'{term.value}'" if isinstance(term.value, (str, date)) else str(term.value)
    if term.kind in (*_SAME, "Cast", "AggregateExpression") and inner:
        return inner[0]
    if term.kind in _SIGNS:
        return f"{inner[0]} {_SIGNS[term.kind]} {inner[1]}"
    if term.kind == "In":
        return f"{inner[0]} IN ({', '.join(inner[1:])})"
    if term.kind in ("Like", "RLike"):
        return f"{inner[0]} {term.kind.upper()} {inner[1]}"
    name = _SQL_NAMES.get(term.kind, term.kind.lower())
    return f"{name}({', '.join(inner)})"


_SIGNS = {
    **{kind: sign for kind, (sign, _) in _ORDERS.items()},
    **{"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"},
}


def shown_negated(comparison: Term) -> str:
    """Return the negation of a comparison as SQL."""
    sign, inner = _SIGNS.get(comparison.kind, ""), [shown(child) for child in comparison.children]
    if sign in _NEGATED:
        return f"{inner[0]} {_NEGATED[sign]} {inner[1]}"
    if comparison.kind in ("In", "Like", "RLike"):
        return f"{inner[0]} NOT {shown(comparison).removeprefix(f'{inner[0]} ')}"
    return f"NOT {shown(comparison)}"


def is_order(comparison: Term) -> bool:
    """Return whether a comparison is by `<`, `<=`, `>` or `>=` on a plain column."""
    return comparison.kind in _ORDERS and not comparison.kind.startswith("Equal") and is_plain(compared(comparison))


def is_plain(term: Term) -> bool:
    """Return whether a term is a column, with or without a cast."""
    return term.kind == COLUMN or (term.kind in (*_SAME, "Cast") and bool(term.children) and is_plain(term.children[0]))


def equality_of(comparison: Term) -> Term:
    """Return a term that compares the two operands of a comparison by `=`."""
    return Term("EqualTo", comparison.children)
