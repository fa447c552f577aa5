"""Values around the constants in a job's comparisons, so that histories make each comparison true and false.

In some histories, these values replace drawn values, and event times are near times at which a comparison's result
changes. The remaining histories are the same as in a check without constants.
"""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from ..forms.rows import Row, from_microseconds, microseconds
from ..inputs import BoundaryValues, ResolvedInput
from ..model import Arrival, JobHistory, Source
from ..terms import (
    COLUMN,
    FAILURES,
    Term,
    Unknown,
    compared,
    constants_of,
    equality_of,
    is_order,
    outcome,
    pattern_of,
    shown,
    shown_negated,
    solutions,
    texts_for,
)
from ..values import TERMS, ColumnValues, examples_of, plain_values

SHARE = 0.4
"""The share of histories with values around constants."""
OF_COLUMN = 0.75
"""The share of columns with values around constants, in these histories."""
OF_FUNCTION = 0.5
"""The share of columns with values around constants, if the constants come only from the code of functions."""
OF_VALUE = 0.75
"""The share of values that are replaced, in the columns with values around constants."""
OF_TIME = 0.6
"""The share of rows that move to a time at which a comparison's result changes, in these histories."""
FEW = 4
MAX_VALUES = 24
"""The largest number of values drawn for a comparison; a long IN list has more constants."""
MAX_OF_CODE = 60
"""The largest number of constants from functions whose values a column gets."""
BITS = 10
"""The number of binary digits in the values next to a floating-point constant, so that sums are exact in any order."""
_GRIDS = ((60, 180), (1800, 384), (86_400, 400))
"""The times to try for comparisons such as `hour(time) = 9`, backwards from the start: step (s), number of steps."""
MAX_TIMES = 6
"""The largest number of times at which a comparison's result changes, from each grid, the latest times first."""


@dataclass(frozen=True)
class Compares:
    """A comparison of an input's columns with constants.

    Attributes:
        input: The input's name.
        term: The comparison as a term on the input's columns.
    """

    input: str
    term: Term


def compares(terms: Sequence[Term], sources: Sequence[Source]) -> list[Compares]:
    """Return the comparisons of a plan on the columns of each input.

    Args:
        terms: The comparisons. A column in a comparison is a pair: the names of all columns of its source, and the name
            of the column or of a field of the payload.
        sources: The job's inputs.
    """
    found: dict[tuple[str, str], Compares] = {}
    for term in terms:
        for source in sources:
            own = _of_source(term, source)
            if own is not None and own.columns:
                found.setdefault((source.name, shown(own)), Compares(source.name, own))
    return [*found.values()]


def _of_source(term: Term, source: Source) -> Term | None:
    """Return a term that reads columns of the source instead of columns of the plan; None if the term reads any column
    that isn't the source's.
    """
    encoding = source.encoding
    has_payload = encoding is not None and encoding.format is not None
    if term.kind == "Field":
        if not has_payload or term.value not in source.schema.names:
            return None
        beside = {names for names, _ in term.columns}
        return Term(COLUMN, (), term.value) if beside == {tuple(source.wire_schema.names)} else None
    if term.kind == COLUMN:
        names, name = term.value
        if [*names] != [*source.wire_schema.names]:
            return None
        if encoding is not None and has_payload and name == encoding.payload_column and encoding.value == "text":
            name = next((one for one in encoding.columns.names if one not in source.key), name)
        return Term(COLUMN, (), name) if name in source.schema.names else None
    children = [_of_source(child, source) for child in term.children]
    known = tuple(child for child in children if child is not None)
    return replace(term, children=known) if len(known) == len(children) else None


def with_constants(
    inputs: Sequence[ResolvedInput],
    found: Sequence[Compares],
    of_code: Sequence[Any],
    start: datetime,
    *,
    exact: bool = False,
) -> list[ResolvedInput]:
    """Return inputs with values around constants, for columns that aren't keys and have no values from the user.

    Args:
        inputs: The inputs.
        found: The comparisons in the job's plan.
        of_code: The constants in the code of functions.
        start: The start time of the histories.
        exact: Whether the check compares all digits of floating-point numbers; if so, only values with exact sums are
            drawn.
    """
    return [_with_constants(given, found, of_code, start, exact) for given in inputs]


def _with_constants(
    given: ResolvedInput, found: Sequence[Compares], of_code: Sequence[Any], start: datetime, exact: bool
) -> ResolvedInput:
    source = given.source
    own = [one.term for one in found if one.input == given.name]
    free = [name for name in source.schema.names if _is_free(given, name)]
    values: dict[str, list[ColumnValues]] = defaultdict(list)
    times: set[int] = set()
    for term in own:
        for column, kind in _values_of(term, source, start, exact).items():
            if column in free and kind:
                values[column].append(kind)
        if source.time in term.columns:
            times.update(_times_of(term, source, start))
    seldom = {}
    for name in free:
        fitting = (_near(one, source.schema.field(name), exact) for one in of_code if _is_of_kind(one, source, name))
        kinds = [*dict.fromkeys(tuple(kind) for kind in fitting if kind)]
        if kinds:
            seldom[name] = kinds[:MAX_OF_CODE]
    passing = {name: _passing(own, source, name, _flat(kinds)) for name, kinds in values.items()}
    near_us = sorted({time_us + by for time_us in times for by in (0, -_beside_us(source), _beside_us(source))})
    on_time = {time_us: source.time_of(time_us) for time_us in near_us}
    passing_times = {*_passing(own, source, source.time, tuple(on_time.values()))}
    passing_us = [time_us for time_us, time in on_time.items() if time in passing_times]
    return replace(given, constants=BoundaryValues({**values}, seldom, near_us, passing, passing_us))


def _beside_us(source: Source) -> int:
    return max(1_000, source.grain_us)


def _flat(kinds: Sequence[Sequence[Any]]) -> ColumnValues:
    return tuple({repr(value): value for kind in kinds for value in kind}.values())


def _passing(terms: Sequence[Term], source: Source, column: str, values: ColumnValues) -> ColumnValues:
    """Return the values of a column that satisfy the largest number of the comparisons with this column alone."""
    own = [term for term in terms if term.columns == [column]]
    row = dict.fromkeys(source.schema.names)
    trues = [sum(_is_true(term, as_given({**row, column: value}, source)) for term in own) for value in values]
    most = max(trues, default=0)
    return tuple(value for value, count in zip(values, trues, strict=True) if count == most)


def _is_true(term: Term, row: Row) -> bool:
    try:
        return outcome(term, row) is True
    except Unknown:
        return False


def _is_free(given: ResolvedInput, name: str) -> bool:
    """Return whether the check draws a column's values by the column's type, and not from the user's values."""
    return not given.sample and name not in (given.source.time, *given.source.key, *given.pools)


def _is_of_kind(value: Any, source: Source, name: str) -> bool:
    kind = source.schema.field(name).type
    if isinstance(value, str):
        return bool(pa.types.is_string(kind)) and value not in source.schema.names
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _values_of(term: Term, source: Source, start: datetime, exact: bool) -> dict[str, ColumnValues]:
    """Return, for each column of a comparison, values for which the compared expression is equal to, just below and
    just above the constant.
    """
    found: dict[str, list[Sequence[Any]]] = defaultdict(list)

    targets = constants_of(term)
    if term.kind == "RLike":
        targets = [text for pattern in targets for text in _matching(pattern)]
    elif all(isinstance(target, str) for target in targets):
        targets = [text for target in targets for text in texts_for(term, target)]
    for target in targets[:MAX_VALUES]:
        try:
            solved = [*solutions(compared(term), target)]
        except (Unknown, *FAILURES):
            solved = []
        for column, value in solved:
            found[column].append(_near(value, source.schema.field(column), exact))
    if term.has_time_parts:
        for column in term.columns:
            kind = source.schema.field(column).type
            if column != source.time and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
                times = _changes(term, dict.fromkeys(source.schema.names), column, kind, start)
                found[column].append([value for _, value in times])
    # Interleave the comparisons' values, so that each constant precedes its neighbouring values.
    ordered = {column: [one for some in zip_longest(*near) for one in some] for column, near in found.items()}
    return {column: _flat([[one for one in some if one is not None]])[:MAX_VALUES] for column, some in ordered.items()}


def _matching(pattern: str) -> list[str]:
    """Return texts that match a regular expression; none if Python can't parse it."""
    letters = st.characters(min_codepoint=32, max_codepoint=126)
    with warnings.catch_warnings(action="ignore"):
        try:
            found = examples_of(st.from_regex(pattern_of(pattern), alphabet=letters), 0)
        except Exception:  # Python or Hypothesis can't parse the job's Java pattern
            return []
    return [*dict.fromkeys(sorted(found, key=lambda text: (len(text), text)))][:FEW]


def _near(value: Any, column: pa.Field, exact: bool) -> list[Any]:
    """Return a value in a column's type, and the next values below and above; empty if the value doesn't fit."""
    kind, near = column.type, []
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if not math.isfinite(value):
            return []
        value = Fraction(value)
    if isinstance(value, Fraction):
        with contextlib.suppress(OverflowError, ValueError):  # as a double, the value may be infinite or zero
            near = _near_number(value, kind, exact)
    elif isinstance(value, str) and pa.types.is_string(kind):
        near = [value, f"{value}x", value.swapcase(), value[:-1]]
    elif isinstance(value, date) and pa.types.is_date(kind):
        day = value.date() if isinstance(value, datetime) else value
        near = [day, day - timedelta(1), day + timedelta(1)]
    elif isinstance(value, date) and pa.types.is_timestamp(kind):
        time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        time = time if kind.tz else time.replace(tzinfo=None)
        near = [time, time - timedelta(microseconds=1), time + timedelta(microseconds=1)]
    fitting = []
    for one in near:
        try:
            (fits,) = plain_values(pa.array([one], kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
        if fits == one and one not in fitting:
            fitting.append(fits)
    return fitting


def _near_number(value: Fraction, kind: pa.DataType, exact: bool) -> list[Any]:
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1) // (TERMS if kind.bit_width == 64 else 1)  # sums must fit the type too
        whole = math.floor(value)
        numbers = (whole, whole - 1, whole + 1) if whole == value else (whole, whole + 1)
        return [number for number in numbers if abs(number) < most]
    if pa.types.is_decimal(kind):
        units, most = value * 10**kind.scale, (10**kind.precision - 1) // (1 if kind.precision <= 28 else TERMS)
        whole = math.floor(units)
        numbers = (whole, whole - 1, whole + 1) if whole == units else (whole, whole + 1)
        context = Context(prec=38)
        return [context.scaleb(Decimal(number), -kind.scale) for number in numbers if abs(number) <= most]
    if pa.types.is_floating(kind):
        step = Fraction(2) ** (math.floor(math.log2(abs(value))) - BITS) if value else Fraction(1, 4)
        below, above = math.ceil(value / step) - 1, math.floor(value / step) + 1
        is_dyadic = (value / step).denominator == 1
        return [*([float(value)] if is_dyadic or not exact else []), float(below * step), float(above * step)]
    if pa.types.is_string(kind) and value.denominator == 1:
        return [str(number) for number in (value.numerator, value.numerator - 1, value.numerator + 1)]
    return []


def _times_of(term: Term, source: Source, start: datetime) -> Iterator[int]:
    """Yield event times at which a comparison's result changes (µs since 1970)."""
    row: dict[str, Any] = dict.fromkeys(source.schema.names)
    if term.has_time_parts:
        kind = source.schema.field(source.time).type
        yield from (time_us for time_us, _ in _changes(term, row, source.time, kind, start, source))
        return
    for target in constants_of(term):
        try:
            solved = [*solutions(compared(term), target)]
        except (Unknown, *FAILURES):
            continue
        for column, value in solved:
            if column == source.time and isinstance(value, datetime):
                yield microseconds(value) - microseconds(value) % source.grain_us


def _changes(
    term: Term, row: Row, column: str, kind: pa.DataType, start: datetime, source: Source | None = None
) -> list[tuple[int, Any]]:
    """Return times before the histories' start at which a comparison's result changes (µs), each with the column's
    value at that time.
    """
    found: dict[int, Any] = {}
    for step_s, count in _GRIDS:
        step_us = step_s * 1_000_000
        last_us = microseconds(start) - microseconds(start) % step_us
        before, changes = None, []
        for number in range(count, -1, -1):
            time_us = last_us - number * step_us
            time: Any = from_microseconds(time_us) if source is None else source.time_of(time_us)
            if source is None:
                time = time.date() if pa.types.is_date(kind) else time if kind.tz else time.replace(tzinfo=None)
            try:
                now = outcome(term, as_given({**row, column: time}, source))
            except Unknown:
                return []
            if before is not None and now is not None and now != before:
                changes.append((time_us, time))
            before = now
        found.update(changes[-MAX_TIMES:])
    return [*found.items()]


def as_given(row: Row, source: Source | None) -> Row:
    """Return a row with the event time in the format of the job's input."""
    return row if source is None or source.encoding is None else source.encoding.plain(row)


def near_constants(history: JobHistory, inputs: Sequence[ResolvedInput], delay_us: int, seed: str) -> JobHistory:
    """Return a history in which values and times around constants replace some or all drawn values and times.

    Nulls stay null, equal rows stay equal, late rows stay late, and no other row becomes late.

    Args:
        history: The history, with a clock.
        inputs: The job's inputs.
        delay_us: The watermark's delay (µs).
        seed: The seed of the replacements.
    """
    if not any(given.constants.are_known for given in inputs):
        return history
    generator = random.Random(seed)
    if generator.random() >= SHARE:
        return history
    chosen = {given.name: _chosen(generator, given.constants) for given in inputs}
    may_pass = generator.random() < 0.5
    by_name = {given.name: given for given in inputs}
    known: dict[str, Arrival] = {}
    batches: list[list[Arrival]] = [[] for _ in history.batches]
    for number, batch in enumerate(history.batches):
        for arrival in batch:
            given, text = by_name[arrival.input], repr(arrival)
            passes = may_pass and generator.random() < 0.5
            if text not in known:
                row = dict(arrival.row)
                kinds = given.constants.passing if passes else chosen[arrival.input]
                for column, kind in kinds.items():
                    if row[column] is not None and (passes or generator.random() < OF_VALUE):
                        row[column] = generator.choice(kind)
                known[text] = Arrival(arrival.input, row)
            times_us = given.constants.passing_us if passes else given.constants.times_us
            share = 1 if passes else OF_TIME
            to, placed = number, known[text].row
            if times_us and not given.source.is_change_log and generator.random() < share:
                to, placed = _moved(generator, history.clock, number, placed, given.source, times_us, delay_us)
            batches[to].append(Arrival(arrival.input, placed))
    return history.with_batches(batches)


def _chosen(generator: random.Random, constants: BoundaryValues) -> dict[str, ColumnValues]:
    """Draw the columns of a history that get values around constants, and a few values for each column."""
    chosen = {}
    for column in dict.fromkeys([*constants.values, *constants.seldom]):
        often, seldom = constants.values.get(column, ()), constants.seldom.get(column, ())
        if generator.random() >= (OF_COLUMN if often else OF_FUNCTION):
            continue
        kinds = seldom if not often or (seldom and generator.random() < 0.25) else often
        one = generator.choice(kinds)
        if generator.random() < 0.5:
            one = _flat(kinds)
        chosen[column] = one if len(one) <= FEW else tuple(generator.sample(one, FEW))
    return chosen


def _moved(
    generator: random.Random,
    clock: Sequence[int],
    number: int,
    row: Row,
    source: Source,
    times_us: Sequence[int],
    delay_us: int,
) -> tuple[int, Row]:
    """Return a row with one of the given times, and its new batch: its own batch if a time fits there, otherwise the
    first batch.
    """
    horizon = clock[number - 1] - delay_us if number else None
    late = horizon is not None and source.time_us(row) <= horizon
    allowed = [us for us in times_us if us <= clock[number] and (horizon is None or (us <= horizon) == late)]
    if not allowed:
        number, allowed = 0, [us for us in times_us if us <= clock[0]]
    if not allowed:
        return number, row
    return number, {**row, source.time: source.time_of(generator.choice(allowed))}


def unreached(
    found: Sequence[Compares], inputs: Sequence[ResolvedInput], histories: Sequence[JobHistory], *, keys: bool
) -> list[str]:
    """Return, as texts, the results (true or false) of comparisons that no row of the histories produces.

    Args:
        found: The comparisons.
        inputs: The job's inputs.
        histories: The executed histories.
        keys: Whether the job received the histories' own keys, and not keys that contain the history's number.
    """
    left = []
    for given in inputs:
        source = given.source
        rows = {
            repr(row): as_given(row, source) for one in histories for name, row in one.arrivals if name == given.name
        }
        for term in (one.term for one in found if one.input == given.name):
            if not keys and not {*source.key}.isdisjoint(term.columns):
                continue
            wanted = [(term, True, shown(term)), (term, False, shown_negated(term))]
            if is_order(term) and {*term.columns}.isdisjoint((*given.pools, source.time)):
                same = equality_of(term)
                wanted.append((same, True, shown(same)))
            seen = [_outcomes(one, [*rows.values()]) for one, _, _ in wanted]
            for outcomes, (_, side, text) in zip(seen, wanted, strict=True):
                if outcomes is not None and side not in outcomes:
                    # The remedy for event times differs, because a user can't list event times as `values`.
                    remedy = " (another seed begins on another day)" if source.time in term.columns else ""
                    left.append(f"no drawn row of {given.name} has {text}{remedy}")
    return [*dict.fromkeys(left)]


def _outcomes(term: Term, rows: Sequence[Row]) -> set[bool | None] | None:
    """Return the results of a comparison on rows; None if the comparison contains an unsupported expression."""
    try:
        return {outcome(term, row) for row in rows}
    except Unknown:
        return None
