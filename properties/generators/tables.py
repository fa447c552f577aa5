"""Deletes the remaining rows of a history's tables, so that the operator can remove all its state."""

from __future__ import annotations

from ...reference.core.history import History
from ...reference.core.play import Played, play
from ...reference.core.records import Record
from ..registration.registration import registration_of
from .cohorts import clock_schedule, record_batches, with_clock_advances


def changes_of_rows(history: History, played: Played) -> list[Record]:
    """Return the changes of the tables in a history; the operator stores each row of these tables until the row is
    deleted.

    Args:
        history: The history.
        played: The reference's run of the history, which shows the dropped records.
    """
    tables = registration_of(history.operator).tables_stored(played.definition)
    return [accepted.record for accepted in played.accepted if accepted.record.input in tables]


def rows_stored(history: History, played: Played) -> list[Record]:
    """Return the final rows of a history's tables; arguments as in `changes_of_rows`."""
    rows = {(record.input, record.key): record for record in changes_of_rows(history, played)}
    return [row for row in rows.values() if row.value is not None]


def emptied(history: History) -> History:
    """Return a history whose last batch deletes every row of its tables, the earliest rows first.

    A tombstone has the timestamp of its row, so that the history's clock doesn't change.
    """
    batches = record_batches(history)
    batches[-1] += [row._replace(value=None) for row in rows_stored(history, play(history))]
    return history.with_lines(with_clock_advances(batches, clock_schedule(history)))
