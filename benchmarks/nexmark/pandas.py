"""Runs two queries of Nexmark with `applyInPandasWithState`, as a careful Spark user writes them.

The function of a key gets the key's new bids as pandas, and the key's state. An event-time timeout removes a result
once it is final, by the operators' gap and grace. Late bids never reach the function, because Spark drops them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .queries import BID, Frames, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

GAP_MS = 10_000
SESSIONS = "sessions string"
"""The open sessions of a bidder, in order, as JSON: a state of `applyInPandasWithState` can't contain arrays."""
Frame = Any


def _sessions(key: tuple[int], frames: Iterator[Frame], state: GroupState) -> Iterator[Frame]:
    """Merge a bidder's new bids into the open sessions; emit the sessions that no further bid can reach."""
    starts, lasts, counts = np.array(json.loads(state.get[0]) if state.exists else [[], [], []], np.int64)
    if not state.hasTimedOut:
        times = np.concatenate([frame["time"].to_numpy(np.int64) for frame in frames])
        starts, lasts = np.concatenate([starts, times]), np.concatenate([lasts, times])
        starts, lasts, counts = merged(starts, lasts, np.concatenate([counts, np.ones_like(times)]))
    closed = lasts + GAP_MS < state.getCurrentWatermarkMs()
    still = [part[~closed].tolist() for part in (starts, lasts, counts)]
    keep(state, (json.dumps(still),), still[1])
    if closed.any():
        rows = {"bidder": key[0], "bids": counts[closed], "start": starts[closed], "last": lasts[closed]}
        yield pd.DataFrame(rows)


def merged(starts: Frame, lasts: Frame, counts: Frame) -> tuple[Frame, Frame, Frame]:
    """Merge sessions that are at most one gap apart; a bid is a separate session."""
    order = np.argsort(starts, kind="stable")
    starts, lasts, counts = starts[order], np.maximum.accumulate(lasts[order]), counts[order]
    first = np.concatenate([[0], np.flatnonzero(starts[1:] - lasts[:-1] > GAP_MS) + 1])
    return starts[first], lasts[np.append(first[1:] - 1, len(lasts) - 1)], np.add.reduceat(counts, first)


def _last_bid(key: tuple[int, int], frames: Iterator[Frame], state: GroupState) -> Iterator[Frame]:
    """Store a bidder's last bid for an auction; emit it when no further bid can follow within the gap."""
    bids = [tuple(state.get)] if state.exists else []
    if not state.hasTimedOut:
        for frame in frames:
            columns = {name: frame[name].to_numpy() for name in OF_LAST}
            place = np.lexsort((columns["order"], columns["time"]))[-1]
            bids.append(tuple(column[place] for column in columns.values()))
    last = max(bids, key=lambda bid: (bid[TIME], bid[ORDER]))
    is_closed = last[TIME] + GAP_MS < state.getCurrentWatermarkMs()
    keep(state, last, [] if is_closed else [last[TIME]])
    if is_closed:
        yield pd.DataFrame([(key[1], key[0], *last[:ORDER])], columns=[*BID])


def keep(state: GroupState, value: tuple[Any, ...], lasts: Sequence[Any]) -> None:
    """Store a state until the watermark is one gap past the first of these times (ms); without times, remove it."""
    if lasts:
        state.update(tuple(part.item() if isinstance(part, np.generic) else part for part in value))
        # A timeout must be after the current watermark, and fires when the watermark has passed its time.
        state.setTimeoutTimestamp(int(min(lasts)) + GAP_MS + 1)
    elif state.exists:
        state.remove()


OF_LAST = ("price", "channel", "url", "time", "extra", "order")
"""The columns of a last bid in addition to its key."""
TIME, ORDER = OF_LAST.index("time"), OF_LAST.index("order")
STATE_OF_LAST = "price bigint, channel string, url string, time bigint, extra string, order bigint"
BID_TYPE = "auction bigint, bidder bigint, price bigint, channel string, url string, time bigint, extra string"


def _declared(
    bids: DataFrame, keys: tuple[str, ...], columns: tuple[str, ...], function: Any, result: str, state: str
) -> DataFrame:
    grouped = timed(bids).select(*keys, *columns, "at").groupBy(*keys)
    return grouped.applyInPandasWithState(function, result, state, "append", "EventTimeTimeout")


def _q11(inputs: Frames) -> DataFrame:
    result = "bidder bigint, bids bigint, start bigint, last bigint"
    return _declared(inputs["bid"], ("bidder",), ("time",), _sessions, result, SESSIONS)


def _q18(inputs: Frames) -> DataFrame:
    return _declared(inputs["bid"], ("bidder", "auction"), OF_LAST, _last_bid, BID_TYPE, STATE_OF_LAST)


QUERIES: Mapping[str, Callable[[Frames], DataFrame]] = {"q11": _q11, "q18": _q18}
