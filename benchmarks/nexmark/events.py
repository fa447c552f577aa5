"""The events of Nexmark: people, their auctions and bids, with the distribution of its published generator.

Source: the generators of github.com/nexmark/nexmark and of Apache Beam, which agree; this module draws other random
numbers than the generators. The first of each 50 events is a person, the next 3 are auctions, and the other 46 are
bids. The hot seller, the first of each 100 people, opens 3 of 4 auctions. Half of the bids are for the hot auction, the
first of each 100 auctions. The hot bidder, the second of each 100 people, makes 3 of 4 bids. All other events are drawn
from the last 1,000 people and the last 100 auctions, and from the next 10, which don't exist yet. Prices are 100 times
a power of 10 between 0 and 6. An auction is open for a time between 1 ms and twice the time in which the next 100
auctions arrive. Text has the published lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..production.cases import DAY_MS, START_MS

CYCLE, PEOPLE, AUCTIONS = 50, 1, 3
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT_EACH = 100
HOT_SELLERS, HOT_AUCTIONS, HOT_BIDDERS, HOT_CHANNELS = 4, 2, 4, 2
"""One event in this many isn't for a hot seller, auction or bidder."""
ACTIVE_PEOPLE, IN_FLIGHT, LEAD = 1000, 100, 10
CHANNELS = 10_000
PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
RATE = 10_000
NAMES = tuple(
    f"{first} {last}"
    for first in ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
    for last in ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
)
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

Numbers: TypeAlias = "np.ndarray[Any, Any]"


class Events(NamedTuple):
    """The events, one table per kind, each in order of arrival; `order` counts over all tables, and `time` is in ms."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def events(count: int, *, seed: int = 1, rate: int = RATE, out_of_order: int = 1, closing: bool = False) -> Events:
    """Make events.

    Args:
        count: How many.
        seed: The seed of the draws.
        rate: The number of events per second of event time.
        out_of_order: The size of the groups in which events arrive in a different order than their times; 1 means in
            order.
        closing: Whether a person, an auction and a bid follow one day later, which close all earlier windows. The ids
            of these three events are -1, so they match no other event.
    """
    drawn = np.random.default_rng(seed)
    order = np.arange(count)
    number = order // out_of_order * out_of_order + order * 953 % out_of_order
    time = START_MS + number * 1000 // rate
    epoch, offset = number // CYCLE, number % CYCLE
    is_person, is_bid = offset < PEOPLE, offset >= PEOPLE + AUCTIONS
    is_auction = ~is_person & ~is_bid
    # An event refers to auctions that arrived before the event; the person of its cycle has arrived.
    last_auction = epoch * AUCTIONS + np.where(is_bid, AUCTIONS - 1, offset - PEOPLE)

    # The time (ms) in which the next `IN_FLIGHT` auctions arrive
    horizon = (number + IN_FLIGHT * CYCLE // AUCTIONS) * 1000 // rate - number * 1000 // rate

    def of(kind: Numbers) -> dict[str, Numbers]:
        return {"order": order[kind], "time": time[kind]}

    made = Events(
        _people(drawn, of(is_person), epoch[is_person]),
        _auctions(drawn, of(is_auction), epoch[is_auction], last_auction[is_auction], horizon[is_auction]),
        _bids(drawn, of(is_bid), epoch[is_bid], last_auction[is_bid]),
    )
    return _closed(made, count, int(time.max(initial=START_MS)) + DAY_MS) if closing else made


def _people(drawn: np.random.Generator, arrived: dict[str, Numbers], last: Numbers) -> pa.Table:
    many = len(last)
    name, city, state = (_chosen(drawn, among, many) for among in (NAMES, CITIES, STATES))
    email = _joined(_text(drawn, _length(drawn, 7, many)), "@", _text(drawn, _length(drawn, 5, many)), ".com")
    digits = drawn.integers(0, 10_000, (many, 4))
    card = pa.array([f"{a:04d} {b:04d} {c:04d} {d:04d}" for a, b, c, d in digits.tolist()], pa.string())
    columns = {"id": last + FIRST_ID, "name": name, "email": email, "card": card, "city": city, "state": state}
    used = np.sum([_lengths(text) for text in (name, email, card, city, state)], axis=0) + 8
    return pa.table({**arrived, **columns, "extra": _extra(drawn, used, PERSON_BYTES)})


def _auctions(
    drawn: np.random.Generator, arrived: dict[str, Numbers], last_person: Numbers, number: Numbers, horizon: Numbers
) -> pa.Table:
    many = len(number)
    hot = last_person // HOT_EACH * HOT_EACH
    seller = np.where(drawn.integers(0, HOT_SELLERS, many) > 0, hot, _active_person(drawn, last_person))
    initial = _prices(drawn, many)
    name, description = _text(drawn, _length(drawn, 20, many)), _text(drawn, _length(drawn, 100, many))
    columns = {
        "id": number + FIRST_ID,
        "item_name": name,
        "description": description,
        "initial_bid": initial,
        "reserve": initial + _prices(drawn, many),
        "expires": arrived["time"] + 1 + drawn.integers(0, np.maximum(2 * horizon, 1)),
        "seller": seller + FIRST_ID,
        "category": FIRST_CATEGORY + drawn.integers(0, CATEGORIES, many),
    }
    used = 48 + _lengths(name) + _lengths(description)
    return pa.table({**arrived, **columns, "extra": _extra(drawn, used, AUCTION_BYTES)})


def _bids(drawn: np.random.Generator, arrived: dict[str, Numbers], last_person: Numbers, last: Numbers) -> pa.Table:
    many = len(last)
    oldest = np.maximum(last - IN_FLIGHT, 0)
    some = oldest + drawn.integers(0, last - oldest + 1 + LEAD)
    auction = np.where(drawn.integers(0, HOT_AUCTIONS, many) > 0, last // HOT_EACH * HOT_EACH, some)
    # The hot bidder is the second of the people, because the first is the hot seller.
    hot = last_person // HOT_EACH * HOT_EACH + 1
    bidder = np.where(drawn.integers(0, HOT_BIDDERS, many) > 0, hot, _active_person(drawn, last_person))
    hot_channels = ("Google", "Facebook", "Baidu", "Apple")
    channel = np.where(
        drawn.integers(0, HOT_CHANNELS, many) > 0,
        drawn.integers(0, len(hot_channels), many),
        len(hot_channels) + drawn.integers(0, CHANNELS, many),
    )
    names = pa.array([*hot_channels, *(f"channel-{number}" for number in range(CHANNELS))])
    columns = {
        "auction": auction + FIRST_ID,
        "bidder": bidder + FIRST_ID,
        "price": _prices(drawn, many),
        "channel": names.take(pa.array(channel)),
        "url": _urls(drawn, len(names)).take(pa.array(channel)),
    }
    return pa.table({**arrived, **columns, "extra": _extra(drawn, np.full(many, 32), BID_BYTES)})


def _active_person(drawn: np.random.Generator, last: Numbers) -> Numbers:
    """Draw one of the last people, or one of the next few people."""
    active = np.minimum(last + 1, ACTIVE_PEOPLE)
    found: Numbers = last + 1 - active + drawn.integers(0, active + LEAD)
    return found


def _prices(drawn: np.random.Generator, many: int) -> Numbers:
    prices: Numbers = np.rint(10 ** (drawn.random(many) * 6) * 100).astype(np.int64)
    return prices


def _urls(drawn: np.random.Generator, many: int) -> pa.Array:
    parts = [_text(drawn, _length(drawn, 5, many)) for _ in range(3)]
    # 9 of 10 URLs contain a channel id.
    channel = pa.array([f"&channel_id={number * 214_013}" if number % 10 else "" for number in range(many)])
    return _joined("https://www.nexmark.com/", parts[0], "/", parts[1], "/", parts[2], "/item.htm?query=1", channel)


def _extra(drawn: np.random.Generator, used: Numbers, bytes: int) -> pa.Array:
    """Create text so that records have this many bytes on average; the text's length varies by a fifth."""
    wanted = np.maximum(bytes - used, 0)
    around = np.rint(wanted * 0.2).astype(np.int64)
    return _text(drawn, wanted - around + drawn.integers(0, np.maximum(2 * around, 1)))


def _length(drawn: np.random.Generator, below: int, many: int) -> Numbers:
    return drawn.integers(3, below, many)


def _text(drawn: np.random.Generator, lengths: Numbers) -> pa.Array:
    """Create text of these lengths, from random letters."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = drawn.integers(ord("a"), ord("z") + 1, int(ends[-1]), dtype=np.uint8)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(ends), pa.py_buffer(letters))


def _chosen(drawn: np.random.Generator, among: Sequence[str], many: int) -> pa.Array:
    return pa.array(among).take(pa.array(drawn.integers(0, len(among), many)))


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _lengths(text: pa.Array) -> Numbers:
    lengths: Numbers = pc.utf8_length(text).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _closed(made: Events, order: int, time: int) -> Events:
    tables = []
    for place, table in enumerate(made):
        last = {"order": order + place, "time": time, "expires": time}
        row = {
            field.name: [last.get(field.name, "" if pa.types.is_string(field.type) else -1)] for field in table.schema
        }
        tables.append(pa.concat_tables([table, pa.table(row, schema=table.schema)]))
    return Events(*tables)
