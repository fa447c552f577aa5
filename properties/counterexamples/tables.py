"""Tables as text: the arrivals of a history, and the expected and emitted rows side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..generators.columns.formatting import cell, shortened
from ..generators.columns.forms.rows import Row, from_microseconds
from ..generators.columns.model import JobHistory, Source, Unreadable
from ..laws.expected.comparison import unmatched
from ..outcomes.equality import TWELVE_DIGITS, Equality
from ..system.visible import visible

MOST_ROWS = 40
"""The largest number of rows in a table; the last line counts the omitted rows."""
WIDEST = 10_000
"""The width of a table in characters: lines aren't wrapped, because a search would miss wrapped text."""

RowSide: TypeAlias = Literal["only expected", "only emitted", "both"]
WATERMARKS = ("late up to", "watermark after", "event time reached")
RUNS_AT = "runs at"
"""The title of the clock's column if the job uses processing time."""
MARKS: Mapping[RowSide, str] = {"only expected": "≠ only expected", "only emitted": "≠ only emitted", "both": "  both"}


class BatchWatermarks(NamedTuple):
    """The watermarks of a batch (µs since 1970); None before the first watermark.

    Attributes:
        late_us: The watermark at or before which rows of the batch are late.
        after_us: The watermark after the batch.
    """

    late_us: int | None
    after_us: int | None


@dataclass(frozen=True)
class RowAndSide:
    """A row of a job's result: expected, emitted, or both.

    Attributes:
        when: The batch, as `batch 0`, or `at the end`.
        side: Whether the row is only expected, only emitted, or both.
        row: The row; the emitted row if the row is expected and emitted.
    """

    when: str
    side: RowSide
    row: Row


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines, indented by two spaces, without empty columns."""
    kept = [number for number in range(len(head)) if any(row[number] for row in rows)]
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=any(head), header_style="")
    for number in kept:
        table.add_column(Text(visible(head[number])), no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[number]) for number in kept))
    file = io.StringIO()
    Console(file=file, width=WIDEST, color_system=None, legacy_windows=False).print(table)
    return [f"  {line}".rstrip() for line in file.getvalue().splitlines()]


def arrivals_table(
    history: JobHistory,
    sources: Sequence[Source],
    watermarks: Sequence[BatchWatermarks],
    *,
    processing_time: bool = False,
) -> list[str]:
    """Return a table of a history's arrivals, as lines.

    Args:
        history: The history.
        sources: The job's inputs.
        watermarks: The watermarks of each batch; empty if unknown.
        processing_time: Whether the clock is processing time, at which the batches run.
    """
    several = len(sources) > 1
    columns = list(dict.fromkeys(name for source in sources for name in source.schema.names))
    source_of = {source.name: source for source in sources}
    *watermarked, reached = WATERMARKS
    clock = RUNS_AT if processing_time else reached
    head = ["", "input" if several else "", *columns, "payload", *watermarked, clock]
    lines: list[list[str]] = []
    left_out = 0
    for number, batch in enumerate(history.batches):
        times = [
            *(watermarks[number] if watermarks else (None, None)),
            history.clock[number] if history.clock else None,
        ]
        of_batch = ["" if time_us is None else cell(from_microseconds(time_us)) for time_us in times]
        arriving: list[tuple[str, Row, str]] = [(name, row, "") for name, row in batch]
        for one in history.unreadable_in(number):
            arriving.append((one.input, {}, _payload(source_of[one.input], one)))
        if not arriving and len(history.batches) > 1:
            lines.append([f"{history.name_of(number)}, no rows", *[""] * (len(columns) + 2), *of_batch])
        for nth, (name, row, payload) in enumerate(arriving):
            if len(lines) >= MOST_ROWS:
                left_out += len(arriving) - nth
                break
            values = [*(cell(row[column]) if column in row else "" for column in columns), payload]
            label = history.name_of(number) if nth == 0 else ""
            lines.append([label, name if several else "", *values, *(of_batch if nth == 0 else [""] * len(of_batch))])
    shown = grid(head, lines) if lines else ["  nothing"]
    return shown + [f"  … and {left_out:,} more rows"] * (left_out > 0)


def _payload(source: Source, unreadable: Unreadable) -> str:
    """Return the fault and the payload of an unreadable record, as text."""
    assert source.encoding is not None
    value = source.encoding.payload(unreadable.row, f"input {source.name}", unreadable.fault)
    return (
        unreadable.fault if not value else f"{unreadable.fault}: {shortened(visible(value.decode(errors='replace')))}"
    )


def result_rows(
    expected: Sequence[Sequence[Row]],
    emitted: Sequence[Sequence[Row]],
    when: Sequence[str],
    equality: Equality = TWELVE_DIGITS,
) -> list[RowAndSide]:
    """Return the rows of each batch: first the rows that are only expected, then the emitted rows.

    Args:
        expected: The rows of each batch.
        emitted: The emitted rows of each batch; columns that some row lacks aren't compared.
        when: The name of each batch.
        equality: When two values count as equal.
    """
    all_rows = [row for rows in (*expected, *emitted) for row in rows]
    columns = sorted(set(all_rows[0]).intersection(*all_rows)) if all_rows else []
    found: list[RowAndSide] = []
    for of_expected, of_emitted, name in zip(expected, emitted, when, strict=True):
        missing, surplus = unmatched(of_expected, of_emitted, columns, equality)
        found += [RowAndSide(name, "only expected", of_expected[at]) for at in missing]
        found += [
            RowAndSide(name, "only emitted" if at in surplus else "both", row) for at, row in enumerate(of_emitted)
        ]
    return found


def results_table(rows: Sequence[RowAndSide]) -> list[str]:
    """Return rows as a table; if there are too many rows, rows that are both expected and emitted are omitted."""
    shown = [*rows]
    same, more = 0, 0
    if len(shown) > MOST_ROWS:
        shown = [row for row in rows if row.side != "both"]
        same = len(rows) - len(shown)
        more = max(0, len(shown) - MOST_ROWS)
        shown = shown[:MOST_ROWS]
    columns = list(dict.fromkeys(name for row in shown for name in row.row))
    lines = []
    for when, group in groupby(shown, lambda row: row.when):
        for nth, one in enumerate(group):
            values = [cell(one.row[column]) if column in one.row else "" for column in columns]
            lines.append([when if nth == 0 else "", MARKS[one.side], *values])
    found = grid(["", "", *columns], lines) if lines else ["  nothing"]
    found += [f"  … and {more:,} more rows that differ"] * (more > 0)
    return found + [f"  … and {same:,} rows that are the same"] * (same > 0)
