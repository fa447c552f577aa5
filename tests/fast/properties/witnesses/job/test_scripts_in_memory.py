"""Scripts, from their first line to their query: what answers them, what is noted and what is refused."""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from memory_spark import Session, memory_session
from pyspark.sql.readwriter import DataFrameWriter
from streamproof import BadInput, Input, Job, Script, Sink, sql
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.running import QueryOutput, Runner
from streamproof.properties.witnesses.job.scripts.answers import _of_jvm
from streamproof.properties.witnesses.job.scripts.execution import run
from streamproof.properties.witnesses.job.scripts.lifting import Lift, ScriptSource
from streamproof.properties.witnesses.job.scripts.reads import Frames, Read
from streamproof.properties.witnesses.run_options import Crash, RunOptions

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = Input("id string, customer string, at timestamp", key="id")
HEAD = """\
import os, sys, time
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.schema("id string, customer string, at timestamp").json("/lake/orders")
"""
START = "orders.writeStream.start()\n"
NAMES = [{"customer": "c1", "name": "ann"}]


@pytest.fixture(autouse=True)
def session(tmp_path: Path) -> Iterator[Session]:
    with memory_session(tmp_path) as session:
        yield session


class Scripted:
    """Runs scripts."""

    def __init__(self, folder: Path, session: Session) -> None:
        self.folder, self.session = folder, session

    def script(self, text: str, reads: Mapping[str, Any] | None = None, **given: Any) -> Script:
        path = self.folder / "jobs" / given.pop("name", "job.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return Script(path, reads={"orders": ORDERS} if reads is None else reads, **given)

    def __call__(self, text: str, reads: Mapping[str, Any] | None = None, **given: Any) -> tuple[Any, Script]:
        """Return the frame of a script's query, and the script."""
        script = self.script(text, reads, **given)
        return script(*self.frames(script)), script

    def frames(self, script: Script) -> list[Any]:
        frames = []
        for number, one in enumerate(resolve_all(script.inputs, 0)):
            path = self.folder / f"input {number}.parquet"
            pq.write_table(one.source.wire_schema.empty_table(), path)
            schema = self.session.read.parquet(str(path)).schema
            frames.append(self.session.readStream.schema(schema).parquet(str(self.folder)))
        tables = (pa.Table.from_pylist(rows) for rows in script.tables.values())
        return [*frames, *(self.session.createDataFrame(table) for table in tables)]

    def refused(self, text: str, reads: Mapping[str, Any] | None = None, **given: Any) -> str:
        with pytest.raises(BadInput) as refused:
            self(text, reads, **given)
        return refused.value.message

    def lift(self, asked: int | None = None, **inputs: Any) -> Lift:
        """Return a run of a script that reads these frames."""
        source = ScriptSource(self.folder / "jobs" / "job.py")
        return Lift(source, self.session, Frames(inputs), Frames({}), self.folder / "run", asked)


@pytest.fixture
def scripted(tmp_path: Path, session: Session) -> Scripted:
    return Scripted(tmp_path, session)


def test_a_script_s_query_is_what_it_writes_and_nothing_of_it_is_run(scripted: Scripted, session: Session) -> None:
    frame, script = scripted(
        f"{HEAD}query = orders.writeStream.outputMode('update').format('console').trigger(once=True).start()\n"
        "assert query.isActive is False and query.lastProgress is None\n"
        "query.awaitTermination()\nspark.streams.awaitAnyTermination()\nspark.stop()\n"
    )
    assert frame.columns == ["id", "customer", "at"]
    assert (script.found.mode, script.found.index, session.started) == ("update", 0, [])
    assert script.notes == [
        "the trigger of line 5 of job.py, once=True: the check decides which rows each batch contains".replace(
            "job.py", script.where
        )
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print(1)\n", "starts no query: it ends without a call of start() or toTable() on a writeStream"),
        ("import sys\nsys.exit(3)\n", "ends with exit(3), in line 2 before it starts a query"),
        (
            "import sys\nprint('usage: job', file=sys.stderr)\nsys.exit(2)\n",
            "before it starts a query: usage: job; give",
        ),
        ("one = 1\n1 / 0\n", "raised ZeroDivisionError, in line 2: division by zero"),
        ("one = (\n", "isn't valid Python: '(' was never closed, in line 1"),
        ("nothing\n", "raised NameError, in line 1: name 'nothing' is not defined; define it with"),
        (
            "from no_such_module import f\ntry:\n    str(f())\nexcept Exception:\n    raise ValueError('no f')\n",
            "raised ValueError, in line 5: no f; install",
        ),
        (
            "import no_such_module\nprint(str(no_such_module.f()))\n",
            "in line 2: No module named 'no_such_module', and the script uses no_such_module.f(…); install",
        ),
        (
            "open('no_such_file')\n",
            "No such file or directory: 'no_such_file'; put the file there, or beside the script",
        ),
        ("spark.read.parquet('/no/such')\n", "/no/such, which can't be read here: [PATH_NOT_FOUND]"),
        (
            "input('user: ')\n",
            "line 1 of {where} asks for input, 'user:': make the script read an argument or an environment",
        ),
        ("input()\n", "line 1 of {where} asks for input: make the"),
        (
            "from pyspark.streaming import StreamingContext\nStreamingContext(sc, 1)\n",
            "line 2 of {where} creates a StreamingContext",
        ),
        (f"{HEAD}spark.readStream.table('clicks')\n", "line 5 of {where} reads clicks, and reads= gives only orders"),
        (f"{HEAD}spark.sql('SELECT * FROM STREAM read_files(1)')\n", "reads STREAM read_files(…), a function of its"),
        (
            HEAD.replace("id string", "id int") + START,
            "line 4 of {where} reads id of /lake/orders as int, and its type in reads['orders'] is string",
        ),
        (
            HEAD.replace("id string", "other string") + START,
            "line 4 of {where} reads the column other of /lake/orders, and reads['orders'] has id, customer, at",
        ),
        (
            "spark.readStream.format('kafka').option('subscribe', 'orders').load()\n",
            "reads the topic orders as the source kafka gives it, with a column value (binary), and reads['orders'] "
            'has id, customer, at: give it as Input(…, format="kafka")',
        ),
    ],
)
def test_a_script_that_can_not_be_checked_is_refused(text: str, said: str, scripted: Scripted) -> None:
    message = scripted.refused(text)
    assert said.format(where=scripted.script(text).where) in message


def test_an_input_that_no_line_reads_is_named_unless_the_script_has_failed(scripted: Scripted) -> None:
    reads = {"orders": ORDERS, "clicks": ORDERS, "names": NAMES}
    message = scripted.refused(HEAD + START, reads)
    assert message.endswith("doesn't read 'clicks', 'names', which reads= gives: it reads /lake/orders")
    frame, script = scripted(f"{HEAD}{START}1 / 0\n", reads)
    assert frame.columns == ["id", "customer", "at"]
    assert script.notes[0].endswith(
        ": the code after line 6, where the script raised ZeroDivisionError: division by zero"
    )
    assert scripted.refused("1\n", reads).endswith("on a writeStream")


def test_a_script_that_fails_before_more_queries_must_say_which_it_means(scripted: Scripted) -> None:
    failing = f"{HEAD}{START}1 / (\n  0)\norders.writeStream.start()\n"
    assert "; the script starts queries there or later: fix the script" in scripted.refused(failing)
    for query in (0, None):
        later = failing if query is not None else failing.replace("orders.writeStream.start()\n", "", 1) + "1\n"
        if query is not None:
            assert scripted(later, query=query)[0].isStreaming
    within = f"{HEAD}{START}print(orders.writeStream, 1 / 0)\n"
    assert "the script starts queries there or later" in scripted.refused(within)
    block = scripted(f"{HEAD}if orders:\n    {START}    1 / 0\n")[1]
    assert "line 7, where the script raised ZeroDivisionError: division by zero" in " ".join(block.notes)


def test_one_of_several_queries_is_chosen_by_its_name_or_its_index(scripted: Scripted) -> None:
    two = f"{HEAD}{START}orders.drop('at').writeStream.queryName('short').toTable('t')\n"
    message = scripted.refused(two)
    assert "starts 2 queries, (line 5, a sink without a format), 'short' (line 6, table): choose a query" in message
    for query, columns in ((0, 3), (1, 2), ("short", 2)):
        frame, script = scripted(two, query=query)
        assert (len(frame.columns), script.found.index) == (columns, 0 if columns == 3 else 1)
    alike = "".join(f"orders.drop({name!r}).writeStream.queryName('one').start()\n" for name in ("id", "customer"))
    assert scripted(f"{HEAD}{START}{alike}", query="one")[0].columns == ["customer", "at"]
    for query in (2, -1, "long"):
        assert f"starts no query {query!r}: it starts (line 5" in scripted.refused(two, query=query)


def test_the_queries_that_a_notebook_displays_count_if_there_are_no_others(scripted: Scripted) -> None:
    shown = f"{HEAD}display(orders)\ndisplay(3)\norders.drop('at').display(streamName='short')\n"
    assert scripted(shown, query="short")[0].columns == ["id", "customer"]
    assert scripted(f"{shown}{START}")[0].columns == ["id", "customer", "at"]


SLEEPING = """
for number in range(100):
    time.sleep(3_600)
    seen.append(number)
"""


def test_a_script_that_sleeps_in_a_loop_waits_for_its_query(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    seen: list[int] = []
    scripted(f"{HEAD}time.sleep(7)\n{START}{SLEEPING}", globals={"seen": seen})
    assert (slept, seen) == ([0.1], [0, 1])


SETTINGS = """
spark.conf.set("spark.own", True)
spark.conf.set("spark.shown", 5)
spark.conf.set("spark.shown", 7)
spark.conf.set("spark.own", False)
spark.conf.set("spark.own", True)
spark.conf.set("spark.sql.shuffle.partitions", 3)
spark.conf.set("spark.sql.catalog.mine", "com.Missing")
spark.conf.set("spark.some.Class", "com.Here")
spark.conf.set("spark.same", "1")
spark.sql("SET spark.by.statement = x y")
assert spark.conf.get("spark.own") == "true" and spark.conf.get("spark.by.statement") == "x y"
SparkSession.builder.appName("x").config("spark.fixed", 1).config("spark.of.builder", 2).getOrCreate()
"""


def test_settings_are_changed_for_the_run_and_those_of_the_check_stay(
    scripted: Scripted, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.settings.values.update({"spark.same": "1", "spark.shown": "6"})
    session.settings.fixed |= {"spark.fixed", "spark.app.name"}
    monkeypatch.setattr(session._jvm, "classes", {"com.Here"}, raising=False)
    _, script = scripted(f"{HEAD}{SETTINGS}{START}")
    assert script.found.settings == {
        "spark.own": "true",
        "spark.shown": "7",
        "spark.some.Class": "com.Here",
        "spark.by.statement": "x y",
        "spark.of.builder": "2",
    }
    assert session.settings.values == {"spark.same": "1", "spark.shown": "6"}
    said = [note.partition(": ")[2] for note in script.notes[:2]]
    assert said == [
        "the setting spark.sql.shuffle.partitions, because the check sets its own value",
        "the setting spark.sql.catalog.mine, because Spark has no class com.Missing here",
    ]


STATEMENTS = """
orders.createOrReplaceTempView("recent")
spark.sql("CREATE TABLE t (id INT)")
spark.sql("CREATE TABLE t (id INT)")
spark.sql("MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE")
spark.read.table("shop.names").write.mode("append").saveAsTable("copy")
spark.read.table("names").write.parquet("/out")
spark.catalog.createTable("other")
spark.catalog.refreshTable("other")
assert spark.catalog.tableExists("shop.names") and spark.catalog.tableExists("names", "shop")
assert spark.catalog.databaseExists("shop") and not spark.catalog.databaseExists("other")
assert not spark.catalog.tableExists("nothing") and spark.catalog.tableExists("orders")
spark.sparkContext.setLogLevel("WARN")
spark.sparkContext.setCheckpointDir("/out")
spark.newSession()
"""


def test_what_changes_a_catalog_or_writes_a_table_is_not_run_and_noted_once(
    scripted: Scripted, session: Session
) -> None:
    session.views["of_user"] = session.of_table(pa.table({"a": [1]}))
    session._jsparkSession.catalog().databaseExists = lambda name: False
    _, script = scripted(f"{HEAD}{STATEMENTS}{START}", {"orders": ORDERS, "shop.names": NAMES})
    where = script.where
    assert script.notes == [
        f"line 7 of {where}: the statement 'CREATE TABLE t (id INT)' isn't run",
        f"line 8 of {where}: the statement 'CREATE TABLE t (id INT)' isn't run",
        f"line 9 of {where}: the statement 'MERGE INTO t USING s ON a WHEN MATCHED THEN DELETE' isn't run",
        f"line 10 of {where}: saveAsTable(…) isn't run",
        f"line 11 of {where}: parquet(…) isn't run",
        f"line 12 of {where}: catalog.createTable(…) isn't run",
        f"the sink of line 20 of {where}, a sink without a format: Script(…, read=…) runs the sink, and "
        "reads the rows that it has written",
    ]
    assert {*session.views} == {"of_user"}  # those of the run are dropped


def test_statements_read_the_given_tables_and_the_script_s_own_views(scripted: Scripted) -> None:
    reads = {"orders": ORDERS, "shop.names": NAMES}
    for text, columns in (
        ("SELECT * FROM shop.names", ["customer", "name"]),
        ("SELECT * FROM recent", ["id", "customer", "at"]),
        ("SELECT * FROM STREAM orders", ["id", "customer", "at"]),
        ("SELECT * FROM global_temp.of_user", ["a"]),
    ):
        scripted.session.views["global_temp.of_user"] = scripted.session.of_table(pa.table({"a": [1]}))
        seen: list[Any] = []
        more = "" if "shop" in text else "spark.table('shop.names')\n"
        script = (
            f"{HEAD}orders.createOrReplaceTempView('recent')\n{more}found.append(spark.sql('{text}').columns)\n{START}"
        )
        scripted(script, reads, globals={"found": seen})
        assert seen == [columns]
    message = scripted.refused(f"{HEAD}spark.sql('SELECT * FROM nowhere')\n{START}", {"orders": ORDERS})
    assert "reads nowhere, which can't be read here: [TABLE_OR_VIEW_NOT_FOUND]" in message
    assert message.endswith("give its rows, reads={'nowhere': [{…}]}")


def test_an_error_of_a_batch_read_is_the_script_s_own_once_a_query_has_started(scripted: Scripted) -> None:
    caught = (
        f"{HEAD}{START}try:\n    spark.read.parquet('/no/such')\nexcept Exception as error:\n    said.append(error)\n"
    )
    said: list[Any] = []
    scripted(caught, globals={"said": said})
    assert "PATH_NOT_FOUND" in str(said)
    earlier = caught.replace(START, "") + START
    assert "reads /no/such, which can't be read here" in scripted.refused(earlier, globals={"said": said})


def test_a_second_query_reads_what_the_first_writes_row_by_row(scripted: Scripted) -> None:
    handed = (
        f"{HEAD}orders.drop('at').writeStream.toTable('short')\nspark.readStream.table('short').writeStream.start()\n"
    )
    frame, script = scripted(handed, query=1)
    assert frame.columns == ["id", "customer"]
    assert script.notes[0].endswith(
        "the rows of short come directly from the query in line 5, and not through its sink"
    )
    two = "orders.drop('at').writeStream.toTable('short')\nspark.readStream.table".join(
        handed.rsplit("spark.readStream.table", 1)
    )
    assert "from the queries in lines 5 and 6" in scripted(two, query=2)[1].notes[0]
    refused = "reads short, which its query in line 5 writes: give these rows as another Input"
    for change in (
        ("orders.drop('at')", "orders.drop('at').dropDuplicates(['id'])"),
        ("writeStream.toTable", "writeStream.foreachBatch(print).toTable"),
        ("writeStream.toTable", "writeStream.foreach(print).toTable"),
        ("writeStream.toTable", "writeStream.outputMode('update').toTable"),
    ):
        assert refused in scripted.refused(handed.replace(*change), query=1), change
    assert scripted(handed.replace("writeStream.toTable", "writeStream.outputMode('append').toTable"), query=1)


def test_an_input_is_meant_where_a_read_names_one_that_no_other_line_has_read(scripted: Scripted) -> None:
    text = (
        "one = spark.readStream.table('orders')\none.drop('at').writeStream.toTable('clicks')\n"
        "spark.readStream.table('clicks').writeStream.start()\n"
    )
    reads = {"orders": ORDERS, "clicks": ORDERS}
    assert scripted(text, reads, query=1)[0].columns == ["id", "customer", "at"]


def test_the_rows_of_an_input_s_own_path_are_known_as_a_stream_alone(scripted: Scripted) -> None:
    of_schema = "schema = spark.read.parquet('/lake/orders').schema\n"
    assert scripted(f"{of_schema}spark.readStream.schema(schema).parquet('/lake/orders').writeStream.start()\n")
    rows = f"{HEAD}known = spark.read.parquet('/lake/orders')\norders.unionByName(known).writeStream.start()\n"
    message = scripted.refused(rows)
    assert "line 5 of" in message
    assert message.endswith("as a stream: give the rows of this read, too, reads={'/lake/orders': [{…}]}")
    by_table = rows.replace("parquet('/lake/orders')\norders.", "table('orders')\norders.")
    assert scripted.refused(by_table).endswith("reads={'tables.orders': [{…}]}")


def test_two_topics_are_read_together_each_with_its_own_records(scripted: Scripted) -> None:
    kafka = Input("id string, at timestamp", key="id", format="kafka")
    text = "spark.readStream.format('kafka').option('subscribe', 'a, b').load().writeStream.start()\n"
    frame, _ = scripted(text, {"a": kafka, "b": kafka})
    assert frame._jdf.plan.kind == "Union"
    one, _ = scripted(text.replace("a, b", "x.a"), {"a": kafka})
    assert one._jdf.plan.kind == "Project"  # its records are those of the topic x.a
    assert scripted(text.replace("a, b", "a"), {"a": kafka})[0]._jdf.plan.kind == "StreamingRelation"


def test_files_are_opened_for_writing_only_with_a_note_and_read_beside_the_script(scripted: Scripted) -> None:
    scripted.folder.joinpath("jobs").mkdir()
    (scripted.folder / "jobs" / "names.txt").write_text("ann")
    out = scripted.folder / "out.txt"
    text = f"seen.append(open('names.txt').read())\nopen({str(out)!r}, 'w').close()\nopen(os.devnull, 'w').close()\n"
    seen: list[str] = []
    _, script = scripted(HEAD + text + START, globals={"seen": seen})
    assert (seen, script.notes[0].partition("writes ")[2]) == (
        ["ann"],
        "outside the check's folder in every check",
    )
    assert len(script.notes) == 2


def test_a_script_removes_no_files_and_runs_no_commands_outside_of_the_run_s_folder(scripted: Scripted) -> None:
    kept = scripted.folder / "checkpoint"
    kept.mkdir()
    (kept / "file").touch()
    empty = scripted.folder / "empty"
    empty.mkdir()
    text = f"""
import pathlib, shutil
shutil.rmtree(ignore_errors=True, path={str(kept)!r}), os.rmdir({str(empty)!r})
shutil.rmtree({str(kept)!r}), os.remove({str(kept / "file")!r}), pathlib.Path({str(kept / "file")!r}).unlink()
assert os.system("rm -r {kept}") == 0
"""
    _, script = scripted(HEAD + text + START)
    assert (kept / "file").exists()
    assert empty.exists()
    called = [note.partition(": ")[2].partition("(")[0] for note in script.notes if note.endswith("isn't run")]
    assert called == ["rmtree", "rmdir", "rmtree", "remove", "unlink", "system"]


def test_modules_that_a_script_adds_are_found_and_those_that_are_missing_are_noted(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    lib = scripted.folder / "lib"
    lib.mkdir()
    (lib / "added_by_script.py").write_text("value = 3\n")
    text = (
        f"spark.sparkContext.addPyFile({str(lib / 'added_by_script.py')!r})\nimport added_by_script\n"
        "spark.sparkContext.addFile('nowhere.zip')\nassert added_by_script.value == 3\n"
    )
    _, script = scripted(HEAD + text + START)
    assert script.notes[0].endswith(": nowhere.zip isn't added, because there is no such file")
    assert str(lib) in sys.path
    (lib / "packed.zip").touch()
    scripted(HEAD + f"sc.addPyFile({str(lib / 'packed.zip')!r})\n" + START)
    assert str(lib / "packed.zip") in sys.path


def test_arguments_environment_and_widgets_are_those_that_are_given(scripted: Scripted) -> None:
    seen: list[Any] = []
    text = (
        "seen.append([*sys.argv[1:], os.environ['OWN'], dbutils.widgets.get('day'), getArgument('day')])\n"
        "seen.append((__name__, __file__ == sys.argv[0]))\n"
    )
    given: Any = {"args": ["-v", "x"], "env": {"OWN": "1"}, "widgets": {"day": "monday"}, "globals": {"seen": seen}}
    scripted(HEAD + text + START, **given)
    assert seen == [["-v", "x", "1", "monday", "monday"], ("__main__", True)]


def test_a_function_is_run_with_the_session_or_without_parameters(scripted: Scripted, session: Session) -> None:
    def without() -> None:
        session.readStream.table("orders").writeStream.start()

    def with_session(spark: Any) -> None:
        spark.readStream.table("orders").writeStream.start()

    def two(spark: Any, more: Any) -> None:
        pass

    def failing(spark: Any) -> None:
        spark.readStream.table("orders").writeStream.start()
        1 / 0  # noqa: B018
        spark.readStream.table("orders").writeStream.start()

    for function in (without, with_session):
        script = Script(function, reads={"orders": ORDERS})
        assert script(*scripted.frames(script)).columns == ["id", "customer", "at"]
    for function, said in ((two, "two (tests/fast/.*) takes spark, more: give"), (failing, "later: fix the script")):
        script = Script(function, reads={"orders": ORDERS})
        with pytest.raises(BadInput, match=said.replace("(", r"\(").replace(")", r"\)")):
            script(*scripted.frames(script))


def test_a_notebook_runs_another_and_goes_on_without_one_that_is_not_there(scripted: Scripted) -> None:
    jobs = scripted.folder / "jobs"
    jobs.mkdir()
    (jobs / "common.py").write_text("FACTOR = 3\n")
    text = "# MAGIC %run ./common\n# MAGIC %run ./nowhere\nassert FACTOR == 3\n# MAGIC %pip install x\n"
    _, script = scripted(text + HEAD + START)
    assert [note.partition(": ")[2] for note in script.notes[:2]] == [
        "%pip install x isn't run",
        "%run ./nowhere isn't run: there is no such notebook next to the script",
    ]
    message = scripted.refused("# MAGIC %run ./nowhere\nFACTOR\n")
    assert message.endswith("the script runs the notebook ./nowhere, which is missing: export it beside the script")


def ran(scripted: Scripted, text: str, read: Any = None, run: RunOptions | None = None, **given: Any) -> QueryOutput:
    """Run a script's query over two batches of orders."""
    script = scripted.script(text, read=read, **given)
    script(*scripted.frames(script))  # which shows its query, as in a check
    sources = [one.source for one in resolve_all(script.inputs, 0)]
    rows = [[{"id": name, "customer": "c", "at": NOON}] for name in "ab"]
    batches = [{"orders": pa.Table.from_pylist(one, sources[0].wire_schema)} for one in rows]
    return Runner(script.job, sources).run(batches, (), run or RunOptions())


def test_a_script_s_query_is_checked_by_the_rows_that_reach_its_sink(scripted: Scripted) -> None:
    output = ran(scripted, HEAD + "orders.drop('at').writeStream.format('kafka').start()\n")
    assert output.batches == [[{"id": "a", "customer": "c"}], [{"id": "b", "customer": "c"}]]


def read_parquet(folder: Path) -> Any:
    logs = sorted((folder / "out" / "_spark_metadata").glob("[0-9]*"))
    paths = [folder / "out" / json.loads(log.read_text().splitlines()[1])["path"].rpartition("/")[2] for log in logs]
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize(
    ("start", "given"),
    [
        ("writeStream.format('parquet').start(sys.argv[1])", {"args": ["{folder}/out"]}),
        ("writeStream.format('parquet').option('path', os.environ['OUT']).start()", {"env": {"OUT": "{folder}/out"}}),
        ("writeStream.format('parquet').start('/lake/out')", {"targets": {"/lake/out": "out"}}),
        ("writeStream.start('/lake/out', format='parquet')", {"targets": {"/lake": ""}}),
        ("writeStream.toTable('shop.out')", {"targets": {"shop.out": "out"}}),
        ("writeStream.format('delta').option('checkpointLocation', '/x').table('o')", {"targets": {"o": "out"}}),
    ],
)
def test_a_script_s_own_sink_writes_into_the_run_s_folder(start: str, given: Any, scripted: Scripted) -> None:
    output = ran(scripted, f"{HEAD}orders.{start}\n", read_parquet, **given)
    assert [[row["id"] for row in rows] for rows in output.batches] == [["a", "b"]]


@pytest.mark.parametrize(
    "start",
    [
        "writeStream.format('parquet').start('/lake/out')",
        "writeStream.toTable('shop.out')",
        "writeStream.format('parquet').option('path', 'file:/lake/out').start()",
    ],
)
def test_a_sink_outside_of_the_run_s_folder_is_refused(start: str, scripted: Scripted) -> None:
    with pytest.raises(BadInput, match=r"^line 5 of .* writes to .*out, outside of the check's folder: say what it"):
        ran(scripted, f"{HEAD}orders.{start}\n", read_parquet, targets={"/lake/other": "out"})


FOR_EACH_BATCH = """
def write(rows, batch):
    assert sys.argv[1:] and os.environ["OUT"]
    with open(os.environ["OUT"], "a") as file:
        file.write("".join(row["id"] + "\\n" for row in rows.collect()))

orders.writeStream.foreachBatch(write).start()
"""


def read_lines(folder: Path) -> Any:
    return [{"id": line} for line in (folder / "out").read_text().splitlines()]


def test_a_function_of_a_script_writes_under_the_script_s_arguments_and_dies_where_it_is_planned(
    scripted: Scripted,
) -> None:
    given: Any = {"args": ["x"], "env": {"OUT": "{folder}/out"}}
    output = ran(scripted, HEAD + FOR_EACH_BATCH, read_lines, **given)
    assert output.batches == [[{"id": "a"}, {"id": "b"}]]
    dying = RunOptions(crash_in=(Crash(0),), is_sink=True)
    twice = ran(scripted, HEAD + FOR_EACH_BATCH, read_lines, dying, **given)
    assert twice.batches == [[{"id": "a"}, {"id": "a"}, {"id": "b"}]]
    instead = HEAD + FOR_EACH_BATCH.replace("open(os.environ", "open('/lake/' + os.environ")
    given = {"args": ["x"], "env": {"OUT": "orders"}, "targets": {"/lake/orders": "out"}}
    assert ran(scripted, instead, read_lines, **given).batches == [[{"id": "a"}, {"id": "b"}]]


WRITES = """
def write(rows, batch):
    {}

orders.writeStream.foreachBatch(write).start()
"""


@pytest.mark.parametrize(
    ("write", "target", "how"),
    [
        ("rows.write.parquet('/lake/out')", None, ("parquet", "/lake/out")),
        ("rows.write.save('/lake/out')", "out", ("save", "out")),
        ("rows.write.option('path', '/lake/out/day').save()", "out", ("save", "out/day")),
        ("rows.write.options(path='/lake/out').save()", "out", ("save", "out")),
        ("rows.write.saveAsTable('shop.t')", None, ("saveAsTable", "shop.t")),
        ("rows.write.saveAsTable('shop.t')", "out", ("save", "out")),
        ("rows.write.saveAsTable(name='shop.t', format='orc', mode='append')", "out", ("save", "out")),
        ("rows.write.insertInto('shop.t')", "out", ("save", "out")),
        ("rows.write.insertInto('shop.t', overwrite=True)", "out", ("save", "out")),
        ("rows.write.insertInto('shop.t', overwrite=False)", "out", ("save", "out")),
        ("rows.write.jdbc('jdbc:x', 't')", None, ("jdbc", "jdbc:x")),
        ("rows.write.format('console').save()", None, ("save", None)),
    ],
)
def test_a_function_s_own_batch_writes_go_into_the_run_s_folder(
    write: str, target: str | None, how: Any, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {} if target is None else {"/lake/out": target, "shop.t": target}
    text = HEAD + WRITES.format(write)
    refused = target is None and how[0] not in ("jdbc",) and how[1] is not None
    wrote = scripted.session.wrote
    monkeypatch.setattr(DataFrameWriter, "jdbc", lambda own, url, *_: wrote.append(("jdbc", url, {})))
    if refused:
        with pytest.raises(Exception, match=r"line 7 of .* writes to .*, outside of the check's folder"):
            ran(scripted, text, lambda folder: [], targets=targets)
        assert wrote == []
        return
    ran(scripted, text, lambda folder: [], targets=targets)
    (method, path, said), *_ = wrote
    assert (method, path if path is None or path[0] != "/" else path.partition("/job/")[2]) == how
    modes = [mode for mode in ("append", "overwrite") if mode in write.replace("overwrite=False", "append")]
    assert [said["mode"]] == modes if modes else "insertInto" not in write or said["mode"] == "append"


def test_a_target_stands_for_what_is_below_it_and_for_nothing_beside_it(scripted: Scripted) -> None:
    lift = scripted.lift(asked=0)
    targets = {"/lake/out/": "a", "shop.t": "b", "jdbc:one": "jdbc:two"}
    lift.source = ScriptSource(lift.source.code, targets=targets)
    run = str(lift.folder)
    for target, instead in (
        ("/lake/out/", f"{run}/a"),
        ("/lake/out/day=1", f"{run}/aday=1"),
        ("/lake/outer", None),
        ("shop.t", f"{run}/b"),
        ("shop.t2", None),
        ("jdbc:one", "jdbc:two"),
        (None, None),
    ):
        assert lift.instead_of(target) == instead, target
    lift.asked = None
    assert lift.instead_of("shop.t") is None
    for path, inside in ((f"{run}/x", True), (f"file:{run}/x", True), ("run/x", False), (f"{run}/../x", False)):
        assert lift.is_inside(path) is inside, path


def test_the_frames_of_a_run_are_given_in_the_order_of_reads(scripted: Scripted) -> None:
    script = scripted.script(HEAD + START, {"orders": ORDERS, "names": NAMES})
    with pytest.raises(BadInput, match="has 2 reads, orders, names, and the check has 1 inputs and tables"):
        script(*scripted.frames(script)[:1])


def test_a_read_of_another_file_format_is_named_as_the_script_says_it(scripted: Scripted) -> None:
    lift = scripted.lift()
    for read, said in (
        (Read(target="/lake/x", line=3), "reads /lake/x, and reads= gives only : add reads={'/lake/x'"),
        (Read(line=3), "reads the source without a format, and reads= gives only : add reads={'events'"),
    ):
        with pytest.raises(BadInput) as refused:
            lift.stream(read)
        assert said in refused.value.message
    assert lift.error is not None
    assert "/lake/x" in lift.error.message  # the first is the one that the script's end shows


PARTS = """
for part in (dbutils.fs, dbutils.library, dbutils.data, dbutils.secrets, dbutils.notebook, dbutils.jobs):
    part.of_platform(1, a=2)
dbutils.widgets.of_platform()
dbutils.jobs.taskValues.of_platform()
get_ipython().run_line_magic("pip", "install x")
get_ipython().system("ls")
"""


def test_what_a_platform_offers_and_is_not_here_is_noted_by_its_name(scripted: Scripted) -> None:
    _, script = scripted(HEAD + PARTS + START)
    names = ("fs", "library", "data", "secrets", "notebook", "jobs", "widgets", "jobs.taskValues")
    assert [note.partition(": ")[2] for note in script.notes[:-1]] == [
        *(f"dbutils.{name}.of_platform(…) isn't run" for name in names),
        "pip install x isn't run",
        "ls isn't run",
    ]


VALUES = """
dbutils.widgets.text("day", "monday")
dbutils.widgets.dropdown("hour", 7, [7, 8])
dbutils.widgets.remove("day")
seen += [dbutils.widgets.get("day"), dbutils.widgets.getArgument("hour"), dbutils.widgets.getAll()]
seen += [dbutils.fs.ls("/"), dbutils.fs.mounts(), dbutils.fs.head("/a"), dbutils.secrets.get("s", "k")]
seen += [dbutils.secrets.getBytes("s", "k"), dbutils.secrets.list("s"), dbutils.secrets.listScopes()]
context = dbutils.notebook.entry_point.getDbutils().notebook().getContext()
seen += [context.notebookPath().get(), context.toJson(), dbutils.notebook.getContext() is dbutils.notebook.entry_point]
seen += [dbutils.jobs.taskValues.get("t", "k", default=3), dbutils.jobs.taskValues.get("t", "k", 3, 4)]
dbutils.jobs.taskValues.set("k", 1)
try:
    dbutils.notebook.exit("done")
except SystemExit as ended:
    seen.append(ended.code)
"""


def test_a_notebook_s_platform_answers_with_stand_ins(scripted: Scripted) -> None:
    seen: list[Any] = []
    scripted(HEAD + VALUES + START, globals={"seen": seen}, widgets={"hour": 8})
    assert seen == [
        *("monday", "8", {"day": "monday", "hour": "8"}),
        *([], [], "", "secret"),
        *(b"secret", [], []),
        *("", "{}", True),
        *(3, 4),
        "done",
    ]


def test_the_lines_of_a_notebook_are_known_where_an_error_is_shown(scripted: Scripted) -> None:
    cells = [{"cell_type": "code", "source": source} for source in (HEAD, "# the second\n" + START)]
    _, script = scripted(json.dumps({"cells": cells}), name="job.ipynb")
    path = str(script.source)
    lines = [linecache.getline(path, number) for number in range(1, 20)]
    assert "orders.writeStream.start()\n" in lines


def test_a_pipeline_s_statements_are_the_script_s_queries(scripted: Scripted, session: Session) -> None:
    session.views["orders"] = session.of_table(pa.table({"id": ["a"]}))
    text = "CREATE STREAMING TABLE copies AS SELECT * FROM STREAM orders;\n"
    path = scripted.folder / "jobs" / "flows.sql"
    path.parent.mkdir()
    path.write_text(text)
    frames = scripted.frames(scripted.script("1\n"))
    lift = Lift(ScriptSource(path), session, Frames({"orders": frames[0]}), Frames({}), scripted.folder)
    run(lift)
    lift.undo()
    assert [(write.name, write.frame.columns) for write in lift.writes] == [("copies", ["id", "customer", "at"])]


def test_magics_as_they_stand_in_a_cell_are_not_run_but_for_those_that_run_a_notebook(scripted: Scripted) -> None:
    jobs = scripted.folder / "jobs"
    jobs.mkdir()
    (jobs / "common.py").write_text("FACTOR = 3\n")
    _, script = scripted("%pip install x\n%run ./common\n!ls\n%python\nassert FACTOR == 3\n" + HEAD + START)
    assert [note.partition(": ")[2] for note in script.notes[:2]] == ["%pip install x isn't run", "!ls isn't run"]
    assert "%python" not in " ".join(script.notes) or len(script.notes) > 3


PIPELINE = """
from pyspark import pipelines as dp

@dp.table
def copies():
    return spark.readStream.table("orders")

@dp.temporary_view
def short():
    return spark.readStream.table("copies").drop("at")

@dp.table(name="shop.short_copies")
def named():
    return spark.readStream.table("short")

@dp.materialized_view
def counts():
    return spark.read.table("copies")

@dp.append_flow(target="copies")
def more():
    return spark.readStream.table("orders")
"""


def test_a_pipeline_s_decorators_declare_its_queries(scripted: Scripted) -> None:
    pytest.importorskip("pyspark.pipelines")
    frame, script = scripted(PIPELINE, query="shop.short_copies")
    assert frame.columns == ["id", "customer"]
    assert any("counts isn't checked: Spark computes a materialized view anew" in note for note in script.notes)
    message = scripted.refused(PIPELINE)
    assert "starts 3 queries, 'copies'" in message
    assert "'more'" in message


def test_a_flow_with_state_is_no_matter_of_single_rows_for_another_flow(scripted: Scripted) -> None:
    pytest.importorskip("pyspark.pipelines")
    stateful = PIPELINE.replace('readStream.table("orders")', 'readStream.table("orders").dropDuplicates(["id"])', 1)
    message = scripted.refused(stateful, query="shop.short_copies")
    assert "reads copies, which its flow of copies writes: give these rows as another Input" in message


def test_an_encrypted_setting_of_a_platform_stays_as_it_is_and_other_classes_are_refused() -> None:
    package = SimpleNamespace(_fqn="org.apache.spark.eventhubs.EventHubsUtils.encrypt")
    assert _of_jvm(package, "text", 1) == "text"
    with pytest.raises(TypeError, match=r"Spark has no class for org\.other here"):
        _of_jvm(SimpleNamespace(_fqn="org.other"), "text")


def test_a_script_is_checked_by_its_query_s_rows_or_as_a_sink_that_read_reads(
    scripted: Scripted,
) -> None:
    text = HEAD + "orders.drop('at').writeStream.outputMode('update').foreachBatch(print).start()\n"
    plain = Job(scripted.script(text), settings={"spark.of.check": "1"})
    options = plain._options({})
    assert (options.run.mode, options.run.is_sink, options.runner.job) == ("update", False, plain.job)
    report = plain.check(expect=sql("SELECT id, customer FROM orders"), histories=10)
    assert (report.histories, report.alone) == (10, "")
    written = Job(scripted.script(HEAD + FOR_EACH_BATCH, read=read_lines, args=["x"], env={"OUT": "{folder}/out"}))
    options = written._options({})
    assert (options.run.mode, options.run.is_sink, type(options.runner.job)) == ("append", True, Sink)
