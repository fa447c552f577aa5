"""What a script's reads, statements and notebooks are answered with, over frames that don't stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
from streamproof import BadInput, Input, Script
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.generators.columns.wire import Encoder
from streamproof.properties.system.installed.spark_versions import frame_of_arrow

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)
ORDERS = Input("id string, customer string, at timestamp", key="id")
ROWS = [{"id": f"o{number}", "customer": f"c{number}", "at": NOON} for number in (1, 2)]
CUSTOMERS = [{"customer": "c1", "name": "ann"}, {"customer": "c2", "name": "bo"}]
HEAD = """\
import os, sys, time
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id string, customer string, at timestamp").json("/lake/orders")
orders.createOrReplaceTempView("orders")
"""
PAIRS = [("o1", "ann"), ("o2", "bo")]


@dataclass
class Lifted:
    """Runs scripts over frames: each input has two rows, and a table those that are given."""

    spark: SparkSession
    folder: Path
    name: str = "job.py"
    notes: Sequence[str] = ()
    files: list[str] = field(default_factory=list)

    def __call__(self, text: str, reads: Mapping[str, Any], **given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a script's query."""
        path = self.folder / self.name
        if path.suffix == ".ipynb":
            cells = [{"cell_type": "code", "source": cell} for cell in text.split("# COMMAND ----------\n")]
            text = json.dumps({"cells": cells})
        path.write_text(text)
        script = Script(path, reads=reads, **given)
        tables = []
        for one in script.inputs:
            source = resolve(one).source
            rows = [{name: row.get(name, NOON) for name in source.schema.names} for row in ROWS]
            tables.append(Encoder(source).table(rows))
        frames = [frame_of_arrow(self.spark, table, self.folder / f"{number}") for number, table in enumerate(tables)]
        frames += [self.spark.createDataFrame(rows) for rows in script.tables.values()]
        try:
            return sorted((tuple(row) for row in script(*frames).collect()), key=str)
        finally:
            self.notes = script.notes

    def refused(self, text: str, reads: Mapping[str, Any], **given: Any) -> str:
        """Return why a script is refused."""
        with pytest.raises(BadInput) as refused:
            self(text, reads, **given)
        return refused.value.message


@pytest.fixture
def lifted(spark: SparkSession, tmp_path: Path) -> Lifted:
    return Lifted(spark, tmp_path)


JOIN = "SELECT o.id, c.name FROM orders o JOIN {} c ON o.customer = c.customer"
STATEMENTS = {
    "a full name": (JOIN.format("shop.customers"), "shop.customers"),
    "a full name, given by its last part": (JOIN.format("main.shop.customers"), "customers"),
    "a name that is given in full": (JOIN.format("customers"), "main.shop.customers"),
    "a quoted name": (JOIN.format("`shop`.`customers`"), "shop.customers"),
    "a name in capitals": (JOIN.format("Shop.CUSTOMERS"), "shop.customers"),
    "without another name": (
        "SELECT orders.id, customers.name FROM orders JOIN shop.customers USING (customer)",
        "shop.customers",
    ),
    "columns by the full name": (
        "SELECT id, shop.customers.name FROM orders, shop.customers -- shop.customers.name\n"
        "WHERE orders.customer = shop.customers.customer AND name <> 'shop.customers.name'",
        "shop.customers",
    ),
    "within WITH": (
        "WITH c AS (SELECT * FROM shop.customers) SELECT id, name FROM orders JOIN c USING (customer)",
        "customers",
    ),
    "beside a name of WITH": (
        "WITH customers AS (SELECT customer, upper(name) AS name FROM shop.customers), "
        "c AS (SELECT customer, lower(name) AS name FROM customers) "
        "SELECT id, name FROM orders JOIN c USING (customer)",
        "shop.customers",
    ),
    "within a subquery": (
        "SELECT id, name FROM (SELECT * FROM shop.customers WHERE customer IN (SELECT customer FROM shop.customers)) "
        "JOIN orders USING (customer)",
        "shop.customers",
    ),
    "as a stream": (JOIN.format("customers").replace("FROM orders", "FROM STREAM(shop.orders)"), "customers"),
    "with text of more than one unit": (f"/* 😀 */ {JOIN.format('shop.customers')}", "shop.customers"),
}


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.in_ci("a full name, given by its last part", "beside a name of WITH", "columns by the full name")
def test_a_statement_reads_the_tables_that_are_given(statement: str, lifted: Lifted) -> None:
    text, name = STATEMENTS[statement]
    started = f'spark.sql("""{text}""").writeStream.toTable("shop.named")\n'
    assert lifted(HEAD + started, {"orders": ORDERS, name: CUSTOMERS}) == PAIRS


READS = {
    "the session's": 'spark.table("main.shop.customers")',
    "a reader's": 'spark.read.table("shop.customers")',
    "a reader's of a format": 'spark.read.format("delta").table("shop.customers")',
    "a statement's": 'spark.sql("SELECT * FROM shop.customers")',
    "a statement for a database": (
        'spark.read.format("jdbc").option("dbtable", "(select * from shop.customers) as c").load()'
    ),
    "a query": 'spark.read.format("jdbc").option("query", "select * from shop.customers").load()',
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.in_ci("the session's", "a query")
def test_a_table_is_read_by_its_full_name(read: str, lifted: Lifted) -> None:
    started = f'orders.join({read}, "customer").select("id", "name").writeStream.table("shop.named")\n'
    assert lifted(HEAD + started, {"orders": ORDERS, "customers": CUSTOMERS}) == PAIRS


def test_a_catalog_has_the_tables_that_are_given_and_is_not_changed(lifted: Lifted) -> None:
    text = """
assert spark.catalog.tableExists("shop.customers") and spark.catalog.tableExists("customers", "shop")
assert spark.catalog.databaseExists("shop") and not spark.catalog.databaseExists("other")
assert not spark.catalog.tableExists("shop.named") and not spark.catalog.tableExists("nowhere.shop.named")
spark.catalog.setCurrentCatalog("main")
spark.catalog.setCurrentDatabase("shop")
spark.catalog.refreshTable("shop.customers")
spark.catalog.createTable("named", schema=orders.schema)
spark.sql("USE CATALOG main")
spark.sql("SET spark.sql.session.timeZone = Asia/Kolkata")
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
spark.sql("CREATE OR REPLACE TEMP VIEW known AS SELECT * FROM shop.customers")
spark.sql("CREATE TABLE IF NOT EXISTS named (id STRING) USING delta")
spark.table("known").write.mode("overwrite").saveAsTable("copy")
orders.join(spark.table("known"), "customer").select("id", "name").writeStream.toTable("main.shop.named")
"""
    before = lifted.spark.conf.get("spark.sql.session.timeZone")
    assert lifted(HEAD + text, {"orders": ORDERS, "shop.customers": CUSTOMERS}) == PAIRS
    said = ("catalog.createTable(…)", "'CREATE TABLE IF NOT EXISTS named (id STRING) USING delta'", "saveAsTable(…)")
    assert all(any(f"{each} isn't run" in note for note in lifted.notes) for each in said)
    assert lifted.spark.conf.get("spark.sql.session.timeZone") == before
    assert not lifted.spark.catalog.tableExists("known")


def test_a_table_of_a_statement_that_is_not_given_is_named(lifted: Lifted) -> None:
    text = f'spark.sql("{JOIN.format("shop.customers")}").writeStream.start()\n'
    assert "reads shop.customers, which can't be read here: [TABLE_OR_VIEW_NOT_FOUND]" in lifted.refused(
        HEAD + text, {"orders": ORDERS}
    )
    both = {"orders": ORDERS, "products": CUSTOMERS}
    assert "give its rows, reads={'shop.customers': [{…}]}" in lifted.refused(HEAD + text, both)


KAFKA = """\
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
raw = spark.readStream.format("kafka").option({option}).load()
read = raw.select("topic", F.from_json(F.col("value").cast("string"), "id string").alias("v")).select("topic", "v.id")
read.writeStream.start()
"""
OF_KAFKA = Input("id string, at timestamp", key="id", format="kafka")
BOTH = {"orders": OF_KAFKA, "payments": OF_KAFKA}
EACH = [("orders", "o1"), ("orders", "o2"), ("payments", "o1"), ("payments", "o2")]
TOPICS = {
    "of each topic": ('"subscribe", "orders, payments"', BOTH, EACH),
    "of a pattern": ('"subscribePattern", "orders|pay.*"', BOTH, EACH),
    "of assigned partitions": ('"assign", \'{"orders": [0], "payments": [0, 1]}\'', BOTH, EACH),
    "of topics with a prefix": (
        '"subscribe", "srv.shop.orders,srv.shop.payments"',
        BOTH,
        [(f"srv.shop.{topic}", row) for topic, row in EACH],
    ),
    "of one topic, whatever the Input's name": (
        '"subscribe", "orders"',
        {"orders": Input("id string, at timestamp", key="id", format="kafka", name="o")},
        EACH[:2],
    ),
}


@pytest.mark.parametrize("topics", TOPICS)
@pytest.mark.in_ci("of each topic", "of a pattern")
def test_a_read_of_several_topics_has_the_records_of_each(topics: str, lifted: Lifted) -> None:
    option, reads, rows = TOPICS[topics]
    assert lifted(KAFKA.replace("{option}", option), reads) == rows


@pytest.mark.parametrize("name", ["orders,payments", "orders"])
def test_one_input_may_have_the_records_of_several_topics(name: str, lifted: Lifted) -> None:
    found = lifted(KAFKA.replace("{option}", '"subscribe", "orders,payments"'), {name: OF_KAFKA})
    assert sorted(row for _, row in found) == ["o1", "o2"]
    assert {topic for topic, _ in found} <= {"orders", "payments"}


ENVELOPES = {
    "kinesis": ("kinesis", "streamName", "data", "stream, partitionKey", ("clicks", "o1")),
    "aws-kinesis": ("kinesis", "kinesis.streamName", "data", "streamName, partitionKey", ("clicks", "o1")),
    "eventhubs": ("eventhubs", "eventhubs.name", "body", "partitionKey, properties['x']", ("o1", None)),
    "pubsub": ("pubsub", "topicId", "payload", "attributes, ''", ("{}", "")),
    "pulsar": ("pulsar", "topic", "value", "__topic, CAST(__key AS STRING)", ("clicks", "o1")),
}


@pytest.mark.parametrize("source", ENVELOPES)
@pytest.mark.in_ci("eventhubs")
def test_a_source_of_records_has_the_columns_of_its_form(source: str, lifted: Lifted) -> None:
    form, option, payload, columns, values = ENVELOPES[source]
    text = f"""
encrypted = sc._jvm.org.apache.spark.eventhubs.EventHubsUtils.encrypt("Endpoint=sb://x")
options = {{"{option}": "clicks", "eventhubs.connectionString": encrypted}}
raw = spark.readStream.format("{source}").options(**options).load()
read = raw.select(F.from_json(F.col("{payload}").cast("string"), "id string").alias("v"), F.expr("struct({columns})"))
read.select("v.id", read[1]).writeStream.start()
"""
    clicks = Input("id string, at timestamp", key="id", format=form)  # type: ignore[arg-type]
    first, _ = lifted("from pyspark.sql import functions as F\n" + text, {"clicks": clicks})
    assert (first[0], tuple(first[1])) == ("o1", values)
    plain = Input("id string, at timestamp", key="id")
    assert f'give it as Input(…, format="{form}")' in lifted.refused(
        "from pyspark.sql import functions as F\n" + text, {"clicks": plain}
    )


SCHEMAS = {
    "of a path": 'schema = spark.read.json("/lake/orders").schema\n',
    "of a glob": 'schema = spark.read.option("inferSchema", True).csv("/lake/orders/*.csv", header=True).schema\n',
    "of a few rows": 'schema = spark.read.format("parquet").load("/lake/orders").limit(1).schema\n',
    "of a table": 'schema = spark.table("shop.orders").schema\n',
    "that is looked at": (
        'known = spark.read.load("/lake/orders")\nknown.printSchema()\n'
        "assert known.count() == 0\nschema = known.schema\n"
    ),
    "of a statement": 'schema = spark.sql("SELECT * FROM bronze.orders").schema\n',
}
STREAM = "spark.readStream.schema(schema).json('/lake/orders').select('id').writeStream.start()\n"


@pytest.mark.parametrize("read", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.in_ci("of a glob", "of a statement")
def test_a_batch_read_of_a_stream_s_own_source_has_its_schema(read: str, lifted: Lifted) -> None:
    assert lifted(read + STREAM, {"orders": ORDERS}) == [("o1",), ("o2",)]


def test_a_batch_read_of_a_stream_s_own_source_has_rows_if_they_are_given(lifted: Lifted) -> None:
    text = HEAD + 'known = spark.read.json("/lake/orders")\norders.join(known, "id").select("id").writeStream.start()\n'
    assert lifted.refused(text, {"orders": ORDERS}).endswith(
        "reads /lake/orders as a batch, and the check knows it only as a stream: give the rows of this read, too, "
        "reads={'/lake/orders': [{…}]}"
    )
    rows = [{"id": "o2", "customer": "c1", "at": NOON}]
    assert lifted(text, {"orders": ORDERS, "/lake/orders": rows}) == [("o2",)]


def test_a_table_that_two_queries_write_hands_on_the_rows_of_both(lifted: Lifted) -> None:
    text = """
orders.select("id").writeStream.toTable("bronze.orders")
orders.select(F.concat("id", F.lit("x")).alias("id"), F.lit(1).alias("n")).writeStream.toTable("bronze.orders")
assert spark.table("bronze.orders").columns == ["id", "n"]
spark.readStream.table("bronze.orders").writeStream.queryName("silver").toTable("silver.orders")
"""
    rows = [("o1", None), ("o1x", 1), ("o2", None), ("o2x", 1)]
    assert sorted(lifted(HEAD + text, {"orders": ORDERS}, query="silver"), key=str) == rows
    assert any("from the queries in lines " in note for note in lifted.notes)


def test_a_script_looks_into_its_own_sinks_and_hands_rows_on_from_query_to_query(lifted: Lifted) -> None:
    text = """
orders.select("id").writeStream.format("memory").queryName("ids").start().processAllAvailable()
spark.sql("SELECT count(*) FROM ids").show()
orders.withColumn("seen", F.lit(1)).writeStream.table("bronze.orders")
assert spark.table("bronze.orders").columns[-1] == "seen"
spark.sparkContext.addPyFile("nowhere.zip")
spark.readStream.table("bronze.orders").select("id", "seen").writeStream.queryName("silver").toTable("silver.orders")
"""
    assert lifted(HEAD + text, {"orders": ORDERS}, query="silver") == [("o1", 1), ("o2", 1)]
    assert any("rows of bronze.orders come directly from the query in line 9" in note for note in lifted.notes)
    assert any("nowhere.zip isn't added" in note for note in lifted.notes)
    counted = text.replace("F.lit(1)).writeStream", 'F.lit(1)).writeStream.outputMode("update")')
    assert lifted.refused(HEAD + counted, {"orders": ORDERS}, query="silver").endswith(
        "which its query in line 9 writes: give these rows as another Input, reads={'bronze.orders': Input(…)}"
    )


def test_files_and_modules_are_found_beside_a_script(lifted: Lifted) -> None:
    (lifted.folder / "data").mkdir()
    (lifted.folder / "data" / "customers.csv").write_text("customer,name\nc1,ann\nc2,bo\n")
    (lifted.folder / "conf.json").write_text('{"columns": ["id", "name"]}')
    (lifted.folder / "reading.py").write_text(
        "import json\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        'customers = spark.read.csv("data/customers.csv", header=True)\n'
        'columns = json.load(open("conf.json"))["columns"]\n'
    )
    text = "from .reading import columns, customers\n" + HEAD
    text += 'orders.join(customers, "customer").select(columns).writeStream.start()\n'
    for _ in range(2):
        assert lifted(text, {"orders": ORDERS}) == PAIRS


def test_a_file_that_a_script_writes_outside_is_told(lifted: Lifted) -> None:
    text = HEAD + f'open("{lifted.folder}/log.txt", "w").close()\norders.writeStream.start()\n'
    lifted(text, {"orders": ORDERS})
    assert any("line 6 of " in note and "/log.txt') writes outside" in note for note in lifted.notes)


NOTEBOOK = """\
# Databricks notebook source
# MAGIC %md
# MAGIC # Orders
# MAGIC %pip install nothing
# MAGIC %run ./setup $suffix="2"
dbutils.widgets.text("table", "shop.customers", "The table")
dbutils.widgets.dropdown("mode", "plain", ["plain", "loud"])
dbutils.fs.mkdirs("/mnt/x")
path = dbutils.notebook.entry_point.getDbutils().notebook().getContext().notebookPath().get()
if not dbutils.fs.ls("/mnt/x"):
    secret = dbutils.secrets.get(scope="a", key="b") + dbutils.jobs.taskValues.get("t", "k", default="d")
spark.sql(f"USE CATALOG {getArgument('mode')}")
orders = spark.readStream.table("bronze.orders")
found = orders.join(table(dbutils.widgets.get("table")), "customer").select("id", shown("name").alias("name"))
found.display()
displayHTML("<b>done</b>")
# COMMAND ----------
found.writeStream.toTable("gold")
dbutils.notebook.exit("done")
"""
SETUP = """\
from pyspark.sql import functions as F
from pyspark.dbutils import DBUtils
def shown(name):
    loud = DBUtils(spark).widgets.getAll()
    return F.col(name) if loud["mode"] == "plain" else F.concat(F.upper(name), F.lit(loud["suffix"]))
"""


def test_a_notebook_has_its_utilities_and_runs_another_notebook(lifted: Lifted) -> None:
    (lifted.folder / "setup.py").write_text(SETUP)
    reads = {"orders": ORDERS, "customers": CUSTOMERS}
    assert lifted(NOTEBOOK, reads) == PAIRS
    assert [note.partition(": ")[2] for note in lifted.notes][:2] == [
        "%pip install nothing isn't run",
        "dbutils.fs.mkdirs(…) isn't run",
    ]
    assert lifted(NOTEBOOK, reads, widgets={"mode": "loud"}) == [("o1", "ANN2"), ("o2", "BO2")]
    bare = NOTEBOOK.replace("# MAGIC %run", "%run").replace("# MAGIC %pip", "%pip")
    assert lifted(bare, reads) == PAIRS
    lifted.name = "job.ipynb"
    assert lifted(bare, reads) == PAIRS
    assert "line 4 of code cell 1 of" in lifted.notes[0]
    wrong = bare.replace("found.writeStream", "\nfound.write_stream")
    message = lifted.refused(wrong.replace("found.display()", ""), reads)
    assert "job.ipynb raised PySparkAttributeError, in line 2 of code cell 2: " in message


def test_a_notebook_that_is_not_there_is_named_where_its_names_are_missing(lifted: Lifted) -> None:
    reads = {"orders": ORDERS, "customers": CUSTOMERS}
    assert lifted.refused(NOTEBOOK, reads).endswith(
        """name 'shown' is not defined; the script runs the notebook ./setup $suffix="2", which is missing: """
        "export it beside the script"
    )
    from pyspark.sql import functions as F

    assert lifted(NOTEBOOK, reads, globals={"shown": F.col}) == PAIRS
    assert (
        "asks for the widget level, which has no default: give its value, Script(…, widgets={'level': …})"
        in lifted.refused('dbutils.widgets.get("level")\n', reads)
    )


def test_a_model_is_loaded_beside_the_script_or_where_it_was_saved(lifted: Lifted) -> None:
    text = f"""{HEAD}
from pyspark.ml.feature import VectorAssembler
VectorAssembler(inputCols=["n"], outputCol="of_script").save("models/saved")
models = [VectorAssembler.load(f"models/{{name}}") for name in ("beside", "saved")]
for model in models:
    orders = orders.withColumn(model.getOutputCol(), F.lit(1))
orders.select(*[model.getOutputCol() for model in models]).writeStream.start()
"""
    made = VectorAssembler(inputCols=["n"], outputCol="of_file")
    made.save(str(lifted.folder / "models" / "beside"))
    assert lifted(text, {"orders": ORDERS}) == [(1, 1)] * 2
    assert not (lifted.folder / "models" / "saved").exists()
    assert not Path("models").exists()
