"""Compare witnesses on a data set: one large history, in its real order of arrival, cut into micro-batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from ...reference.core.errors import BadInput
from ...reference.core.history import CUT, History, Line
from ...reference.core.operator import operator_named
from ...reference.core.records import Change, Dropped, Record
from ...reference.definitions.windows import SessionWindows
from ..outcomes.equality import EXACT, Equality
from ..outcomes.outcomes import Difference, Grain, Outcome, differences
from ..witnesses.base import Witness
from .data import DataSet, check_values

SUMS = Equality(9)
"""The tolerance for sums of thousands of floating-point numbers, which witnesses add in different orders."""
SHOWN = 20
"""The largest number of differences in a `ComparedData`."""


@dataclass(frozen=True)
class ComparedData:
    """The result of comparing witnesses on a data set.

    Attributes:
        verdict: `conforms`, `violated`, or `inconclusive` if there was nothing to compare.
        why: The verdict in one sentence.
        witnesses: The names of the witnesses; the first witness is compared with each other witness.
        rows: The number of records, null keys included.
        batches: The number of micro-batches.
        sessions: The number of sessions in the first witness's table.
        changes: The number of emitted changes, including tombstones; 0 if only tables were compared.
        tombstones: The number of tombstones that the witness emitted.
        merges: The number of records that joined two or more sessions; None without the reference, or without
            tombstones (`emit` is `close`).
        dropped: The dropped records by reason, for each witness that reports them.
        seconds: The run time of each witness.
        compared: What was compared, and the tolerance, by the name of the other witness.
        differences: The first differences, each with the name of the witness that differs from the first witness.
    """

    verdict: Literal["conforms", "violated", "inconclusive"]
    why: str
    witnesses: tuple[str, ...]
    rows: int
    batches: int
    sessions: int = 0
    changes: int = 0
    tombstones: int = 0
    merges: int | None = None
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    compared: dict[str, str] = field(default_factory=dict)
    differences: list[tuple[str, Difference]] = field(default_factory=list)


def compare_data(
    data: DataSet,
    options: Mapping[str, Any],
    witnesses: Sequence[Witness],
    batches: int = 12,
    progress: Callable[[str], None] | None = None,
) -> ComparedData:
    """Run session windows over a data set on several witnesses, and compare the first witness with each other witness.

    `history_of` divides the data set into micro-batches. Witnesses that emit changes are compared by the ordered
    changes of each key in each batch, and by dropped records. A witness that emits only a final table (`duckdb`) is
    compared by that table. Sums of floating-point numbers are compared to nine digits, because the order of addition
    varies.

    Args:
        data: The data set.
        options: The options of `session_windows`, as in a history file; durations in ms.
        witnesses: The witnesses (systems that run the history); of several witnesses with the same name, only the last
            runs.
        batches: The number of micro-batches; at most the number of rows.
        progress: A function that is called with the name of each step before the step starts.

    Raises:
        BadInput: The options are invalid, `batches` isn't positive, the aggregate doesn't accept the data's values, or
            a witness refuses them.
    """
    report = progress or (lambda step: None)
    asked = {witness.name: witness for witness in witnesses}
    names = tuple(asked)
    if batches < 1:
        raise BadInput(f"batches is {batches}: give a positive number")
    windows: SessionWindows = operator_named("session_windows").declare(options)
    check_values(data, windows.aggregate)
    history = history_of(data, options, batches)
    rows, cuts = data.table.num_rows, len(history.batches) if data.table.num_rows else 0
    if not rows:
        return ComparedData("inconclusive", f"{data.name} has no rows.", names, rows, cuts)
    for witness in asked.values():
        if (reason := witness.refuses(history)) is not None:
            raise BadInput(reason)
    outcomes, seconds = _outcomes(asked, history, report)
    compared, found = _compared(outcomes, windows, report)
    sessions = len(outcomes[names[0]].result) if names else 0
    verdict, why = _verdict(names, sessions, found)
    emitting = {name: outcome for name, outcome in outcomes.items() if outcome.grain is not Grain.END}
    entries = next((outcome.entries for outcome in emitting.values()), [])
    changes = [entry.output for entry in entries if isinstance(entry.output, Change)]
    return ComparedData(
        verdict=verdict,
        why=why,
        witnesses=names,
        rows=rows,
        batches=cuts,
        sessions=sessions,
        changes=len(changes),
        tombstones=sum(change.value is None for change in changes),
        merges=_merges(outcomes.get("reference"), windows),
        dropped={name: _dropped(outcome) for name, outcome in emitting.items() if outcome.knows_dropped},
        seconds=seconds,
        compared=compared,
        differences=found[:SHOWN],
    )


def _outcomes(
    witnesses: Mapping[str, Witness], history: History, report: Callable[[str], None]
) -> tuple[dict[str, Outcome], dict[str, float]]:
    """Return each witness's outcome of a history, and its run time (s)."""
    outcomes, seconds = dict[str, Outcome](), dict[str, float]()
    for name, witness in witnesses.items():
        report(f"{name}: {len(history.records):,} records in {len(history.batches)} micro-batches")
        started = time.perf_counter()
        (outcomes[name],) = witness.evaluate([history])
        seconds[name] = time.perf_counter() - started
    return outcomes, seconds


def history_of(data: DataSet, options: Mapping[str, Any], batches: int) -> History:
    """Return a data set as one history of session windows under the batch clock.

    Args:
        data: The data set, in its order of arrival.
        options: The options of `session_windows`, as in a history file; durations in ms.
        batches: The number of batches, whose sizes differ by at most one row; at most the number of rows.
    """
    keys, values, timestamps = (data.table.column(name).to_pylist() for name in ("key", "value", "timestamp"))
    if options.get("aggregate", "count") == "count":
        values = [None] * len(keys)  # a count needs no values, and Spark doesn't accept every type of them
    records = [Record("events", *row) for row in zip(keys, values, timestamps, strict=True)]
    count = min(batches, len(records))
    bounds = [-(-number * len(records) // count) for number in range(count + 1)] if count else []
    lines: list[Line] = []
    for start, end in pairwise(bounds):
        lines += [*([CUT] if start else []), *records[start:end]]
    return History("session_windows", options, tuple(lines), "batch", data.name)


def _compared(
    outcomes: Mapping[str, Outcome], windows: SessionWindows, report: Callable[[str], None]
) -> tuple[dict[str, str], list[tuple[str, Difference]]]:
    """Compare the first outcome with each other outcome; return what was compared, and the differences."""
    found: list[tuple[str, Difference]] = []
    compared: dict[str, str] = {}
    names = list(outcomes)
    for name in names[1:]:
        report(f"comparing {names[0]} with {name}")
        left, right = outcomes[names[0]], outcomes[name]
        at_end = Grain.END in (left.grain, right.grain)
        equality = SUMS if at_end and windows.aggregate.name == "sum" else EXACT
        what = "the table at the end" if at_end else "the changes of each key in each batch, in order"
        compared[name] = f"{what}; {equality}"
        between = differences(left, right, "spark-native" in (names[0], name), equality)
        found += [(name, difference) for difference in between]
    return compared, found


def _verdict(
    names: tuple[str, ...], sessions: int, found: Sequence[tuple[str, Difference]]
) -> tuple[Literal["conforms", "violated", "inconclusive"], str]:
    if found:
        pairs = dict.fromkeys(f"{names[0]} and {name}" for name, _ in found)
        more = "1 difference" if len(found) == 1 else f"{len(found):,} differences"
        return "violated", f"{more} between {', '.join(pairs)}."
    if len(names) < 2:
        return "inconclusive", "A comparison needs two witnesses: name two."
    if not sessions:
        return "inconclusive", "No witness emitted a session, so nothing was compared."
    others = ", ".join(names[1:])
    return "conforms", f"{names[0]} and {others} agree on {sessions:,} sessions."


def _merges(outcome: Outcome | None, windows: SessionWindows) -> int | None:
    if outcome is None or windows.emit == "close":
        return None
    tombstones = Counter(
        entry.arrival for entry in outcome.entries if isinstance(entry.output, Change) and entry.output.value is None
    )
    return sum(count > 1 for count in tombstones.values())


def _dropped(outcome: Outcome) -> dict[str, int]:
    return dict(Counter(output.reason for _, _, output in outcome.entries if isinstance(output, Dropped)))
