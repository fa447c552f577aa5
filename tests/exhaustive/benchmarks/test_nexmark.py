from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.figures import Setting
from benchmarks.nexmark import nexmark
from benchmarks.nexmark import rates as nexmark_rates
from benchmarks.nexmark import sql as nexmark_sql
from benchmarks.nexmark.events import DAY_MS, START_MS, events
from benchmarks.nexmark.nexmark import Through, query_figures, rate_figures
from benchmarks.nexmark.rates import Batches, done_at, keeps, percentiles
from benchmarks.nexmark.sql import SQL, Compared, compared, load

AUCTIONS = ((10, 1, 10, 2000, 6000), (11, 2, 11, 9999, 15_000), (12, 1, 10, 11_000, 11_500), (14, 1, 10, 3000, 4000))
"""Of each auction its id, seller, category, time and end."""
BIDS = (
    (10, 1, 50, 1999),  # before it is open
    (10, 2, 70, 2000),  # the first instant
    (10, 1, 70, 6000),  # the last one: as high, but later
    (10, 2, 90, 6001),  # too late
    (11, 1, 40, 10_000),
    (11, 1, 40, 15_000),
    (12, 2, 30, 11_600),  # too late, and nobody else bids
    (11, 1, 40, 15_000),  # at the same instant
    (13, 2, 10, 26_001),  # for no auction
    (14, 1, 75, 3500),
    (13, 3, 1, 0),
    (13, 3, 1, 10_000),  # after exactly the gap
    (13, 3, 1, 20_001),  # after more than the gap
)
"""Of each bid its auction, bidder, price and time, in order of arrival."""
SESSIONS = [
    *((1, 6, 1999, 15_000), (2, 3, 2000, 11_600), (2, 1, 26_001, 26_001)),
    *((3, 2, 0, 10_000), (3, 1, 20_001, 20_001)),
]
"""Of each session of bids, as q11 has them, its bidder, number of bids, first and last time."""


@pytest.fixture
def handmade(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A few events, in tables."""
    people = [(0, 1, "ann", 1000), (0, 2, "bob", 12_000), (0, -1, "", 99_999)]
    auctions = [(*auction, "item", "", 1, 2, "") for auction in (*AUCTIONS, (-1, -1, -1, 99_999, 99_999))]
    bids = [(order, *bid, "", "", f"bid {order}") for order, bid in enumerate((*BIDS, (-1, -1, -1, 99_999)))]
    of_auction = "id seller category time expires item_name description initial_bid reserve extra"
    tables: Mapping[str, tuple[str, Sequence[Sequence[Any]]]] = {
        "person": ("order id name time", people),
        "auction": (of_auction, auctions),
        "bid": ("order auction bidder price time channel url extra", bids),
    }
    for kind, (columns, rows) in tables.items():
        (tmp_path / kind).mkdir()
        made = {name: [row[place] for row in rows] for place, name in enumerate(columns.split())}
        pq.write_table(pa.table(made), tmp_path / kind / "0.parquet")
    with duckdb.connect(":memory:") as connection:
        load(connection, str(tmp_path))
        yield connection


def of_order(*orders: int) -> list[tuple[Any, ...]]:
    """These bids' auction, bidder, price, time and number."""
    return sorted((*BIDS[order], order) for order in orders)


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        ("q4", (0, 1, 2, 3), [(10, (70 + 75) // 2, 70 + 75, 2), (11, 40, 40, 1)]),
        ("q7", (0, 1, 2, 3, 4), [(*row[:4], f"bid {row[4]}") for row in of_order(3, 4, 5, 7, 8)]),
        ("q8", (0, 1, 2), [(1, "ann", 0)]),
        ("q9", (0, 10, 11, 12, 13), [(10, 10, 2, 70, 2000), (11, 11, 1, 40, 10_000), (14, 14, 1, 75, 3500)]),
        (
            "q11",
            (0, 1, 2, 3),
            SESSIONS,
        ),
        (
            "q18",
            (0, 1, 2, 5, 6),
            [(*row[:4], f"bid {row[4]}") for row in of_order(2, 3, 6, 7, 8, 9, 12)],
        ),
        ("q20", (0, 1, 2, 5, 7), [(*row[:4], row[0]) for row in of_order(0, 1, 2, 3, 6, 9)]),
    ],
)
def test_a_query_in_sql_has_the_rows_that_were_worked_out_by_hand(
    handmade: duckdb.DuckDBPyConnection, query: str, columns: Sequence[int], rows: Sequence[tuple[Any, ...]]
) -> None:
    found = handmade.execute(SQL[query]).fetchall()
    assert sorted(tuple(row[place] for place in columns) for row in found) == sorted(rows)


def test_a_result_that_lacks_repeats_or_changes_a_row_differs(
    handmade: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    first, *others = SESSIONS
    differing = []
    for number, rows in enumerate((SESSIONS, others, [(1, 5, 1999, 15_000), *others], [], [*SESSIONS, first])):
        columns = [pa.array([row[place] for row in rows], pa.int64()) for place in range(4)]
        pq.write_table(pa.table(columns, names=list("abcd")), tmp_path / f"result {number}.parquet")
        found = compared(handmade, "q11", f"{tmp_path}/result {number}.parquet")
        assert found.rows == len(SESSIONS)
        differing.append(found.differing)
    assert differing == [0, 1, 2, len(SESSIONS), 1]


def test_events_have_the_published_proportions_and_the_hot_their_share() -> None:
    count = 500_000
    person, auction, bid = events(count)
    assert (person.num_rows, auction.num_rows, bid.num_rows) == (count // 50, count * 3 // 50, count * 46 // 50)
    assert person["id"].to_pylist() == list(range(1000, 1000 + person.num_rows))
    assert auction["id"].to_pylist() == list(range(1000, 1000 + auction.num_rows))

    sellers, bidders, auctions = (
        table[name].to_numpy() - 1000 for table, name in ((auction, "seller"), (bid, "bidder"), (bid, "auction"))
    )
    # Others meet a hot one by chance 1 time in 100, and 1 in 111.
    assert np.mean(sellers % 100 == 0) == pytest.approx(3 / 4 + 1 / 4 / 100, abs=0.02)
    assert np.mean(bidders % 100 == 1) == pytest.approx(3 / 4 + 1 / 4 / 100, abs=0.01)
    assert np.mean(auctions % 100 == 0) == pytest.approx(1 / 2 + 1 / 2 / 100, abs=0.01)

    people_so_far = bid["order"].to_numpy() // 50 + 1
    assert (people_so_far - bidders).min() == 1 - 10
    assert (people_so_far - bidders).max() == 1000
    auctions_so_far = (bid["order"].to_numpy() // 50 + 1) * 3
    assert (auctions_so_far - auctions).min() == 1 - 10
    assert (auctions_so_far - auctions).max() == 101

    prices = np.log10(bid["price"].to_numpy() / 100)
    assert (prices.min(), prices.max()) == pytest.approx((0, 6), abs=0.01)
    assert np.quantile(prices, [0.25, 0.5, 0.75]) == pytest.approx([1.5, 3, 4.5], abs=0.03)
    categories, counts = np.unique(auction["category"].to_numpy(), return_counts=True)
    assert list(categories) == [10, 11, 12, 13, 14]
    assert counts / auction.num_rows == pytest.approx([1 / 5] * 5, abs=0.01)
    open_for = auction["expires"].to_numpy() - auction["time"].to_numpy()
    # Twice the 166 ms in which the next 100 auctions come, at 10,000 events a second.
    assert (open_for.min(), open_for.max()) == (1, 332)
    assert open_for.mean() == pytest.approx(166, abs=2)
    assert 32 + np.mean([len(text) for text in bid["extra"].to_pylist()]) == pytest.approx(100, abs=1)


def test_events_are_the_same_each_time_of_a_seed_alone_and_others_of_another() -> None:
    assert events(5000) == events(5000)
    assert all(one != other for one, other in zip(events(5000), events(5000, seed=2), strict=True))


def test_events_arrive_out_of_order_within_their_group_only() -> None:
    def times(**options: Any) -> np.ndarray[Any, Any]:
        tables = events(10_000, rate=1000, **options)
        order = np.concatenate([table["order"].to_numpy() for table in tables])
        return np.concatenate([table["time"].to_numpy() for table in tables])[np.argsort(order)] - START_MS

    assert list(times()) == list(range(10_000))
    mixed = times(out_of_order=1000)
    assert list(mixed) != list(range(10_000))
    assert [sorted(mixed[start : start + 1000]) for start in (0, 9000)] == [
        list(range(1000)),
        list(range(9000, 10_000)),
    ]


def test_what_closes_the_others_comes_last_a_day_later_and_meets_nothing() -> None:
    plain, closing = events(1000), events(1000, closing=True)
    last = [table.slice(table.num_rows - 1).to_pylist()[0] for table in closing]
    assert [row["order"] for row in last] == [1000, 1001, 1002]
    assert {row["time"] for row in last} == {plain.bid["time"][-1].as_py() + DAY_MS}
    assert (last[0]["id"], last[1]["seller"], last[2]["auction"], last[2]["bidder"]) == (-1, -1, -1, -1)
    assert all(table.slice(0, table.num_rows - 1) == before for table, before in zip(closing, plain, strict=True))


def test_an_event_is_done_when_the_batch_ends_that_has_taken_its_file() -> None:
    rows = [10, 0, 20, 5]
    batches = Batches([0, 10, 20], [1.0, 2.5, 4.0])
    assert [done_at(rows, file, batches, now=9.0) for file in range(4)] == [2.5, 2.5, 4.0, 9.0]
    assert percentiles([3.0, 1.0, 2.0], [1, 50, 49]) == {50: 1.0, 95: 2.0, 99: 2.0}
    assert percentiles([3.0, 1.0, 2.0], [2, 50, 48]) == {50: 1.0, 95: 2.0, 99: 3.0}


def test_a_query_keeps_up_as_long_as_the_latency_stays() -> None:
    same = [1] * 40
    assert keeps([1.0, 0.8, 1.2, 1.1] * 10, same)
    assert keeps([9.0] * 10 + [1.0] * 30, same)
    assert keeps([4.9] * 40, same)
    assert not keeps([5.1] * 40, same)
    # Of each second that passes a tenth is left over.
    assert not keeps([1 + 0.1 * second for second in range(40)], same)


@pytest.mark.parametrize(
    ("highest", "tried"),
    [
        (99, {20: True, 40: True, 80: True}),
        (40, {20: True, 40: True, 80: False}),
        (20, {20: True, 40: False}),
        (10, {10: True, 20: False}),
        (5, {5: True, 10: False, 20: False}),
        (1, {5: False, 10: False, 20: False}),
    ],
)
def test_rates_rise_until_one_is_too_high_or_leaves_events_over_and_else_fall(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, highest: int, tried: Mapping[int, bool]
) -> None:
    asked = []

    def latencies(*words: Any) -> tuple[list[float], list[int], bool]:
        asked.append(words[-1])
        return [1.0] * 8, [1] * 8, words[-1] <= highest

    monkeypatch.setattr(nexmark_rates, "_latencies", latencies)
    measured: Any = nexmark_rates.at_rates(*[None] * 3, tmp_path, 24, [5, 10, 20, 40, 80])  # type: ignore[arg-type]
    assert {rate: of_rate["keeps up"] for rate, of_rate in measured.items()} == tried
    assert [*measured] == sorted(measured)
    assert len(asked) == 1 + len(tried)  # the first is the warm-up


def test_figures_are_those_of_made_up_numbers() -> None:
    def run_of(each: float) -> Mapping[str, Any]:
        used = [{"python": each * batch, "java": each * batch} for batch in range(1, 5)]
        return {"used": used, "seconds": 2.0, "state": [9, 2_000_000, 3_000_000, 9]}

    kafka = {"used": [{"streams": 16}], "broker": 4.0, "seconds": 2.0}
    found = {
        "operators": Through(8000, [run_of(10)], Compared(7, 0)),
        "spark": Through(8000, [run_of(5)], Compared(7, 2)),
        "kafka": Through(8000, [kafka], Compared(7, 0)),
    }
    figures = {figure.name: figure for figure in query_figures("q7", found, 4)}
    assert figures["q7"].median == 8000 / 80
    assert figures["q7 over Spark's own"].median == pytest.approx(0.5)
    assert figures["q7 over Spark's own"].sizes == "8,000 records in 4 batches"
    assert figures["q7, growth"].median == pytest.approx(1)
    assert figures["q7, state"].median == 3
    assert figures["q7, growth of the state"].median == pytest.approx(1)
    assert figures["q7: rows that differ from DuckDB's"].reached
    assert figures["q7: Spark's own: rows that differ from DuckDB's"].missed
    assert figures["q7: Kafka Streams"].median == 500
    assert figures["q7: Kafka Streams and its broker"].median == 400
    assert figures["q7 over Kafka Streams"].median == pytest.approx(0.2)
    assert "q7: Kafka Streams, state" not in figures
    empty = query_figures("q4", {"operators": Through(8000, [run_of(10)], Compared(0, 0))}, 4)
    assert [figure.name for figure in empty if figure.missed] == ["q4: rows that differ from DuckDB's"]

    latency = {"50": 1.0, "95": 2.0, "99": 3.0}
    at_rates = {"1000": {"latency": latency, "keeps up": True}, "2000": {"latency": latency, "keeps up": False}}
    figures = {figure.name: figure for figure in rate_figures("q11", at_rates, 24)}
    assert figures["q11 at 2,000 events/s: latency of 95 % at most"].median == 2
    assert figures["q11: keeps up with"].median == 1000


def test_a_form_over_fewer_events_is_compared_with_the_operators_over_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(setting: Setting, program: object, module: str, words: Sequence[str]) -> Mapping[str, Any]:
        (pair,) = words[4:]
        query, form = pair.split(":")
        folder = Path(words[1])
        (folder / f"{query} {form}").mkdir()
        with duckdb.connect(":memory:") as connection:
            nexmark.load(connection, str(folder))
            (bids,) = connection.execute("SELECT count(*) FROM bid").fetchall()[0]
            rows = f"COPY ({nexmark_sql.SQL[query]}) TO '{folder}/{query} {form}/0.parquet'"
            connection.execute(rows)
        used = [{"python": bids * batch / 1e5 * (4 if form == "pandas" else 1)} for batch in range(1, 9)]
        return {pair: {"used": used, "seconds": 1.0, "state": [1] * 8}}

    monkeypatch.setattr(nexmark, "measured", measured)
    monkeypatch.setattr(nexmark, "AT_RATES", ())
    monkeypatch.setattr(nexmark, "_forms", lambda setting, query: ["operators", "pandas"])
    real = nexmark.events
    monkeypatch.setattr(nexmark, "events", lambda count, **options: real(count // 50, **options))
    figures = {figure.name: figure for figure in nexmark.run(Setting(False, 1, lambda step: None, "q18"))}
    assert figures["q18"].sizes.startswith("9,200 records")
    assert figures["q18: applyInPandasWithState"].sizes.startswith("460 records")
    assert figures["q18 over applyInPandasWithState"].sizes.startswith("460 records")
    assert figures["q18 over applyInPandasWithState"].median == pytest.approx(4)
    assert figures["q18: applyInPandasWithState: rows that differ from DuckDB's"].reached
