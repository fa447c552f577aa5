"""How a script's reads are told apart, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.witnesses.job.scripts.reads import Frames, Read


def read(method: str = "load", target: Any = None, *arguments: Any, options: Any = None, **named: Any) -> Read:
    made = Read(options=options or {})
    made.load(method, target, arguments, named)
    return made


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (read(options={"subscribe": "orders, clicks"}), "clicks"),
        (read(options={"assign": '{"clicks": [0, 1]}'}), "clicks"),
        (read(options={"subscribepattern": "events.*"}), "events.*"),
        (read("json", "/data/in/clicks/"), "clicks"),
        (read("parquet", path="s3a://lake/clicks/*"), "clicks"),
        (read("load", "/data/clicks.json", "json"), "clicks"),
        (read(options={"path": "/data/clicks"}), "/data/clicks"),
        (read("table", "shop.bronze.Clicks"), "clicks"),
        (read("table", tableName="shop.bronze.clicks"), "shop.bronze.clicks"),
        (read("jdbc", "jdbc:postgresql://db/shop", "public.clicks"), "clicks"),
        (read("jdbc", url="jdbc:postgresql://db/shop", table="clicks"), "clicks"),
        (read("load", None, "rate"), "rate"),
        (read("load", format="Socket"), "socket"),
        (read(options={"stream": "clicks"}), "clicks"),
        (read(options={"subscribe": "server.shop.clicks"}), "clicks"),
        (read("csv", "/data/in/clicks/*.csv"), "clicks"),
        (read("json", "dbfs:/mnt/clicks/year=*/month=*/"), "clicks"),
        (read("parquet", "/lake/clicks/day=2024-01-01/{a,b}/part-?.parquet"), "clicks"),
        (read("json", "./data/clicks"), "data/clicks"),
        (read("load", None, "jdbc", options={"dbtable": "(SELECT id FROM shop.clicks) AS c"}), "clicks"),
        (read("load", None, "jdbc", options={"query": "select * from a join `shop`.`clicks` using (id)"}), "clicks"),
        (read(options={"eventhubs.connectionstring": "Endpoint=sb://x/;EntityPath=clicks;Key=k"}), "clicks"),
        (read("load", None, "bigquery", options={"table": "project.shop.clicks"}), "clicks"),
    ],
    ids=str,
)
def test_a_source_has_the_names_of_its_topics_path_table_and_format(made: Read, name: str) -> None:
    assert name in made.names


def test_a_read_is_answered_by_its_name_else_in_order_and_a_second_time_by_the_same(monkeypatch: Any) -> None:
    again = "streamproof.properties.witnesses.job.scripts.reads.renewed"
    monkeypatch.setattr(again, lambda frame: f"{frame} again")
    frames: Any = {"orders": "o", "clicks": "c", "views": "v"}
    inputs = Frames(frames)
    clicks = read(options={"subscribe": "clicks"})
    assert inputs.answer(clicks, in_order=True) == {"clicks": "c"}
    assert inputs.answer(read("json", "/in/other"), in_order=False) == {}
    assert inputs.answer(read("json", "/in/other"), in_order=True) == {"orders": "o"}
    assert inputs.answer(read("json", "/in/other"), in_order=True) == {"orders": "o again"}
    assert inputs.unread() == ["views"]
    assert inputs.answer(read("table", "views"), in_order=True) == {"views": "v"}
    assert inputs.answer(read("table", "more"), in_order=True) == {}


def test_the_schema_and_the_format_are_the_reader_s_or_the_call_s() -> None:
    assert read("csv", "/in", "a int").schema == "a int"
    assert read("csv", "/in", schema="b int").schema == "b int"
    assert (read("csv", "/in").format, read("load", "/in", "JSON").format) == ("csv", "json")


CHOICES = {
    "the closest name": (read("table", "silver.orders"), ["orders", "silver.orders"], ["silver.orders"]),
    "a longer name of a table": (read("table", "customers"), ["orders", "shop.customers"], ["shop.customers"]),
    "the end of a path": (read("csv", "/home/me/project/data/in.csv"), ["data/in.csv"], ["data/in.csv"]),
    "a path that is written otherwise": (read("csv", "data/in.csv"), ["./data/in.csv"], ["./data/in.csv"]),
    "no part of a name": (read("table", "shop.customers"), ["customer", "s", "shop", "customers_old"], []),
    "each of several topics": (read(options={"subscribe": "orders, payments"}), ["payments", "x", "orders"], None),
    "several topics as one": (read(options={"subscribe": "a,b"}), ["a", "a,b"], ["a,b"]),
    "a pattern of topics": (read(options={"subscribepattern": "o.*"}), ["orders", "views", "offers"], None),
    "a pattern by its text": (read(options={"subscribepattern": "o.*"}), ["orders", "o.*"], ["o.*"]),
    "assigned topics": (
        read(options={"assign": '{"orders": [0], "payments": [1]}'}),
        ["orders", "x", "payments"],
        None,
    ),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_a_read_is_answered_by(choice: str) -> None:
    made, names, chosen = CHOICES[choice]
    assert made.chosen(names) == ([*names[:1], *names[2:]] if chosen is None else chosen)
