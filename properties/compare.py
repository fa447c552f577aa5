"""Compares witnesses on a data set: one big history, in its real order of arrival, cut into micro-batches."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ..reference.errors import BadInput
from ..reference.histories import CUT, History, Line
from ..reference.operators import operator_named
from ..reference.play import play
from ..reference.records import Change, Dropped, Record, Table
from ..reference.windows import SessionWindows
from .data import DataSet, check_values
from .outcomes import Difference, Grain, Outcome, differences

KEPT = 20


@dataclass(frozen=True)
class Arrivals:
    """A data set as the witnesses get it.

    Attributes:
        name: The data set's name.
        table: key (string, null for none), value, timestamp (bigint, ms), order and batch (both bigint, from 0).
        options: The options of `session_windows`, as in a history file.
        windows: What they declare.
    """

    name: str
    table: pa.Table
    options: Mapping[str, Any]
    windows: SessionWindows

    @property
    def batches(self) -> list[pa.Table]:
        """One table a micro-batch: key, value, timestamp and order."""
        sizes = np.unique(self.table.column("batch").to_numpy(), return_counts=True)[1]
        ends = np.cumsum(sizes)
        return [
            self.table.select(["key", "value", "timestamp", "order"]).slice(end - size, size)
            for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
        ]


Witness: TypeAlias = Callable[[Arrivals], Outcome]


class Disagreement(NamedTuple):
    """A difference, and the two witnesses between which it lies."""

    left: str
    right: str
    difference: Difference


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes:
        verdict: `conforms`, `violated`, or `inconclusive` where there was nothing to compare.
        why: The verdict in one sentence.
        witnesses: Who was asked; the first is held against each of the others.
        rows: How many records there were, null keys included.
        batches: Into how many micro-batches they were cut.
        sessions: How many sessions the first witness's table has.
        changes: How many changes were told, tombstones included; 0 where only tables were compared.
        tombstones: How many of them were tombstones.
        merges: How many records joined two or more sessions; None where the reference wasn't asked, or where no
            tombstones tell it (`emit` is `close`).
        dropped: The dropped records by reason, for each witness that knows them.
        seconds: How long each witness took.
        difference_count: How many differences there are.
        differences: The first 20 of them.
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
    difference_count: int = 0
    differences: list[Disagreement] = field(default_factory=list)

    @property
    def late(self) -> int | None:
        """How many records were dropped as late; None where no witness knows."""
        return next((reasons.get("late", 0) for reasons in self.dropped.values()), None)


def compare_data(
    data: DataSet,
    options: Mapping[str, Any],
    witnesses: Sequence[str] = ("reference", "spark", "duckdb"),
    batches: int = 12,
    progress: Callable[[str], None] | None = None,
    known: Mapping[str, Witness] | None = None,
) -> Comparison:
    """Run session windows over a data set on several witnesses, and hold the first against each of the others.

    The order of arrival is cut into micro-batches of equal row count (to within one row), and the clock is the batch
    clock. Witnesses that tell changes are compared by the ordered list of changes of each key in each batch, and by
    dropped records; a witness that knows only the table (`duckdb`), by the table at the end. There two sums of floats
    that agree to nine digits count as equal, for the order of addition isn't fixed.

    Args:
        data: The data set.
        options: The options of `session_windows`, as in a history file; durations in ms.
        witnesses: Of `reference`, `duckdb`, `spark` and `spark-native`.
        batches: How many micro-batches; no more than there are rows.
        progress: Is told each step.
        known: The witnesses by name, in place of the usual ones.

    Raises:
        BadInput: The options can't be declared, a witness is unknown, `batches` isn't positive, or the aggregate can't
            take the data's values.
    """
    known = WITNESSES if known is None else known
    tell = progress or (lambda step: None)
    names = tuple(dict.fromkeys(witnesses))
    for name in names:
        if name not in known:
            raise BadInput(f"unknown witness {name!r}: use some of {', '.join(known)}")
    if batches < 1:
        raise BadInput(f"batches is {batches}: give a positive number")
    windows: SessionWindows = operator_named("session_windows").declare(options)
    check_values(data, windows.aggregate)
    arrivals = _cut(data, options, windows, batches)
    rows = arrivals.table.num_rows
    cuts = len(arrivals.batches)
    if not rows:
        return Comparison("inconclusive", f"{data.name} has no rows.", names, rows, cuts)

    outcomes: dict[str, Outcome] = {}
    seconds: dict[str, float] = {}
    for name in names:
        tell(f"{name}: {rows:,} records in {cuts} micro-batches")
        started = time.perf_counter()
        outcomes[name] = known[name](arrivals)
        seconds[name] = time.perf_counter() - started
    found: list[Disagreement] = []
    for name in names[1:]:
        tell(f"comparing {names[0]} with {name}")
        between = _between(
            outcomes[names[0]], outcomes[name], unordered="spark-native" in (names[0], name), windows=windows
        )
        found += [Disagreement(names[0], name, difference) for difference in between]

    sessions = len(outcomes[names[0]].result) if names else 0
    verdict, why = _verdict(names, sessions, found)
    changes, tombstones = _changes(outcomes)
    return Comparison(
        verdict=verdict,
        why=why,
        witnesses=names,
        rows=rows,
        batches=cuts,
        sessions=sessions,
        changes=changes,
        tombstones=tombstones,
        merges=_merges(outcomes.get("reference"), windows),
        dropped={name: _dropped(outcome) for name, outcome in outcomes.items() if _knows_dropped(outcome)},
        seconds=seconds,
        difference_count=len(found),
        differences=found[:KEPT],
    )


def by_reference(arrivals: Arrivals) -> Outcome:
    """The reference's outcome."""
    columns = (arrivals.table.column(name).to_pylist() for name in ("key", "value", "timestamp", "batch"))
    lines: list[Line] = []
    present = 0
    for key, value, timestamp, batch in zip(*columns, strict=True):
        if batch != present:
            lines.append(CUT)
            present = batch
        lines.append(Record("events", key, value, timestamp))
    history = History("session_windows", arrivals.options, tuple(lines), "batch", arrivals.name)
    return Outcome.of_play(arrivals.name, play(history))


def by_duckdb(arrivals: Arrivals) -> Outcome:
    """DuckDB's table."""
    from .duckdb_witness import session_table

    sessions = session_table(arrivals.table, arrivals.windows, "batch")
    columns = (sessions.column(name).to_pylist() for name in ("key", "start", "end", "value"))
    table: Table = {(key, (start, end)): (value, end) for key, start, end, value in zip(*columns, strict=True)}
    return Outcome(arrivals.name, Grain.END, final=table, knows_dropped=False)


def by_spark(arrivals: Arrivals) -> Outcome:
    """What the operator of `spark_impl` wrote."""
    from .spark_witness import answer_table

    return Outcome(arrivals.name, Grain.BATCH, answer_table(arrivals.batches, arrivals.options))


def by_native_spark(arrivals: Arrivals) -> Outcome:
    """What Spark's own `session_window` wrote."""
    from .spark_witness import answer_table

    entries = answer_table(arrivals.batches, arrivals.options, native=True)
    return Outcome(arrivals.name, Grain.BATCH, entries, knows_dropped=False)


WITNESSES: Mapping[str, Witness] = {
    "reference": by_reference,
    "spark": by_spark,
    "spark-native": by_native_spark,
    "duckdb": by_duckdb,
}


def _cut(data: DataSet, options: Mapping[str, Any], windows: SessionWindows, batches: int) -> Arrivals:
    rows = data.table.num_rows
    table = data.table
    if windows.aggregate.name == "count":
        # A count looks at no value, and not every type of value travels to Spark.
        table = table.set_column(table.column_names.index("value"), "value", pa.nulls(rows, pa.int32()))
    batch = np.arange(rows) * min(batches, rows) // max(rows, 1)
    return Arrivals(data.name, table.append_column("batch", pa.array(batch, pa.int64())), options, windows)


def _between(left: Outcome, right: Outcome, unordered: bool, windows: SessionWindows) -> list[Difference]:
    found = differences(left, right, unordered)
    if Grain.END in (left.grain, right.grain) and windows.aggregate.name == "sum":
        return [difference for difference in found if not _only_rounded(difference)]
    return found


def _only_rounded(difference: Difference) -> bool:
    match difference.left, difference.right:
        case Change(value=one), Change(value=two) if isinstance(one, float) or isinstance(two, float):
            same_otherwise = difference.left._replace(value=0) == difference.right._replace(value=0)
            return same_otherwise and math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
    return False


def _verdict(
    names: tuple[str, ...], sessions: int, found: Sequence[Disagreement]
) -> tuple[Literal["conforms", "violated", "inconclusive"], str]:
    if found:
        pairs = list(dict.fromkeys(f"{left} and {right}" for left, right, _ in found))
        more = "1 difference" if len(found) == 1 else f"{len(found):,} differences"
        return "violated", f"{more} between {', '.join(pairs)}."
    if len(names) < 2:
        return "inconclusive", "One witness alone compares with nothing: name two."
    if not sessions:
        return "inconclusive", "No session came out, so nothing was compared."
    others = ", ".join(names[1:])
    return "conforms", f"{names[0]} and {others} agree on {sessions:,} sessions."


def _changes(outcomes: Mapping[str, Outcome]) -> tuple[int, int]:
    """How many changes and tombstones the first witness tells that tells any."""
    for outcome in outcomes.values():
        if outcome.grain is not Grain.END:
            values = [output.value for _, _, output in outcome.entries if isinstance(output, Change)]
            return len(values), sum(value is None for value in values)
    return 0, 0


def _merges(outcome: Outcome | None, windows: SessionWindows) -> int | None:
    if outcome is None or windows.emit == "close":
        return None
    tombstones = Counter(
        entry.arrival for entry in outcome.entries if isinstance(entry.output, Change) and entry.output.value is None
    )
    return sum(count > 1 for count in tombstones.values())


def _knows_dropped(outcome: Outcome) -> bool:
    return outcome.knows_dropped and outcome.grain is not Grain.END


def _dropped(outcome: Outcome) -> dict[str, int]:
    return dict(Counter(output.reason for _, _, output in outcome.entries if isinstance(output, Dropped)))
