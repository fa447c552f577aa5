"""What is learned from runs of a script without data: its reads, columns, arguments, tables and queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_spark import Session, memory_session
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrameReader
from pyspark.sql.classic.dataframe import DataFrame
from streamproof import BadInput, Input
from streamproof.properties.generators.columns.schemas import _of_ddl
from streamproof.properties.witnesses.job.inference import exploring, inferring
from streamproof.properties.witnesses.job.inference.exploring import (
    Explored,
    columns_of,
    empty_frames,
    explored,
    learn,
    with_arguments,
)
from streamproof.properties.witnesses.job.inference.inferring import (
    InferredQuery,
    drawn_table,
    functions_with_queries,
    inferred_queries,
)
from streamproof.properties.witnesses.job.inference.learning import KnownColumns, Lacking
from streamproof.properties.witnesses.job.scripts.lifting import ScriptSource
from streamproof.properties.witnesses.job.scripts.reads import Read
from streamproof.properties.witnesses.job.scripts.remedies import ON_COMMAND_LINE

HEAD = "import os, sys\nfrom pyspark.sql import functions as F\n"
EVENTS = 'e = spark.readStream.schema("user string, team string, at timestamp, n int").json("/in/events")\n'
START = "e.writeStream.start()\n"


@pytest.fixture(autouse=True)
def session(tmp_path: Path) -> Iterator[Session]:
    with memory_session(tmp_path / "spark") as session:
        yield session


class Exploring:
    def __init__(self, folder: Path, session: Session) -> None:
        self.path, self.session = folder / "job.py", session

    def source(self, text: str) -> ScriptSource:
        self.path.write_text(HEAD + text)
        return ScriptSource(self.path, remedies=ON_COMMAND_LINE)

    def __call__(self, text: str, **given: Any) -> Explored:
        return explored(self.source(text), self.session, given, {})

    def queries(self, text: str, **more: Any) -> list[InferredQuery]:
        return inferred_queries(self.source(text), self.session, {}, {}, **more)

    def refused(self, text: str) -> str:
        with pytest.raises(BadInput) as refused:
            self.queries(text)
        return refused.value.message


@pytest.fixture
def explore(tmp_path: Path, session: Session) -> Exploring:
    return Exploring(tmp_path, session)


def names(found: Explored) -> dict[str, list[str]]:
    return {name: columns.names for name, columns in found.columns.items()}


def test_a_read_with_a_schema_has_its_columns(explore: Exploring) -> None:
    found = explore(EVENTS + START)
    assert names(found) == {"/in/events": ["user", "team", "at", "n"]}
    assert (found.tables, found.learned, found.unfinished, len(found.writes)) == ({}, {}, None, 1)
    assert found.reads["/in/events"].format == "json"
    assert found.folders == {"input1": "/in/events"}


def test_columns_without_a_schema_are_learned_from_their_use(explore: Exploring) -> None:
    found = explore(
        "e = spark.readStream.table('shop.visits')\ne.select('user', 'at').drop('user').writeStream.start()\n"
    )
    assert names(found) == {"shop.visits": ["user", "at"]}
    assert found.learned["shop.visits"].kinds == {"user": "string", "at": "string"}


@pytest.mark.parametrize(
    "union", ["late.unionByName(e)", "e.unionByName(late)", "e.unionByName(late.withColumn('n', F.lit(1)))"]
)
def test_a_table_has_the_columns_of_the_rows_that_a_union_adds(explore: Exploring, union: str) -> None:
    found = explore(f"{EVENTS}late = spark.readStream.table('shop.late')\n{union}.writeStream.start()\n")
    added = {"user": "string", "team": "string", "at": "timestamp", "n": "int"}
    if "withColumn" in union:
        del added["n"]
    assert found.learned["shop.late"].kinds == added


def test_a_frame_that_is_given_answers_before_one_is_made(explore: Exploring, session: Session, tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    given = empty_frames(session, [Input("user string, at timestamp", name="visits")], tmp_path / "frames")  # type: ignore[arg-type]
    assert given["visits"].columns == ["user", "at"]
    found = explore("e = spark.readStream.table('shop.visits')\ne.writeStream.start()\n", **given)
    assert (names(found), found.writes[0].frame.columns) == ({}, ["user", "at"])


def test_tables_that_are_not_here_have_the_columns_that_are_used(explore: Exploring, session: Session) -> None:
    text = f"{EVENTS}t = spark.read.table('names').select('user')\n{START}"
    found = explore(text)
    assert {name: columns.names for name, columns in found.tables.items()} == {"names": ["user"]}
    by_path = explore(text.replace("table('names')", "json('/no/such')"))
    assert {name: columns.names for name, columns in by_path.tables.items()} == {"/no/such": ["user"]}
    session.views["names"] = session.of_table(drawn_table(_of_ddl("user string")))  # type: ignore[arg-type]
    assert explore(text).tables == {}
    of_stream = explore(f"{EVENTS}k = spark.read.json('/in/events')\n{START}")
    assert (of_stream.tables, [*of_stream.columns]) == ({}, ["/in/events"])


def test_a_table_of_a_catalog_or_a_database_that_is_not_here_has_the_columns_that_are_used(
    explore: Exploring, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_catalog(name: str) -> bool:
        raise AnalysisException("no such catalog")

    session._jsparkSession.catalog().tableExists = no_such_catalog
    of_catalog = explore(f"{EVENTS}t = spark.table('lake.shop.names').select('user')\n{START}")
    assert {name: columns.names for name, columns in of_catalog.tables.items()} == {"lake.shop.names": ["user"]}
    query = "(SELECT 1 AS test) AS t"
    of_database = explore(f"{EVENTS}spark.read.jdbc(url='jdbc:x', table='{query}').collect()\n{START}")
    assert [*of_database.tables] == [query]
    there = session.of_table(drawn_table(_of_ddl("user string")))  # type: ignore[arg-type]
    monkeypatch.setattr(DataFrameReader, "jdbc", lambda reader, **named: DataFrame(there, session))
    assert explore(f"{EVENTS}spark.read.jdbc(url='jdbc:x', table='names').select('user')\n{START}").tables == {}


def test_a_table_that_the_script_makes_has_the_columns_of_the_statement(
    explore: Exploring, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"CREATE TABLE lake.t": ("Lake.T", _of_ddl("user string, n int"))}
    monkeypatch.setattr(exploring, "table_made", lambda spark, statement: made.get(statement))
    found = explore(
        f"{EVENTS}spark.sql('CREATE TABLE lake.t')\nspark.sql('DROP TABLE u')\nprint(spark.table('lake.t').n)\n{START}"
    )
    assert {name: columns.names for name, columns in found.tables.items()} == {"lake.t": ["user", "n"]}


def test_a_batch_read_of_a_stream_s_own_path_is_no_table(explore: Exploring) -> None:
    text = "s = spark.read.json('/in/own')\nspark.readStream.schema(s.select('user').schema).json('/in/own')"
    (query,) = explore.queries(f"{text}.select('user').writeStream.start()\n")
    assert ([*query.inputs], query.tables, query.told) == (["/in/own"], {}, [])


def test_a_query_that_writes_the_rows_of_another_in_the_same_mode_is_its_twin(explore: Exploring) -> None:
    text = f"{EVENTS}{START}e.writeStream.format('console').start()\ne.writeStream.outputMode('update').start()\n"
    queries = explore.queries(f"{text}e.select('user').writeStream.start()\n{START}")
    assert [query.twin is not None for query in queries] == [False, True, False, False, True]
    assert {query.twin.line for query in queries if query.twin is not None} == {queries[0].write.line}


def test_a_query_s_rows_that_another_reads_are_an_input_of_their_own(explore: Exploring) -> None:
    text = (
        f"{EVENTS}e.dropDuplicates(['user']).writeStream.toTable('firsts')\n"
        "spark.readStream.table('firsts').writeStream.start()\n"
    )
    found = explore(text)
    assert names(found) == {"/in/events": ["user", "team", "at", "n"], "firsts": ["user", "team", "at", "n"]}
    queries = explore.queries(text)
    assert [query.own for query in queries] == [["/in/events"], ["firsts"]]
    assert [query.index for query in queries] == [0, 1]


@pytest.mark.parametrize(
    ("text", "args", "env"),
    [
        ("os.environ['LAKE']", [], {"LAKE": "lake"}),
        ("sys.argv[1] + sys.argv[2]", ["argument1", "argument2"], {}),
        ("_, a, b = sys.argv", ["argument1", "argument2"], {}),
        ("a, b = sys.argv[1:]", ["argument1", "argument2"], {}),
        ("int(os.environ['DAYS'])", [], {"DAYS": "10"}),
        ("if not os.getenv('LAKE'):\n    sys.exit('set LAKE')", [], {"LAKE": "lake"}),
        ("a, b = os.environ.get('A'), os.getenv('B')\nassert a and b", [], {"A": "a", "B": "b"}),
        ("int(os.getenv('DAYS'))", [], {"DAYS": "10"}),
        ("os.getenv('ANY')", [], {}),
        ("assert os.getenv('LAKE', '')", [], {"LAKE": "lake"}),
        ("assert os.getenv('ANY', 'x') == 'x'", [], {}),
        (
            "if len(sys.argv) < 3:\n    print('usage: job <table> <how-many> [<x>]', file=sys.stderr)\n    sys.exit(1)",
            ["table", "how_many"],
            {},
        ),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--topic', required=True)\n"
            "p.add_argument('--n', type=float, required=True)\np.add_argument('place')\np.parse_args()",
            ["--topic", "topic", "--n", "10", "place"],
            {},
        ),
        (
            "import argparse\np = argparse.ArgumentParser()\n"
            "p.add_argument('--mode', required=True, choices=['full', 'new'])\n"
            "p.add_argument('--n', required=True, type=int, choices=[7, 8])\np.parse_args()",
            ["--mode", "full", "--n", "7"],
            {},
        ),
    ],
)
def test_arguments_and_variables_that_a_script_requires_get_stand_ins(
    text: str, args: list[str], env: dict[str, str], explore: Exploring
) -> None:
    found = explore(f"{text}\n{EVENTS}{START}")
    assert ([*found.source.args], {**found.source.env}) == (args, env)


def test_a_widget_without_a_default_gets_a_stand_in_that_is_told(explore: Exploring) -> None:
    (query,) = explore.queries(f"dbutils.widgets.get('Day')\n{EVENTS}{START}")
    assert query.source.widgets == {"Day": "day"}
    assert query.told == ["its widget Day is day: set another in the widget's default"]
    source = replace(query.source, widgets={"Day": "Monday"})
    (query,) = inferred_queries(source, explore.session, {}, {})
    assert (query.source.widgets, query.told) == ({"Day": "Monday"}, [])


def test_stand_ins_are_told_with_the_way_to_say_others(explore: Exploring) -> None:
    text = (
        f"os.environ['LAKE'], sys.argv[1]\n{EVENTS}t = spark.read.table('shop.names').select('user')\n"
        f"u = spark.read.table('others')\n{START}"
    )
    (query,) = explore.queries(text)
    assert query.told == [
        "its arguments are argument1: set others with --argument",
        "$LAKE is lake: set another in the environment",
        "the table shop.names can't be read here, and has drawn rows of the columns user: give its rows with "
        "--static names=FILE.csv",
        "the table others can't be read here, and has drawn rows of one column, because the script names none: "
        "give its rows with --static others=FILE.csv",
    ]
    assert query.tables["shop.names"].num_rows == inferring.ROWS
    assert query.tables["others"].column_names == ["value"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n", "starts no query: it ends without a call of start() or toTable() on a writeStream: give the script"),
        ("def f(e):\n    e.writeStream.start()\n", "nothing calls f (line 3): give the script that calls it"),
        (f"{EVENTS}{START}1 / 0\n{START}", "the script starts queries there or later"),
        ("no_such\n", "name 'no_such' is not defined"),
        ("spark.sql('SELECT * FROM global_temp.nothing')\n", "raised AnalysisException, in line 3: [TABLE_OR_VIEW_NOT"),
        (
            "t = spark.read.table('names')\na, b = (spark.readStream.table(one) for one in 'ab')\n"
            "a.join(b).select('x').writeStream.start()\n",
            "line 4 of {where} reads a without a schema",
        ),
        (
            "a, b = (spark.readStream.table(one) for one in 'ab')\na.join(b).select('x').writeStream.start()\n",
            "line 3 of {where} reads a without a schema, and its columns can't be inferred ({where} raised",
        ),
    ],
)
def test_a_script_of_which_nothing_can_be_inferred_is_refused(text: str, said: str, explore: Exploring) -> None:
    message = explore.refused(text)
    assert said.format(where=explore.source(text).where) in message


def test_the_queries_before_a_failure_are_enough_where_that_is_said(explore: Exploring) -> None:
    text = f"{EVENTS}{START}1 / 0\n{START}"
    (query,) = explore.queries(text, only_some=True)
    assert query.index == 0  # it is not known to be the only one
    (only,) = explore.queries(EVENTS + START)
    assert only.index is None


def test_a_script_that_takes_long_until_it_waits_is_refused(
    explore: Exploring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taking(*seconds: float) -> None:
        times = iter([time for each in seconds for time in (0.0, each)])
        monkeypatch.setattr(exploring.time, "monotonic", lambda: next(times))

    taking(12, 9)
    assert "takes 9 s before it waits for its queries" in explore.refused(EVENTS + START)
    taking(9, 8)  # the session's first run is slower
    assert explore.queries(EVENTS + START)
    taking(8)
    assert explore.queries(EVENTS + START)


def test_columns_and_arguments_are_learned_in_a_limited_number_of_runs(
    explore: Exploring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring, "MOST_RUNS", 3)
    text = "e = spark.readStream.table('t')\ne.select({}).writeStream.start()\n"
    assert len(explore(text.format("'a', 'b'")).columns["t"]) == 2
    assert "uses more than 3 columns or arguments: describe its inputs" in explore.refused(text.format("'a', 'b', 'c'"))


def test_texts_have_the_type_to_which_all_plans_cast_them(explore: Exploring) -> None:
    text = "e = spark.readStream.table('t')\nn = F.col('n')\ne.select('user', {}).writeStream.start()\n"
    for casts, kind in (
        ("n.cast('int').alias('a'), n.cast('double').alias('b')", "double"),
        ("n.cast('bigint').alias('a'), n.cast('int').alias('b')", "bigint"),
        ("n.cast('date').alias('a')", "date"),
        ("n.cast('date').alias('a'), n.cast('int').alias('b')", "string"),
        ("n.cast('string').alias('a')", "string"),
        ("n.cast('string').alias('a'), n.cast('int').alias('b')", "int"),
    ):
        (query,) = explore.queries(text.format(casts))
        assert query.inputs["t"].input.schema == f"user string, n {kind}", casts


def test_a_column_is_learned_by_the_source_that_can_have_it() -> None:
    def known(**kinds: str) -> KnownColumns:
        return KnownColumns(kinds=dict(kinds))

    both = {"stream": known(a="string"), "table": known()}
    assert learn(Lacking("x"), both, {"stream": None})
    assert (both["stream"].kinds, both["table"].kinds) == ({"a": "string", "x": "string"}, {})
    assert learn(Lacking("x", "int"), both, {"stream": None})
    assert both["stream"].kinds["x"] == "int"
    assert not learn(Lacking("x", "int"), both, {"stream": None})
    tables = {"one": known(), "other": known()}
    assert learn(Lacking("x"), tables, {})
    assert tables["one"].kinds == {"x": "string"}
    streams = {"one": known(a="string"), "other": known(b="string")}
    assert not learn(Lacking("x"), streams, {"one": 1, "other": 1})
    assert learn(Lacking("x", beside=frozenset({"b", "c"})), streams, {"one": 1, "other": 1})
    assert streams["other"].kinds == {"b": "string", "x": "string"}


@pytest.mark.parametrize(
    ("read", "columns"),
    [
        (Read("json", schema="a int, b string"), "a int, b string"),
        (Read("json", schema=_of_ddl("a int")), "a int"),
        (Read("text"), "value string"),
        (Read("socket"), "value string"),
        (Read("socket", {"includetimestamp": "True"}), "value string, timestamp timestamp"),
        (Read("rate"), "timestamp timestamp, value bigint"),
        (Read("rate-micro-batch"), "timestamp timestamp, value bigint"),
        (Read("json", target="/no/such"), None),
        (Read("", target="shop.t"), None),
        (Read("own"), None),
    ],
)
def test_the_columns_of_a_source_are_those_of_its_schema_or_its_format(
    read: Read, columns: str | None, session: Session
) -> None:
    found = columns_of(read, session)
    shown = None if found is None else ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in found)
    assert shown == columns


def test_kafka_s_records_have_headers_only_where_the_reader_asks_for_them(session: Session) -> None:
    for value, has in (("true", True), ("TRUE", True), ("false", False)):
        found = columns_of(Read("kafka", {"includeheaders": value}), session)
        assert found is not None
        assert ("headers" in found.names, "value" in found.names) == (has, True)


def test_rows_of_a_table_have_keys_and_values_of_each_type() -> None:
    drawn = drawn_table(_of_ddl("user string, n int, no void"))  # type: ignore[arg-type]
    rows = drawn.to_pylist()
    assert len(rows) == inferring.ROWS
    assert len({row["user"] for row in rows}) >= 2
    assert len({row["n"] for row in rows}) >= 2
    assert {row["no"] for row in rows} == {None}


def test_functions_that_write_streams_and_are_not_called_are_named(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(
        "def called(e):\n    e.writeStream\n"
        "def uncalled(e):\n    return e.writeStream\n"
        "async def waiting(e):\n    e.writeStream\n"
        "def other(e):\n    e.readStream\n"
        "class A:\n    def method(self, e):\n        e.writeStream\n"
        "called(1)\nA().method(1)\n"
    )
    assert functions_with_queries(ScriptSource(path)) == "uncalled (line 3) or waiting (line 5)"
    assert functions_with_queries(ScriptSource(print)) == ""


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("if len(sys.argv) != 3: raise Exception('Usage: job.py <in path> <minutes> [out]')\n", ["in_path", "minutes"]),
        ("if len(sys.argv) < 3:\n    sys.exit(1)\n", ["argument1", "argument2"]),
        ("if len(sys.argv) != 3: raise Exception('Usage: job.py <in path>')\n", ["in_path", "argument2"]),
        ("if not len(sys.argv) > 1:\n    raise ValueError('no topic')\n", ["argument1"]),
        ("a, b = sys.argv[1:] if len(sys.argv) == 3 else sys.exit('two')\n", ["argument1", "argument2"]),
    ],
)
def test_a_script_that_counts_its_arguments_gets_as_many(text: str, args: list[str], explore: Exploring) -> None:
    assert [*explore(text + EVENTS + START).source.args] == args


def test_an_argument_that_no_error_asks_for_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    source = ScriptSource(tmp_path / "job.py")
    for message, error in (
        ("it failed", None),
        ("it failed", KeyError("x")),
        ("could not convert string to float: 'x'", ValueError("x")),
    ):
        if error is not None:
            with pytest.raises(type(error)) as raised:
                raise error
            error = raised.value  # type: ignore[assignment]
        assert with_arguments(source, BadInput(message), error) is None  # type: ignore[arg-type]
    given = ScriptSource(tmp_path / "job.py", ["x", "y"], {"A": "x"})
    changed = with_arguments(given, BadInput("could not convert string to float: 'x'"), None)
    assert changed is not None
    assert (changed.args, changed.env) == (["10", "y"], {"A": "10"})
