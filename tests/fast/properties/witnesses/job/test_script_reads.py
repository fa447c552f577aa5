"""How a script's reads are told apart, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from memory_spark import Session, memory_session
from streamproof import BadInput
from streamproof.properties.witnesses.job.scripts import answers
from streamproof.properties.witnesses.job.scripts.reads import Frames, Read, as_declared, of_topics


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
    "a name that ends with the letters of another": (read("table", "orders"), ["reorders", "my_orders"], []),
    "a path that ends with the letters of another": (read("csv", "/in/preorders"), ["orders", "reorders"], []),
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


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with memory_session(tmp_path) as session:
        yield session


def test_the_records_of_an_input_are_of_all_topics_that_are_read_in_turns(session: Session) -> None:
    records = session.createDataFrame(pa.table({"topic": ["x"] * 5, "offset": [0, 1, 2, 3, 4]}))
    for topics, wanted in ((["a"], "aaaaa"), (["a", "b"], "ababa"), (["a", "b", "c"], "abcab")):
        found = of_topics(records, topics)
        assert found.columns == ["topic", "offset"]
        rows = found.toArrow().to_pylist()
        assert "".join(row["topic"] for row in rows) == wanted
        assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4]


def test_the_columns_of_a_table_have_the_types_and_the_order_of_the_reader_s_schema(session: Session) -> None:
    frame = session.createDataFrame(pa.table({"Other": ["a"], "n": pa.array([1], pa.int32()), "m": [2]}))
    read = Read(schema="n bigint, other string")
    cast = as_declared(frame, read, "t", "job.py", cast=True)
    assert (cast.dtypes, cast.toArrow().num_rows) == ([("n", "bigint"), ("other", "string")], 1)
    with pytest.raises(BadInput, match=r"reads n of .* as bigint, and its type in reads\['t'\] is int: give its Input"):
        as_declared(frame, read, "t", "job.py")
    same = as_declared(frame, Read(schema="n int, other string"), "t", "job.py")
    assert same.columns == ["n", "Other"]
    assert as_declared(frame, Read(), "t", "job.py") is frame
    with pytest.raises(BadInput, match=r"reads the column none of .*, and reads\['t'\] has Other, n, m"):
        as_declared(frame, Read(schema="none int"), "t", "job.py", cast=True)


@pytest.mark.parametrize("target", ["out", ["out", "other"], None])
def test_only_a_single_path_may_be_a_target_that_is_read_again(target: Any) -> None:
    asked: list[Any] = []

    class Reader:
        def load(self, *given: Any) -> Any:
            return given

    def instead_of(path: str | None) -> str | None:
        asked.append(path)
        return None if path is None else "kept"

    lift: Any = SimpleNamespace(instead_of=instead_of)
    load = answers._readers_of_targets(lift, Reader)["load"]
    is_path = isinstance(target, str)
    assert load(Reader(), target) == (("kept",) if is_path else () if target is None else (target,))
    assert asked == [target if is_path else None]


@pytest.mark.parametrize(("instead", "given"), [(None, ("table", "t")), ("kept", ("parquet", "kept"))])
def test_a_table_that_a_function_wrote_is_read_from_its_files_and_others_by_name(
    instead: str | None, given: tuple[str, str]
) -> None:
    class Reader:
        def table(self, name: str) -> Any:
            return "table", name

        def format(self, name: str) -> Any:
            return SimpleNamespace(load=lambda path: (name, path))

    lift: Any = SimpleNamespace(instead_of=lambda path: instead)
    assert answers._readers_of_targets(lift, Reader)["table"](Reader(), "t") == given
