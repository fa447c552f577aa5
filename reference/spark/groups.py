"""Aggregation by columns: `groupBy(columns)`, with or without the event time, or without any columns.

Sources: `StateStoreSaveExec` (the event time of a group decides whether the group is late or closed; the mode decides
the output), `StateStoreRestoreExec` and `HashAggregateExec` (an aggregate without columns has one group from the first
batch on, and emits it in each batch).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .aggregates import AggregateFunction, Mode, Row


@dataclass(frozen=True)
class Groups:
    """An aggregation by columns.

    Attributes:
        columns: The columns of a group; nulls are equal. If empty, all rows form one group.
        time: The grouping column that is the event time, in microseconds since 1970; None if no grouping column is.
        aggregates: The aggregates, by the name of their output column.
        mode: The output mode; Spark refuses `append` without an event time among the columns.
    """

    columns: tuple[str, ...]
    time: str | None
    aggregates: Mapping[str, AggregateFunction]
    mode: Mode = "append"


class GroupsState:
    """The rows of each open group."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.rows: dict[tuple[Any, ...], list[Row]] = {} if groups.columns else {(): []}

    def batch(self, rows: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Row]:
        """Process the rows of a micro-batch, and return the emitted rows: columns and aggregates."""
        groups, updated = self.groups, dict[tuple[Any, ...], None]() if self.groups.columns else {(): None}
        for row in rows:
            group = tuple(row[column] for column in groups.columns)
            if groups.mode == "complete" or not self.is_closed(group, late_ms):
                self.rows.setdefault(group, []).append(row)
                updated[group] = None
        if groups.mode == "complete":
            return [self.result(group) for group in self.rows]
        closed = [group for group in self.rows if self.is_closed(group, eviction_ms)]
        emitted = [self.result(group) for group in (closed if groups.mode == "append" else updated)]
        for group in closed:
            del self.rows[group]
        return emitted

    def is_closed(self, group: tuple[Any, ...], watermark_ms: int) -> bool:
        """Return whether a group's event time is at or before a watermark."""
        time_us = dict(zip(self.groups.columns, group, strict=True)).get(self.groups.time or "")
        return time_us is not None and time_us <= watermark_ms * 1_000

    def result(self, group: tuple[Any, ...]) -> Row:
        """Return the output row of a group."""
        aggregates = {name: aggregate.of(self.rows[group]) for name, aggregate in self.groups.aggregates.items()}
        return dict(zip(self.groups.columns, group, strict=True)) | aggregates
