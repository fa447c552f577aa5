"""Compare a job's output with the expected output: rows without order, batch by batch, or tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, product
from typing import Any, TypeAlias

from ....reference.core.errors import BadInput
from ...generators.columns.formatting import cell
from ...generators.columns.forms.rows import Row
from ...generators.columns.model import Comparing, Expected, Source
from ...outcomes.equality import TWELVE_DIGITS, Equality, comparable
from ...outcomes.outcomes import Difference
from ...witnesses.job.rows import flat
from ...witnesses.run_options import Mode

STRENGTHS: Mapping[Comparing, str] = {
    "batches": "the rows of each batch, as a bag",
    "cuts": "the table after each batch",
    "end": "the table at the end",
}
"""The compared output of each kind of comparison, as text."""
MOST_COMPARED = 20
"""The largest number of rows on each side among which a comparison searches for similar rows."""


def in_words(comparing: Comparing, equality: Equality) -> str:
    """Return a phrase for reports: the compared rows or tables, and how exactly values must agree."""
    return f"{STRENGTHS[comparing]}; {equality}"


def both_flat(
    expected: Sequence[Sequence[Row]], emitted: Sequence[Sequence[Row]]
) -> tuple[list[list[Row]], list[list[Row]]]:
    """Return the expected and the emitted batches with windows as columns `start` and `end`, unless both sides have the
    same window column.
    """
    came = [flat(rows) for rows in emitted]
    known = columns_of(came)
    return [flat(rows, known) for rows in expected], came


def columns_of(batches: Iterable[Sequence[Row]]) -> list[str]:
    """Return the names of the columns in rows, each once, in order of appearance."""
    return list(dict.fromkeys(column for rows in batches for row in rows for column in row))


def table_of(batches: Sequence[Sequence[Row]], mode: Mode, unique: Sequence[str] | None) -> list[list[Row]]:
    """Return the table after each batch, from the rows that the batches emit.

    Args:
        batches: The emitted rows of each batch.
        mode: `append`: all rows so far; `update`: the last row for each value of `unique`; `complete`: the rows of the
            batch.
        unique: The columns that identify the rows of the table; None: no row replaces another row.
    """
    if mode == "complete":
        return [list(batch) for batch in batches]
    tables: list[list[Row]] = []
    rows: list[Row] = []
    by_key: dict[Any, Row] = {}
    for batch in batches:
        if mode == "append" or unique is None:
            rows = [*rows, *batch]
        else:
            by_key |= {comparable([row.get(column) for column in unique]): row for row in batch}
            rows = list(by_key.values())
        tables.append(rows)
    return tables


def difference(
    expected: Expected,
    batches: Sequence[Sequence[Row]],
    mode: Mode,
    unique: Sequence[str] | None,
    equality: Equality = TWELVE_DIGITS,
) -> Difference | None:
    """Return the first difference between emitted and expected rows in the expected columns; None if there is none.

    Args:
        expected: The expected outcome.
        batches: The emitted rows of each batch; for a sink, one list with the final table.
        mode: The job's output mode.
        unique: The columns that identify the rows of the table; None: no row replaces another row.
        equality: The rule by which two values count as equal.
    """
    wanted, came = both_flat(expected.rows, batches)
    columns = sorted(columns_of(wanted))
    if expected.comparing != "batches":
        came = table_of(came, mode, unique)
    if expected.comparing == "end" or len(came) < len(wanted):
        wanted, came = wanted[-1:], came[-1:]
    for batch, (of_expected, of_actual) in enumerate(zip(wanted, came, strict=True)):
        missing, surplus = unmatched(of_expected, of_actual, columns, equality)
        if missing or surplus:
            at_end = expected.comparing == "end" or len(expected.rows) > len(wanted)
            return Difference(
                None if at_end else batch,
                [_only(columns, of_expected[at]) for at in missing],
                [_only(columns, of_actual[at]) for at in surplus],
            )
    return None


def is_alike(found: Difference, shrunk: Difference) -> bool:
    """Return whether the difference on a smaller history may have the same cause as the difference before shrinking.

    The cause may be the same if the same columns differ, or if one side lacks rows in both differences. A differing
    value may also become a missing row in the smaller history.
    """
    if not (found.expected and found.actual):
        return (bool(found.expected), bool(found.actual)) == (bool(shrunk.expected), bool(shrunk.actual))
    return not (shrunk.expected and shrunk.actual) or not _differing(found).isdisjoint(_differing(shrunk))


def _differing(difference: Difference) -> set[str]:
    """Return the columns in which an expected row differs from the most similar emitted row."""
    pairs = product(difference.expected[:MOST_COMPARED], difference.actual[:MOST_COMPARED])
    each = ({name for name in one if comparable(one[name]) != comparable(other.get(name))} for one, other in pairs)
    return min(each, key=len)


def _only(columns: Sequence[str], row: Row) -> Row:
    return {column: value for column, value in row.items() if column in (columns or row)}


def unmatched(
    expected: Sequence[Row], actual: Sequence[Row], columns: Sequence[str], equality: Equality
) -> tuple[list[int], list[int]]:
    """Return the indexes of expected rows that aren't emitted, and of emitted rows that aren't expected; compare the
    given columns, by default all.
    """
    compared = columns or sorted(columns_of([expected, actual]))
    bags = ([[row.get(column) for column in compared] for row in rows] for rows in (expected, actual))
    return equality.unmatched(*bags)


def with_columns(expected: Sequence[Expected], columns: Sequence[str]) -> tuple[list[Expected], list[str]]:
    """Reduce the expected rows to the columns of a job's result; return the reduced rows and the omitted columns.

    If the result contains none of the expected columns, return the expected rows unchanged.
    """
    as_flat = [replace(one, rows=[flat(rows, columns) for rows in one.rows]) for one in expected]
    names = columns_of(rows for one in as_flat for rows in one.rows)
    left_out = [name for name in names if name not in columns]
    if len(left_out) == len(names):
        return [*expected], []
    return [
        replace(one, rows=[[_only(columns, row) for row in rows] for rows in one.rows]) for one in as_flat
    ], left_out


def check_columns(expected: Sequence[Expected], columns: Sequence[str], where: str) -> list[str]:
    """Return the columns of the result that no expected row has.

    Args:
        expected: The expected outcomes of all histories.
        columns: The columns of the job's result, with a window as columns start and end.
        where: The job's name in messages.

    Raises:
        BadInput: The job's result lacks an expected column.
    """
    wanted = columns_of(flat(rows, columns) for one in expected for rows in one.rows)
    missing = [column for column in wanted if column not in columns]
    if missing:
        named = " and ".join(map(repr, missing))
        remedy = f"let the job call its column {named} with .alias(), or expect the job's names"
        if {"start", "end"} & {*missing}:
            remedy = "let the job keep its window, as a column of any name or as its two fields start and end"
            remedy += f", or expect the job's columns: result={_as_result(columns, wanted, missing)} of the rule"
        raise BadInput(
            f"{where}: the result has the columns {', '.join(columns) or 'none'}, and not {named}; expected are "
            f"{', '.join(wanted)}: {remedy}"
        )
    return [column for column in columns if wanted and column not in wanted]


def _as_result(columns: Sequence[str], wanted: Sequence[str], missing: Sequence[str]) -> str:
    """Return an example for a rule's argument `result=`, which maps an unexpected column of the job to a missing column
    of the rule.
    """
    same, others = ([column for column in columns if (column in wanted) is side] for side in (True, False))
    if not others:
        return json.dumps(same, ensure_ascii=False)
    return json.dumps({**{column: column for column in same}, others[0]: missing[0]}, ensure_ascii=False)


def in_their_form(
    expected: Sequence[Expected], emitted: Sequence[Sequence[Sequence[Row]]], sources: Sequence[Source]
) -> list[Expected]:
    """Return expected outcomes with event times in the source's format (such as milliseconds), if the job emits this
    format.

    Args:
        expected: The expected outcome of each history, with timestamps.
        emitted: The rows of each batch that the job emits for each history.
        sources: The job's inputs.
    """
    forms = {source.time: form for source in sources if source.encoding and (form := source.encoding.shown_form)}
    if not forms:
        return [*expected]
    only = next(iter(forms.values())) if len({*forms.values()}) == 1 else None
    by_column: dict[str, set[bool]] = {}
    for rows in chain.from_iterable(emitted):
        for row in rows:
            for name, value in row.items():
                if value is not None:
                    by_column.setdefault(name, set()).add(isinstance(value, datetime))
    changed = {
        name: form for name, are_times in by_column.items() if not any(are_times) and (form := forms.get(name, only))
    }

    def shown(name: str, value: Any) -> Any:
        return changed[name].of(value) if name in changed and isinstance(value, datetime) else value

    return [
        replace(
            one, rows=[[{name: shown(name, value) for name, value in row.items()} for row in rows] for rows in one.rows]
        )
        for one in expected
    ]


Kinds: TypeAlias = dict[str, dict[Any, Any]]
"""The types of each column's non-null values, each with an example."""


def note_kinds(kinds: Kinds, batches: Iterable[Sequence[Row]]) -> None:
    """Record the types of the values in rows."""
    for rows in batches:
        for row in flat(rows):
            for column, value in row.items():
                if value is not None:
                    shape, _ = comparable(value)
                    kinds.setdefault(column, {}).setdefault(shape[0] if isinstance(shape, tuple) else shape, value)


def check_kinds(wanted: Kinds, came: Kinds, where: str) -> None:
    """Refuse rows from a sink whose values have other types than expected, because some stores support few types.

    Args:
        wanted: The types of all expected values so far.
        came: The types of the values read from the sink.
        where: The job's name in messages.

    Raises:
        BadInput: All values of a column are text, but none of the expected values is; or all are numbers, but times or
            truth values are expected.
    """
    for column in sorted(wanted.keys() & came.keys()):
        if len(came[column]) > 1 or len(wanted[column]) > 1:
            continue
        ((kind, value),), ((kind_wanted, value_wanted),) = came[column].items(), wanted[column].items()
        if (kind == "str" and kind_wanted != "str") or (kind == "number" and kind_wanted in ("date", "time", "truth")):
            raise BadInput(
                f"{where}: in the column {column!r} the sink has {cell(value)}, but the expected value "
                f'{cell(value_wanted)} has another type: declare the type with schema="{column} …", let read '
                "return it, or expect text"
            )
