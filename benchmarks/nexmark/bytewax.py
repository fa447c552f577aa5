"""Runs two queries of Nexmark on Bytewax, if installed: a stream processor in Python and Rust, here with one process.

Bytewax keeps its state in memory, and saves the state each second to a recovery store, as Spark does after each
micro-batch. Source: Bytewax's guide, "Windowing", "Recovery".
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..processes import CpuClock
from ..production.run import report, used_since_now
from .events import START_MS

GAP, WINDOW, BEHIND = timedelta(seconds=10), timedelta(seconds=10), timedelta(seconds=4)
EPOCH = timedelta(seconds=1)
ROWS_AT_ONCE = 10_000
BEGIN, MILLISECOND = datetime.fromtimestamp(START_MS / 1000, UTC), timedelta(milliseconds=1)
Bid = tuple[Any, ...]
"""A bid's time, as a datetime, then the columns that the query reads."""


class Windowed(NamedTuple):
    """A query that aggregates bids by windows.

    Attributes:
        columns: The columns of a bid that the query reads.
        sessions: Whether the query's windows are sessions, rather than fixed windows.
        key: The key of a bid.
        fold: A function that adds a bid to an aggregate, which is initially empty.
        merge: Merges two aggregates.
        rows: A function that returns the query's rows for a key and its aggregate.
    """

    columns: tuple[str, ...]
    sessions: bool
    key: Callable[[Bid], str]
    fold: Callable[[Any, Bid], Any]
    merge: Callable[[Any, Any], Any]
    rows: Callable[[str, Any], list[tuple[Any, ...]]]


def is_installed() -> bool:
    """Return whether Bytewax can be imported."""
    return find_spec("bytewax") is not None


def _highest(one: list[Bid], two: list[Bid]) -> list[Bid]:
    if not one or not two or one[0][3] == two[0][3]:
        return one + two
    return one if one[0][3] > two[0][3] else two


def _longer(session: tuple[Any, ...], bid: Bid) -> tuple[Any, ...]:
    return _one_session(session, (1, bid[2], bid[2]))


def _one_session(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    if not one or not two:
        return one or two
    return one[0] + two[0], min(one[1], two[1]), max(one[2], two[2])


QUERIES: Mapping[str, Windowed] = {
    "q7": Windowed(
        ("auction", "bidder", "price", "time", "extra"),
        False,
        lambda bid: "all",
        lambda highest, bid: _highest(list(highest), [bid]),
        lambda one, two: _highest(list(one), list(two)),
        lambda key, highest: [bid[1:] for bid in highest],
    ),
    "q11": Windowed(
        ("bidder", "time"),
        True,
        lambda bid: str(bid[1]),
        _longer,
        _one_session,
        lambda key, session: [(int(key), *session)],
    ),
}


def through(name: str, folder: Path, result: Path) -> Mapping[str, Any]:
    """Run a query over the bids, write its rows, and return its CPU seconds."""
    from bytewax.recovery import RecoveryConfig, init_db_dir
    from bytewax.testing import run_main

    query = QUERIES[name]
    found: list[Any] = []
    with tempfile.TemporaryDirectory(prefix="streamproof-") as store, CpuClock(os.getpid()).running() as clock:
        init_db_dir(Path(store), 1)
        flow = _flow(query, folder, found)
        report(f"{name}, bytewax: measured")
        used, started = used_since_now(clock), time.perf_counter()
        run_main(flow, epoch_interval=EPOCH, recovery_config=RecoveryConfig(store))
        taken = time.perf_counter() - started
        after = used()
    rows = [row for key, (_, aggregate) in found for row in query.rows(key, aggregate)]
    result.mkdir(exist_ok=True)
    pq.write_table(
        pa.table({str(place): list(column) for place, column in enumerate(zip(*rows, strict=True))}),
        result / "rows.parquet",
    )
    return {"used": [after], "seconds": taken}


def _flow(query: Windowed, folder: Path, found: list[Any]) -> Any:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing as windows
    from bytewax.testing import TestingSink, TestingSource

    fixed = windows.TumblingWindower(length=WINDOW, align_to=BEGIN)
    windower: Any = windows.SessionWindower(gap=GAP) if query.sessions else fixed
    flow = Dataflow("nexmark")
    bids = op.input("bids", flow, TestingSource(_bids(folder, query.columns), batch_size=ROWS_AT_ONCE))
    # A key's clock is the time of its newest bid, and the machine's clock stands still. Otherwise a slow run would end
    # sessions early, and Bytewax would repeatedly ask each key whether its window, of another year, has ended.
    clock = windows.EventClock(lambda bid: bid[0], BEHIND, now_getter=lambda: BEGIN, to_system_utc=lambda _: None)
    keyed = op.key_on("key", bids, query.key)
    windowed = windows.fold_window("window", keyed, clock, windower, tuple, query.fold, query.merge)
    op.output("rows", windowed.down, TestingSink(found))
    return flow


def _bids(folder: Path, columns: tuple[str, ...]) -> Iterator[Bid]:
    """Read the bids, file by file, without the closing bid, because here the end of the input closes windows."""
    for file in sorted((folder / "bid").glob("*.parquet")):
        table = pq.read_table(file, columns=list(columns), filters=pc.field("auction") >= 0)
        lists = [table[name].to_pylist() for name in columns]
        times = lists[columns.index("time")]
        yield from zip((BEGIN + (ms - START_MS) * MILLISECOND for ms in times), *lists, strict=True)
