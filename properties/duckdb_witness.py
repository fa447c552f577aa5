"""The witness that runs on DuckDB: one SQL statement an operator over the whole cohort, independent of the reference.

The statements are in `sql/`. Each works out the clock, lateness, matches and results from the arrivals by itself;
`duckdb_relation` only lays the arrivals out as a table, and `duckdb_answers` reads the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..reference.declarations import Definition
from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.joins import ForeignKeyJoin
from ..reference.operators import operator_named
from ..reference.windows import SessionWindows
from .duckdb_answers import narrowed, results_of
from .duckdb_relation import COMPARED, Cohort, read_statement, relation, run
from .outcomes import Grain, Outcome


def tables(histories: Sequence[History]) -> list[Outcome]:
    """Give the result of every history at its end; histories of the same options and clock share one statement.

    Returns:
        Outcomes in the order of the histories, at grain `END`; `final` is the table `{(key, window): (value,
        timestamp)}` in ms, or of a stream the bag of its results. A sum of floats adds its members in order, and may
        differ in the last digit from a sum of sums.

    Raises:
        BadInput: DuckDB has no statement for what is asked (messages of a foreign-key join that wait to be delivered),
            the operator can't take a record, a whole number or a sum of them has more than 38 digits, or `min` or `max`
            is to compare strings with numbers.
    """
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, history in enumerate(histories):
        options = tuple(sorted((name, repr(value)) for name, value in history.options.items()))
        groups[history.operator, options, history.clock].append(place)
    outcomes: dict[int, Outcome] = {}
    for (name, _, clock), places in groups.items():
        definition = operator_named(name).declare(histories[places[0]].options)
        if isinstance(definition, ForeignKeyJoin) and definition.delivery == "manual":
            raise BadInput(
                f"duckdb has no statement for {name} with delivery manual: it knows no schedule; use another witness"
            )
        cohort = Cohort([histories[place] for place in places], definition)
        answer = _answer(name, cohort.relation(), definition, clock)
        for place, result in zip(places, results_of(cohort, answer, len(places)), strict=True):
            outcomes[place] = Outcome(
                histories[place].name, Grain.END, final=result, knows_dropped=False, is_stream=definition.is_stream
            )
    return [outcomes[place] for place in range(len(histories))]


def session_table(arrivals: pa.Table, windows: SessionWindows, clock: str = "batch") -> pa.Table:
    """Give the sessions of one big history at its end, without a Python object for each record.

    The statement takes as many steps as the busiest key has records, about a millisecond each.

    Args:
        arrivals: A row a record, in order of arrival: key (string, null for none), value (whole numbers, floats,
            strings, or anything for `count` and `list`), timestamp (bigint, ms) and batch (bigint, never falling).
        windows: The session windows.
        clock: `batch` or `stream_time`.

    Returns:
        A row a session, by key, end and start: key (string), start and end (bigint, ms; timestamps of records), and
        value: bigint for a count or for whole numbers (decimal where bigint is too narrow), double, string, or a list.

    Raises:
        BadInput: The aggregate can't take the values' type, or a sum has more than 38 digits.
    """
    rows, name = arrivals.num_rows, windows.aggregate.name
    values = arrivals.column("value").combine_chunks()
    keys = arrivals.column("key").combine_chunks().dictionary_encode()
    column = _column_for(values.type)
    if name in COMPARED and (column is None or (name, column) == ("sum", "text")):
        raise BadInput(f"{name} can't take values of type {values.type}: cast the column to bigint or double")
    laid_out = relation(
        {column: values} if column is not None and name in COMPARED else {},
        history=pa.repeat(pa.scalar(0, pa.int64()), rows),
        batch=arrivals.column("batch"),
        heartbeat=pa.repeat(pa.scalar(False), rows),
        key=keys.indices.cast(pa.int64()),
        timestamp=arrivals.column("timestamp"),
    )
    answer = _answer("session_windows", laid_out, windows, clock)
    value = answer.column("value")
    match name:
        case "count":
            pass
        case "list":
            value = _pick(values, value.combine_chunks())
        case _:
            value = narrowed(pc.struct_field(value, column))
    sessions = pa.table(
        {
            "key": keys.dictionary.take(answer.column("key").combine_chunks()),
            "start": answer.column("window_start"),
            "end": answer.column("window_end"),
            "value": value,
        }
    )
    by = sessions.select(["key", "end", "start"])
    return sessions.take(pc.sort_indices(by, [("key", "ascending"), ("end", "ascending"), ("start", "ascending")]))


def _answer(operator: str, arrivals: pa.Table, definition: Definition, clock: str) -> pa.Table:
    return run(read_statement(operator), arrivals, definition, clock)


def _column_for(kind: pa.DataType) -> str | None:
    """The part of a value that takes this type."""
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind):
        return "fraction"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _pick(values: Any, positions: Any) -> Any:
    """Lists of values from lists of their positions."""
    lengths = pc.list_value_length(positions).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pc.list_flatten(positions)))
