"""The inputs that are inferred from scripts, beside those that a person wrote for them."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import pytest
from paths import GOLDEN
from pyspark.sql import SparkSession
from streamproof.properties.witnesses.job.inference.inferring import InferredQuery, inferred_queries
from streamproof.properties.witnesses.job.scripts.lifting import ScriptSource
from streamproof.properties.witnesses.job.scripts.remedies import ON_COMMAND_LINE
from streamproof.reference.core.errors import BadInput

ROOT = Path(__file__).parents[5]
UNTOUCHED, EXAMPLES = ROOT / "tests/exhaustive/properties/checking/jobs/untouched", ROOT / "examples/scripts"
INPUTS = GOLDEN / "inferred_inputs.txt"
"""By script the inputs of its last query, as Python."""
HELPERS = ("__init__", "notebook_functions", "sources")


def inferred(path: Path, spark: SparkSession, *args: str) -> list[InferredQuery]:
    return inferred_queries(ScriptSource(path, args, remedies=ON_COMMAND_LINE), spark, {}, {})


def scripts() -> dict[str, Path]:
    found = [*UNTOUCHED.rglob("*.py"), *EXAMPLES.glob("*.py")]
    return {path.stem: path for path in found if path.stem not in HELPERS}


def test_the_inputs_of_scripts_are_inferred(spark: SparkSession) -> None:
    lines = []
    for name, path in sorted(scripts().items()):
        query = inferred(path, spark)[-1]
        lines += [name, *(f"  {one}: {query.inputs[one].text}" for one in query.own)]
    text = "".join(f"{line}\n" for line in lines)
    if os.environ.get("STREAMPROOF_GOLDEN") == "write":
        INPUTS.write_text(text, encoding="utf-8")
    assert text == INPUTS.read_text(encoding="utf-8")


def written(folder: Path, text: str) -> Path:
    path = folder / "job.py"
    path.write_text(f"from pyspark.sql import functions as F\n{text}\n")
    return path


EVENTS = 'spark.readStream.schema("user string, team string, at {}, n int").json("/in/events")'


@pytest.mark.parametrize(
    ("kind", "time", "said"),
    [
        ("string", "F.to_timestamp('at', 'yyyy-MM-dd HH:mm:ss')", 'time="at", time_format="%Y-%m-%d %H:%M:%S"'),
        ("string", "F.to_timestamp('at')", 'time="at"'),
        ("bigint", "F.col('at').cast('timestamp')", 'time="at", time_format="s"'),
        ("bigint", "(F.col('at') / 1000).cast('timestamp')", 'time="at", time_format="ms"'),
        ("bigint", "F.timestamp_millis('at')", 'time="at", time_format="ms"'),
        ("bigint", "F.from_unixtime(F.col('at') / 1000).cast('timestamp')", 'time="at", time_format="ms"'),
    ],
)
def test_the_form_of_an_event_time_is_read_from_the_job(
    kind: str, time: str, said: str, spark: SparkSession, tmp_path: Path
) -> None:
    rows = f"{EVENTS.format(kind)}.withColumn('t', {time}).withWatermark('t', '1 minute')"
    path = written(tmp_path, f"{rows}.groupBy('user', F.window('t', '1 hour')).count().writeStream.start()")
    ((one,),) = (query.inputs.values() for query in inferred(path, spark))
    assert one.text == f'Input("user string, team string, at {kind}, n int", key="user", {said})'


def test_an_unknown_form_of_an_event_time_is_said_to_be_so(spark: SparkSession, tmp_path: Path) -> None:
    rows = f"{EVENTS.format('string')}.withColumn('t', F.to_timestamp('at', 'EEE dd')).withWatermark('t', '1 minute')"
    ((one,),) = (query.inputs.values() for query in inferred(written(tmp_path, f"{rows}.writeStream.start()"), spark))
    assert [*one.guesses] == ["the format of its event time at isn't known: set it with --time-format"]


@pytest.mark.parametrize(
    ("job", "key"),
    [
        ("e.groupBy('user').count().writeStream.outputMode('update')", ["user"]),
        ("e.groupBy('user', 'team').count().writeStream.outputMode('update')", ["user", "team"]),
        ("e.dropDuplicates(['team', 'at', 'user']).groupBy('user').count().writeStream", ["user"]),
        ("e.groupBy('user').count().agg(F.max('count')).writeStream", []),
        ("e.groupBy(F.lower('user')).count().writeStream", []),
        ("e.select('user', 'n').union(e.select('team', 'n')).groupBy('user').count().writeStream", []),
        ("e.withColumnRenamed('user', 'u').select('u', 'at').distinct().writeStream", ["user"]),
        ("e.select('n', 'at').writeStream", ["n"]),
        ("e.limit(3).writeStream", []),
        ("e.alias('a').join(e.alias('b'), F.expr('a.user = b.user')).writeStream", ["user"]),
        ("e.alias('a').join(e.alias('b'), F.expr('a.user = b.team')).writeStream", []),
        ("e.alias('a').join(e.alias('b'), F.expr('a.at < b.at')).writeStream", []),
    ],
)
def test_the_key_is_what_all_operators_bring_rows_together_by(
    job: str, key: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    (query,) = inferred(written(tmp_path, f"e = {EVENTS.format('timestamp')}\n{job}.start()"), spark)
    (one,) = query.inputs.values()
    given: Any = one.input.key
    assert [*((given,) if isinstance(given, str) else given)] == key


def test_the_sides_of_a_join_have_its_columns_as_keys(spark: SparkSession, tmp_path: Path) -> None:
    other = 'spark.readStream.schema("of string, paid timestamp").csv("/in/payments")'
    text = f"e = {EVENTS.format('timestamp')}\np = {other}\ne.join(p, e.user == p.of).writeStream.start()"
    (query,) = inferred(written(tmp_path, text), spark)
    assert {name: one.input.key for name, one in query.inputs.items()} == {"/in/events": "user", "/in/payments": "of"}


def test_queries_that_compute_the_same_are_twins(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        def counted(topic, minutes="5", least=1, twice=F.col):
            e = spark.readStream.schema("user string, at timestamp, n int").json(f"/in/{topic}")
            late = e.withWatermark("at", f"{minutes} minutes").where(F.col("n") > least)
            late.withColumn("n", twice("n")).groupBy(F.window("at", "1 hour")).count().writeStream.start()
        counted("a"), counted("b"), counted("c", minutes="6"), counted("d", least=2)
        counted("e", twice=F.udf(lambda n: 2 * n, "int")), counted("f", twice=F.udf(lambda n: 3 * n, "int"))
    """
    queries = inferred(written(tmp_path, textwrap.dedent(text)), spark)
    assert [query.twin is not None for query in queries] == [False, True, False, False, False, False]


def test_arguments_variables_and_tables_get_stand_ins_that_are_told(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        import argparse, os, sys
        parser = argparse.ArgumentParser()
        parser.add_argument("--topic", required=True)
        parser.add_argument("--minutes", required=True, type=int)
        args = parser.parse_args()
        names = spark.read.table("shop.names")
        read = spark.readStream.format("delta").load(os.environ["LAKE"] + "/" + args.topic)
        joined = read.join(names, "user").withWatermark("at", f"{args.minutes} minutes").where("amount > 1.5")
        joined.select("user", "at", "amount", "name").writeStream.start()
    """
    lines = "\n".join(line.removeprefix(" " * 8) for line in text.splitlines())
    (query,) = inferred(written(tmp_path, lines), spark)
    (one,) = query.inputs.values()
    assert (query.source.args, query.source.env) == (["--topic", "topic", "--minutes", "10"], {"LAKE": "lake"})
    assert one.text == 'Input("user string, at timestamp, amount double, name string", key="user")'
    assert query.tables["shop.names"].column_names == ["user"]
    assert [sentence.split(":")[0] for sentence in query.told] == [
        "its arguments are --topic topic --minutes 10",
        "$LAKE is lake",
        "the table shop.names can't be read here, and has drawn rows of the columns user",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print(1)", "starts no query: it ends without a call of start"),
        (
            "def visits(f):\n    f.writeStream.start()",
            r"nothing calls visits \(line 2\): give the script that calls it",
        ),
        (
            "import nowhere_at_all\nstr(nowhere_at_all.f())",
            "in line 3: No module named 'nowhere_at_all', and the script uses nowhere_at_all.f.*; install it",
        ),
        ("def broken(:", "isn't valid Python: .*, in line 2"),
        (
            "a, b = (spark.readStream.table(one) for one in ('a', 'b'))\n"
            "a.join(b, 'k').select('x').writeStream.start()",
            "line 2 of .* reads a without a schema, and its columns can't be inferred .*: set them with --input",
        ),
    ],
)
def test_what_cannot_be_inferred_is_refused_with_the_remedy(
    text: str, said: str, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        inferred(written(tmp_path, text), spark)


def test_each_of_several_queries_has_the_index_by_which_a_script_s_query_is_chosen(spark: SparkSession) -> None:
    assert [
        (query.index, query.write.name) for query in inferred(UNTOUCHED / "databricks_bronze_silver.py", spark)
    ] == [
        (0, ""),
        (1, "silver"),
    ]
    (only,) = inferred(UNTOUCHED / "notebook_main.py", spark)
    assert (only.index, only.write.name) == (None, "big"), "what a notebook displays is no query beside it"
