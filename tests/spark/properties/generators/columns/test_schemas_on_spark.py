"""Plain DDL is read as Spark reads it; all else is left to Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType
from streamproof.properties.generators.columns.schemas import _Ddl, arrow_schema
from streamproof.properties.witnesses.job.rows import columns_of
from streamproof.reference.core.errors import BadInput


@pytest.mark.parametrize(
    "text",
    [
        "a tinyint, b byte, c smallint, d short, e int, f integer, g bigint, h long",
        "a float, b real, c double, d decimal, e dec(5), f numeric(38, 18), g boolean",
        "a string NOT NULL, `b ``c`` d` binary, C date, d timestamp, e timestamp_ntz, f timestamp_ltz, g void",
        "a array<int>, b map<string,array<bigint>>, c struct<x: int NOT NULL, `y z`: map<int, struct<w: date>>>",
        "  a   INT ,\n b String not  null  ",
    ],
)
def test_plain_ddl_is_read_as_spark_reads_it(spark: SparkSession, text: str) -> None:
    assert _Ddl(text).columns() == DataType.fromDDL(text)


def test_what_is_not_plain_is_left_to_spark(spark: SparkSession) -> None:
    schema = arrow_schema("a string COMMENT 'whose', s struct<x int>")
    assert [field.name for field in schema.field("s").type] == ["x"]


@pytest.mark.parametrize("text", ["user strin, at timestamp", "user string at timestamp", "a int,", "a array<int"])
def test_a_mistake_is_said_in_sparks_words(spark: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match=r"^Spark can't read the schema"):
        arrow_schema(text)


def test_a_type_alone_is_no_schema(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match="has no columns"):
        arrow_schema("int")


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ("user string, visit struct<start: timestamp, end: timestamp>, n int", "user start end n"),
        ("of struct<start: timestamp_ntz, end: timestamp_ntz>", "start end"),
        ("of struct<start: timestamp, end: timestamp, zone: string>", "of"),
        ("of struct<start: int, end: int>, start int", "of start"),
        ("a struct<start: timestamp, end: timestamp>, b struct<start: timestamp, end: timestamp>", "a b"),
        ("a struct<start: timestamp, end: timestamp>, window struct<start: timestamp, end: timestamp>", "a start end"),
    ],
)
def test_the_window_of_a_result_is_found_by_its_type(spark: SparkSession, schema: str, columns: str) -> None:
    assert columns_of(spark.createDataFrame([], schema)) == columns.split()
