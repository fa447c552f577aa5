"""What is inferred from kinds of scripts: how they parse a payload, where they have their times, what they wait for."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.witnesses.job.inference.inferring import InferredQuery, inferred_queries
from streamproof.properties.witnesses.job.scripts.lifting import ScriptSource
from streamproof.properties.witnesses.job.scripts.remedies import ON_COMMAND_LINE
from streamproof.reference.core.errors import BadInput

KAFKA = 'spark.readStream.format("kafka").option("subscribe", "visits").load()'


def inferred(text: str, spark: SparkSession, folder: Path) -> list[InferredQuery]:
    path = folder / "job.py"
    path.write_text(
        f"from pyspark.sql import functions as F\nk, text = {KAFKA}, F.col('value').cast('string')\n{dedent(text)}"
    )
    return inferred_queries(ScriptSource(path, remedies=ON_COMMAND_LINE), spark, {}, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            """
            rows = k.select(F.from_json(F.decode("value", "utf-8"), "user string, at timestamp").alias("v"))
            rows.select("v.*").groupBy("user").count().writeStream.outputMode("update").start()
            """,
            'Input("user string, at timestamp", key="user", format="kafka")',
            id="a decoded payload",
        ),
        pytest.param(
            """
            rows = k.select(F.from_json(text, "`Größe` int, `DATA HORA` timestamp").alias("v"))
            rows.select("v.*").groupBy(F.window("DATA HORA", "5 minutes")).count().writeStream.start()
            """,
            'Input("`Größe` int, `DATA HORA` timestamp", format="kafka")',
            id="names that SQL has to quote",
        ),
        pytest.param(
            """
            from pyspark.sql.avro.functions import from_avro, to_avro
            time = '{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}'
            fields = '{"name": "user", "type": "string"}, ' + time
            schema = '{"type": "record", "name": "click", "fields": [' + fields + "]}"
            rows = k.select(from_avro(F.expr("substring(value, 6)"), schema).alias("v")).select("v.*")
            rows.withWatermark("at", "1 minute").groupBy("user", F.window("at", "1 hour")).count().select(
                to_avro(F.struct("user", "count")).alias("value")).writeStream.start()
            """,
            'Input("user string, at timestamp", key="user", format="kafka")',
            id="Avro without its package",
        ),
        pytest.param(
            """
            parts = k.select(F.split(text, ", ").alias("p"))
            rows = parts.select(F.col("p")[0].alias("user"), F.col("p")[2].cast("int").alias("n"))
            rows.groupBy("user").sum("n").writeStream.outputMode("update").start()
            """,
            'Input("user string, part1 string, n int", key="user", format="kafka", '
            'value=lambda row: ", ".join(str(row[name]) for name in ["user", "part1", "n"]).encode(), '
            'values={"part1": ["x", "y", "z", "A"]})',
            id="parts between separators",
        ),
        pytest.param(
            """
            rows = k.select(F.from_json(text, "user string, price string").alias("v"))
            rows.select("v.user", F.col("v.price").cast("double").alias("p")).writeStream.start()
            """,
            'Input("user string, price double", key="user", format="kafka")',
            id="text that is read as a number",
        ),
        pytest.param(
            """
            rows = k.select(F.from_json(text, "user string, a timestamp, b timestamp").alias("v"))
            rows.select("v.*").groupBy("user", F.window("b", "1 hour")).count().writeStream.outputMode("update").start()
            """,
            'Input("user string, a timestamp, b timestamp", key="user", time="b", format="kafka")',
            id="a window without a watermark",
        ),
        pytest.param(
            """
            rows = k.select(F.from_json(text, "user string, at string").alias("v")).select("v.*")
            rows.withColumn("at", F.to_timestamp("at", "dd/MM/yyyy HH:mm:ss")).writeStream.start()
            """,
            'Input("user string, at string", key="user", time="at", time_format="%d/%m/%Y %H:%M:%S", format="kafka")',
            id="text that is read as a time without a watermark",
        ),
        pytest.param(
            """
            rows = spark.readStream.schema("n string, name string").csv("/in/rows")
            rows.withColumn("number", F.col("n").cast("int")).writeStream.start()
            """,
            'Input("n string, name string", key="name", time=False, values={"n": ["1", "2", "0", "-3"]})',
            id="a text of a file that is read as a number, and so is no key",
        ),
        pytest.param(
            """
            rows = spark.readStream.schema("id string, at timestamp, n int").json("/in/rows")
            rows.withWatermark("at", "1 hour").dropDuplicates(["id", "at"]).writeStream.start()
            """,
            'Input("id string, at timestamp, n int", key="id", identity=["id", "at"])',
            id="a deduplication, whose columns identify an event",
        ),
        pytest.param(
            """
            rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
            rows.withWatermark("timestamp", "1 minute").groupBy(F.col("value") % 6).count().writeStream.start()
            """,
            'Input("timestamp timestamp, value bigint")',
            id="the rate source",
        ),
    ],
)
def test_an_input_is_inferred(text: str, said: str, spark: SparkSession, tmp_path: Path) -> None:
    (query,) = inferred(text, spark, tmp_path)
    assert [query.inputs[name].text for name in query.own] == [said]


def test_a_widget_without_a_default_gets_a_stand_in_that_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (query,) = inferred(
        "k.withColumn('of', F.lit(dbutils.widgets.get('Team-Name'))).writeStream.start()", spark, tmp_path
    )
    assert query.source.widgets == {"Team-Name": "team_name"}
    assert [*query.told] == ["its widget Team-Name is team_name: set another in the widget's default"]


def test_what_a_script_prepares_for_its_sink_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    text = """
    from cassandra.cluster import Cluster
    with Cluster(["db"]).connect() as session:
        session.execute("CREATE TABLE visits …")
        rows = [*session.execute("SELECT …")]
    if session and not rows:
        k.writeStream.start()
    """
    (query,) = inferred(text, spark, tmp_path)
    assert query.own == ["visits"]


def test_a_query_before_a_failure_is_inferred_if_it_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    text = "k.writeStream.start()\nk.select('nothing').writeStream.start()"
    with pytest.raises(BadInput, match="name the query to check, --query 0"):
        inferred(text, spark, tmp_path)
    (query,) = inferred_queries(ScriptSource(tmp_path / "job.py"), spark, {}, {}, only_some=True)
    assert query.index == 0


def test_columns_are_learned_of_the_table_that_spark_names(spark: SparkSession, tmp_path: Path) -> None:
    text = """
    rows = k.select(F.from_json(text, "car string, at timestamp").alias("v")).select("v.*")
    cars, models = spark.read.parquet("s3a://dims/cars"), spark.read.parquet("s3a://dims/models")
    rows.join(cars, "car").join(models, "model").select("car", "maker").writeStream.start()
    """
    (query,) = inferred(text, spark, tmp_path)
    found = {name: rows.column_names for name, rows in query.tables.items()}
    assert found == {"s3a://dims/cars": ["car", "model", "maker"], "s3a://dims/models": ["model"]}


def test_a_script_does_not_sleep_before_its_first_query(spark: SparkSession, tmp_path: Path) -> None:
    (query,) = inferred("import time\ntime.sleep(600)\nk.writeStream.start()", spark, tmp_path)
    assert query.own == ["visits"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = int(input('port? '))", "line 3 of .* asks for input, 'port\\?': make the script read an argument"),
        (
            "from pyspark.streaming import StreamingContext\nStreamingContext(spark.sparkContext, 1)",
            "line 4 of .* creates a StreamingContext: .* no DStreams",
        ),
        ("spark.table('t')\nclock()", "raised NameError, in line 4: .*; define clock, or guard the line"),
        ("raise SystemExit('usage: job.py TOPIC')", r"ends with exit.*--argument VALUE"),
    ],
)
def test_a_refusal_names_the_line_and_the_remedy(text: str, said: str, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        inferred(text, spark, tmp_path)
    assert "\n" not in refused.value.message
    assert "Script(" not in refused.value.message


def test_a_script_that_takes_too_long_is_interrupted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamproof.properties.witnesses.job.inference.exploring.SECONDS", 1.0)
    with pytest.raises(
        BadInput, match=r"neither ends nor waits for its queries within 1 s \(it was in line [34] of .*job.py\)"
    ):
        inferred("while True:\n    pass", spark, tmp_path)
