"""The statements of SQL of a script: the tables that they read as streams, with and without parentheses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import Members, Operator
from pyspark.sql.types import StructType
from streamproof.properties.generators.columns.schemas import _of_ddl
from streamproof.properties.witnesses.job.scripts.statements import (
    ReadTable,
    relations_of,
    renamed,
    streamed_call,
    table_made,
    without_streams,
)


@pytest.mark.parametrize(
    ("statement", "plain", "streamed"),
    [
        ("SELECT * FROM STREAM(orders)", "SELECT * FROM orders", ["orders"]),
        ("SELECT * FROM STREAM orders o", "SELECT * FROM orders o", ["orders o"]),
        ("select id from stream ( shop . orders ) as o", "select id from shop . orders as o", ["shop . orders as o"]),
        ("SELECT * FROM STREAM `my shop`.orders WHERE a", "SELECT * FROM `my shop`.orders WHERE a", ["`my shop`."]),
        (
            "SELECT * FROM STREAM(a) JOIN b ON x JOIN STREAM c ON y",
            "SELECT * FROM a JOIN b ON x JOIN c ON y",
            ["a JOIN b", "c ON y"],
        ),
        ("SELECT a, stream b, stream(c) FROM d", "SELECT a, stream b, stream(c) FROM d", []),
        ("SELECT * FROM (SELECT * FROM\nSTREAM\norders)", "SELECT * FROM (SELECT * FROM\norders)", ["orders)"]),
        ("SELECT * FROM stream WHERE a", "SELECT * FROM stream WHERE a", []),
        ("SELECT * FROM stream AS s", "SELECT * FROM stream AS s", []),
        ("SELECT * FROM streams s, upstream u", "SELECT * FROM streams s, upstream u", []),
        ("SELECT stream, b FROM a", "SELECT stream, b FROM a", []),
        ("SELECT 'FROM STREAM a' FROM b -- FROM STREAM c", "SELECT 'FROM STREAM a' FROM b -- FROM STREAM c", []),
        ("SELECT * FROM STREAM read_files('/x')", "SELECT * FROM STREAM read_files('/x')", []),
    ],
)
def test_a_table_that_is_read_as_a_stream_is_told_from_others(statement: str, plain: str, streamed: list[str]) -> None:
    text, starts = without_streams(statement)
    assert text == plain
    assert len(starts) == len(streamed)
    assert all(text[start:].startswith(name) for start, name in zip(sorted(starts), streamed, strict=True))


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("SELECT * FROM STREAM read_files('/x')", "read_files"),
        ("SELECT * FROM STREAM(cloud_files('/x'))", "cloud_files"),
        ("SELECT * FROM a JOIN stream read_kafka (b)", "read_kafka"),
        ("SELECT 'FROM STREAM f(x)' FROM STREAM(orders)", None),
        ("SELECT count(*) FROM STREAM orders", None),
    ],
)
def test_a_function_that_is_read_as_a_stream_is_named(statement: str, call: str | None) -> None:
    assert streamed_call(statement) == call


def relation_at(text: str, name: str, said: str | None = None) -> Any:
    known = lambda at: SimpleNamespace(isDefined=lambda: True, get=lambda: at)  # noqa: E731
    start = text.index(name)
    origin = SimpleNamespace(startIndex=lambda: known(start), stopIndex=lambda: known(start + len(name) - 1))
    parts = (said or name).replace("`", "").split(".")
    given: Any = {"origin": origin, "multipartIdentifier": parts, "innerChildren": []}
    return Operator("UnresolvedRelation", output=[], streams=False, **given)


def parsed(text: str, plan: Any) -> list[tuple[str, bool]]:
    parser = SimpleNamespace(parsePlan=lambda statement: plan)
    session: Any = SimpleNamespace(sessionState=lambda: SimpleNamespace(sqlParser=lambda: parser))
    spark = SimpleNamespace(_jsparkSession=session)
    return [(one.name, one.aliased) for one in relations_of(spark, text)]


def test_the_tables_of_a_statement_are_those_that_no_with_names_in_the_order_of_the_text() -> None:
    exact = "WITH c AS (SELECT * FROM shop.a) SELECT * FROM bb JOIN c"
    inner = Operator("SubqueryAlias", relation_at(exact, "shop.a"), output=[], innerChildren=[])
    again = SimpleNamespace(_1=lambda: "c", _2=lambda: inner)
    both = Operator("Join", relation_at(exact, "bb"), relation_at(exact, "c"), output=[], innerChildren=[])
    given = Operator("UnresolvedWith", both, output=[], cteRelations=[again], innerChildren=[])
    assert parsed(exact, given) == [("shop.a", True), ("bb", False)]
    elsewhere = Operator("Project", relation_at(exact, "bb JOIN", "bb"), output=[], innerChildren=[])
    assert parsed(exact, elsewhere) == []  # a name that isn't where the parser says is left alone
    inside = "SELECT (SELECT 1 FROM `t t`) FROM u"
    top = Operator("Project", relation_at(inside, "u"), output=[], innerChildren=[relation_at(inside, "`t t`")])
    assert parsed(inside, top) == [("t t", False), ("u", False)]


def test_a_table_that_the_text_does_not_name_is_left_alone() -> None:
    unknown = SimpleNamespace(isDefined=lambda: False)
    origin = SimpleNamespace(startIndex=lambda: unknown, stopIndex=lambda: unknown)
    given: Any = {"origin": origin, "multipartIdentifier": ["a"], "innerChildren": []}
    assert parsed("SELECT * FROM a", Operator("UnresolvedRelation", output=[], streams=False, **given)) == []


@pytest.mark.parametrize(
    ("name", "aliased", "other", "made"),
    [
        ("a", False, "x", "SELECT * FROM `x` AS `a`"),
        ("a", True, "x", "SELECT * FROM `x`"),
        ("a", False, "a", "SELECT * FROM `a`"),
        ("shop.a", False, "a", "SELECT * FROM `a`"),
        ("shop.a", False, "x", "SELECT * FROM `x` AS `a`"),
    ],
)
def test_a_replaced_table_keeps_the_name_that_the_statement_uses(
    name: str, aliased: bool, other: str, made: str
) -> None:
    text = f"SELECT * FROM {name}"
    start = text.index(name)
    assert renamed(text, [(ReadTable(name, start, len(text), aliased, False, None), other)]) == made


def of_plan(plan: Any) -> Any:
    state = SimpleNamespace(sqlParser=lambda: SimpleNamespace(parsePlan=lambda statement: plan))
    return SimpleNamespace(_jsparkSession=SimpleNamespace(sessionState=lambda: state))


def test_the_columns_of_a_table_are_those_of_the_statement_that_makes_it() -> None:
    def made(kind: str, columns: str) -> Any:
        schema: Any = _of_ddl(columns) if columns else StructType()
        name = SimpleNamespace(nameParts=lambda: Members(["lake", "t"]))
        given = {"name": name, "tableSchema": SimpleNamespace(json=schema.json)}
        return of_plan(Operator(kind, output=[], **given))

    found = table_made(made("CreateTable", "user string, n int"), "…")
    assert found is not None
    assert (found[0], found[1].names) == ("lake.t", ["user", "n"])
    assert table_made(made("CreateTable", ""), "…") is None
    assert table_made(made("DropTable", "n int"), "…") is None
