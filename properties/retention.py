"""The law of retention: operators that keep rows for ever, as their definitions have it, may be told to forget.

What they tell within the parameter `retention` is what the reference tells, which knows no such parameter; and long
after it nothing is left that it bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.play import Entry, play
from ..reference.records import Change, Dropped, Record
from ..reference.windows import WindowedTable
from .bindings.range_aggregate import build as build_range_aggregate
from .bindings.windowed_table import build as build_windowed_table
from .cohorts import Cohort, clock_schedule, owner, with_heartbeats
from .laws import Law, record_batches
from .outcomes import Difference, Outcome, differences
from .spark_witness import Plan
from .streams import StreamOutput


class Retained(NamedTuple):
    """A definition, as its shape's with options that differ, and the retention (ms) that it is asked with."""

    changed: Mapping[str, Any]
    retention_ms: int


RETAINED: Mapping[str, Mapping[str, Retained]] = {
    "range_aggregate": {"list": Retained({"preceding_ms": 20}, 15)},
    "windowed_table": {
        "with table": Retained({}, 11),
        "looked up by a stream": Retained({}, 11),
        "looked up by a table": Retained({}, 11),
    },
}
"""By operator and shape. A row must be reached from behind the next batch's clock, so a range is longer than a step of
the schedule; and a window ends so that it is kept just long enough for the clock of some batch."""

_BUILDS: Mapping[str, Callable[..., Any]] = {
    "range_aggregate": build_range_aggregate,
    "windowed_table": build_windowed_table,
}


def retention_law(operator: str) -> Law:
    """Give the law, which must have met records on both sides of the retention under every definition."""
    met = [f"{side} the retention ({shape})" for shape in RETAINED[operator] for side in ("within", "beyond")]
    return Law("retention", "within its retention a row counts as if kept for ever, and then it is gone", tuple(met))


def retention_plan(operator: str, options: Mapping[str, Any], retention_ms: int, logic: Any = None) -> Plan:
    """Give the plan that runs an operator with a retention (ms), and reads what is left in its state."""
    definition = operator_named(operator).declare(options)
    job = partial(_BUILDS[operator], definition, logic=logic, state_groups=None, retention=f"{retention_ms} ms")
    return Plan(job=job, read_state=True)


def retention_broken(history: History, retention_ms: int, outcome: Outcome) -> list[Difference]:
    """Judge what Spark told with a retention (ms): give where it parts from the reference within that retention."""
    if history.operator == "range_aggregate":
        return differences(_answered(history, retention_ms), replace(outcome, knows_dropped=True))
    reference = Outcome.of_play(history.name, play(history))
    return differences(_within(history, retention_ms, reference), _within(history, retention_ms, outcome))


def still_kept(cohort: Cohort, output: StreamOutput) -> list[list[str]]:
    """For each history, its keys of which rows or windows are left; the row of a table may stay."""
    keys: list[list[str]] = [[] for _ in cohort.histories]
    for row in output.leftover:
        for group in row["value"]["keys"]:  # type: ignore[index]
            bounded = [held for name, held in group.items() if isinstance(held, list)]
            if any(bounded) and (owned := owner(group["key_0"])) is not None:
                keys[owned[0]].append(owned[1])
    return keys


def retention_situations(history: History, retention_ms: int) -> set[str]:
    """Name the sides of the retention on which a history's late records lie."""
    if history.operator == "range_aggregate":
        late = [(clock - record.timestamp, record) for clock, record in _with_clock(history)]
        ages = [age for age, _ in late if age > 0]
        return {"beyond the retention" if age > retention_ms else "within the retention" for age in ages}
    table, found = operator_named(history.operator).declare(history.options), set()
    for entry in play(history).entries:
        end, clock = _end_told(table, entry), _clock_of(history, entry.batch)
        if end is not None and end + table.grace_ms <= clock:
            beyond = end + table.grace_ms + retention_ms <= clock
            found.add("beyond the retention" if beyond else "within the retention")
    return found


def _clock_of(history: History, batch: int) -> int:
    """What the batch clock says in a batch (ms)."""
    return clock_schedule(history)[batch - 1] if batch else 0


def _with_clock(history: History) -> Iterator[tuple[int, Record]]:
    for batch, records in enumerate(record_batches(history)):
        clock = _clock_of(history, batch)
        yield from ((clock, record) for record in records)


def _answered(history: History, retention_ms: int) -> Outcome:
    """What the reference answers without the records beyond the retention, which are told as dropped."""
    kept: list[list[Record]] = []
    dropped: list[Entry] = []
    for batch, records in enumerate(record_batches(history)):
        edge = _clock_of(history, batch) - retention_ms
        kept.append([record for record in records if record.timestamp >= edge])
        late = [record for record in records if record.timestamp < edge]
        dropped += [Entry(-1, batch, Dropped(record.key, "late")) for record in late]
    played = play(replace(history, lines=with_heartbeats(kept, clock_schedule(history))))
    outcome = Outcome.of_play(history.name, played)
    return replace(outcome, entries=[*outcome.entries, *dropped])


def _within(history: History, retention_ms: int, outcome: Outcome) -> Outcome:
    """An outcome without what it says of windows beyond the retention, which may have been forgotten by then."""
    table: WindowedTable = operator_named(history.operator).declare(history.options)
    entries = []
    for entry in outcome.entries:
        end = _end_told(table, entry)
        if end is None or end + table.grace_ms + retention_ms > _clock_of(history, entry.batch):
            entries.append(entry)
        elif table.looked_up and isinstance(entry.output, Change):
            # The row that looks up is told in any case, with the window or in vain.
            change = entry.output._replace(value=[entry.output.value[0], None], timestamp=0)
            entries.append(entry._replace(output=change))
    return replace(outcome, entries=entries)


def _end_told(table: WindowedTable, entry: Entry) -> int | None:
    """When the window ends (ms) that an entry tells of; None if it tells of none."""
    change = entry.output
    if not isinstance(change, Change):
        return None
    if not table.looked_up:
        return None if change.window is None else change.window[1]
    window = None if change.value is None else table.looked_up_window(change.value[0])
    return None if window is None else window[1]
