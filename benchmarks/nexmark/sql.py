"""Runs Nexmark's queries as SQL over whole tables in DuckDB, and compares a query's result with DuckDB's result.

Source: the statements of github.com/nexmark/nexmark. The published statements leave ties undefined, and a bid at the
very end of a window can be its highest (q7); here a window's end is exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import duckdb

AUCTION = "id, item_name, description, initial_bid, reserve, time, expires, seller, category, extra"
OPEN = "bid.auction = auction.id AND bid.time BETWEEN auction.time AND auction.expires"
SQL: Mapping[str, str] = {
    "q4": f"""
        SELECT category, (sum(final) // count(*))::BIGINT, sum(final)::BIGINT, count(*)
        FROM (SELECT auction.id, category, max(price) AS final FROM auction JOIN bid ON {OPEN} GROUP BY ALL)
        GROUP BY category
    """,
    "q7": """
        SELECT auction, bidder, price, time, extra
        FROM bid JOIN (SELECT time // 10000 AS number, max(price) AS price FROM bid GROUP BY ALL) AS highest
            USING (price)
        WHERE bid.time // 10000 = number
    """,
    "q8": """
        SELECT DISTINCT person.id, name, person.time // 10000 * 10000
        FROM person JOIN auction ON seller = person.id AND auction.time // 10000 = person.time // 10000
    """,
    "q9": f"""
        SELECT {", ".join(f"auction.{name}" for name in AUCTION.split(", "))},
            auction, bidder, price, bid.time, bid.extra
        FROM auction JOIN bid ON {OPEN}
        QUALIFY row_number() OVER (PARTITION BY auction.id ORDER BY price DESC, bid.time, bid."order") = 1
    """,
    "q11": """
        SELECT bidder, count(*), min(time), max(time)
        FROM (
            SELECT bidder, time, sum(begins) OVER (PARTITION BY bidder ORDER BY time, "order") AS session
            FROM (
                SELECT *, coalesce(time - lag(time) OVER earlier > 10000, TRUE)::INT AS begins
                FROM bid WINDOW earlier AS (PARTITION BY bidder ORDER BY time, "order")
            )
        )
        GROUP BY bidder, session
    """,
    "q18": """
        SELECT auction, bidder, price, channel, url, time, extra FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY time DESC, "order" DESC) = 1
    """,
    "q20": f"""
        SELECT auction, bidder, price, channel, url, bid.time, bid.extra,
            {", ".join(f"auction.{name}" for name in AUCTION.split(", "))}
        FROM bid JOIN auction ON auction = id WHERE category = 10
    """,
}
FIRST_OF_CLOSING = {"person": "id >= 0", "auction": "id >= 0", "bid": "auction >= 0"}


class Compared(NamedTuple):
    """The number of a query's rows by DuckDB, and the number of rows that only one side contains."""

    rows: int
    differing: int


def load(connection: duckdb.DuckDBPyConnection, folder: str) -> None:
    """Read the events as tables, without the closing events.

    Args:
        connection: The database of the tables.
        folder: The folder with one folder of parquet files per kind.
    """
    for kind, is_event in FIRST_OF_CLOSING.items():
        connection.execute(
            f"CREATE OR REPLACE TABLE {kind} AS FROM read_parquet('{folder}/{kind}/*.parquet') WHERE {is_event}"
        )


def compared(connection: duckdb.DuckDBPyConnection, query: str, result: str) -> Compared:
    """Compare a result, as a bag of rows, with the rows of the query in DuckDB, over the tables of `load`.

    Args:
        connection: The database of the tables.
        query: The query's name.
        result: The parquet files of the result.
    """
    connection.execute(f"CREATE OR REPLACE TABLE expected AS {SQL[query]}")
    connection.execute(f"CREATE OR REPLACE TABLE found AS FROM read_parquet('{result}')")
    ways = (("found", "expected"), ("expected", "found"))
    sides = [f"(SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other}))" for one, other in ways]
    found = connection.execute(f"SELECT (SELECT count(*) FROM expected), {' + '.join(sides)}").fetchall()[0]
    return Compared(*found)
