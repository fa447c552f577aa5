"""Coverage goals of an operator: the cases (such as a late record) that histories must contain before it conforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...reference.core.history import History
from ...reference.core.play import Played
from ...reference.core.records import Change, Record


@dataclass(frozen=True)
class Coverage:
    """The coverage goals of an operator: a law is inconclusive until histories cover all goals.

    Every operator has additional goals: records out of order, two keys, null keys dropped (or not).

    Attributes:
        met: Returns the names of the goals that a history covers, given the history and the reference's run of it. The
            names need not be in `goals`.
        goals: Returns the goals of a definition, each of which at least one history must cover.
        impossible_under_stream_time: Returns the goals of a definition that no history without cuts can cover.
        of_variants: The goals that at least one history must cover, by the name of a law that compares histories with
            variants of them.
    """

    met: Callable[[History, Played], Iterable[str]]
    goals: Callable[[Any], Iterable[str]]
    impossible_under_stream_time: Callable[[Any], Iterable[str]] = lambda definition: ()
    of_variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def accepted_records(played: Played) -> list[Record]:
    """Return the records that the reference accepted."""
    return [taken.record for taken in played.accepted]


def changes_of(played: Played) -> list[Change]:
    """Return the changes that the reference emitted."""
    return [entry.output for entry in played.entries if isinstance(entry.output, Change)]


def rows_changed(records: Iterable[Record]) -> Iterable[str]:
    """Yield the kind of each change of a table's row: a change, a delete, or a delete of a missing row."""
    rows: dict[tuple[str, str | None], Any] = {}
    for record in records:
        old = rows.get((record.input, record.key))
        if old is not None:
            yield "row deleted" if record.value is None else "row changed"
        elif record.value is None:
            yield "missing row deleted"
        rows[record.input, record.key] = record.value
