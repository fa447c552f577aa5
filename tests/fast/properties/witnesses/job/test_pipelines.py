"""Declarative Pipelines: what statements and projects declare, without Spark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.scripts import execution, lifting, pipelines
from streamproof.properties.witnesses.job.scripts.execution import _raised
from streamproof.properties.witnesses.job.scripts.lifting import Lift, ScriptSource
from streamproof.properties.witnesses.job.scripts.pipelines import Flow, Pipeline, declare_all
from streamproof.properties.witnesses.job.scripts.project import project_of
from streamproof.properties.witnesses.job.scripts.reads import Read
from streamproof.properties.witnesses.job.scripts.statements import Declaration, declarations_of
from streamproof.reference.core.errors import BadInput


class Run:
    """A run of a script, as far as a pipeline asks for it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.writes: list[Any] = []
        self.settings: dict[str, Any] = {}
        self.places: list[tuple[str, int]] = []
        self.source = SimpleNamespace(where="shop.yml")
        self.spark = SimpleNamespace(sql=lambda text: text)

    @contextlib.contextmanager
    def within(self, file: Path, line: int = 0) -> Iterator[None]:
        self.places.append((file.name, line))
        yield

    def note(self, text: str) -> None:
        self.notes.append(text)

    def set(self, name: str, value: Any) -> None:
        self.settings[name] = value

    def refuse(self, message: str) -> BadInput:
        return BadInput(message)


STATEMENTS = """-- CREATE STREAMING TABLE none;
CREATE OR REFRESH STREAMING TABLE `shop`.large (n INT COMMENT 'as select; or not')
AS SELECT * FROM STREAM clicks WHERE note <> ';';
/* ; */ CREATE MATERIALIZED VIEW by_user AS SELECT user FROM large;

SET spark.sql.shuffle.partitions = 3;
CREATE STREAMING TABLE IF NOT EXISTS alerts;
CREATE FLOW a COMMENT 'as insert' AS INSERT INTO alerts BY NAME
SELECT 1;
CREATE TEMPORARY VIEW good AS WITH t AS (SELECT 1) SELECT * FROM t
"""


def test_statements_declare_datasets_flows_and_settings() -> None:
    found = [(one.line, one.kind, one.name, one.target, one.query, one.setting) for one in declarations_of(STATEMENTS)]
    large = "SELECT * FROM STREAM clicks WHERE note <> ';'"
    assert found == [
        (2, "StreamingTable", "shop.large", "shop.large", large, None),
        (4, "MaterializedView", "by_user", "by_user", "SELECT user FROM large", None),
        (6, None, "", "", None, ("spark.sql.shuffle.partitions", "3")),
        (7, "StreamingTable", "alerts", "alerts", None, None),
        (8, None, "a", "alerts", "SELECT 1", None),
        (10, "TemporaryView", "good", "good", "WITH t AS (SELECT 1) SELECT * FROM t", None),
    ]


def test_other_statements_declare_nothing() -> None:
    assert [*declarations_of("SELECT 1;")] == [Declaration("SELECT 1", 1)]
    assert [*declarations_of(" ; -- nothing\n;")] == []
    run = Run()
    with pytest.raises(BadInput, match=r"^line 2 of shop\.yml declares no table, view or flow: 'DROP TABLE t'$"):
        Pipeline(run).declare("\nDROP TABLE t;", Path("a.sql"))


def test_a_dataset_is_known_by_its_name_with_or_without_its_database() -> None:
    pipeline = Pipeline(Run(), {"shop.Visits": "StreamingTable", "clicks": "StreamingTable"})
    names = ("visits", "SHOP.visits", "`shop`.`visits`", "other.visits", "live.clicks", "/data/clicks", "views")
    assert [pipeline.dataset_of(name) for name in names] == [
        *("shop.Visits", "shop.Visits", "shop.Visits", None, "clicks", None, None)
    ]


def test_the_flows_of_a_dataset_are_made_once_each_at_its_place() -> None:
    run = Run()
    pipeline = Pipeline(run)
    pipeline.declare("CREATE STREAMING TABLE a AS SELECT 1;\nCREATE FLOW f AS INSERT INTO a SELECT 2;", Path("a.sql"))
    assert pipeline.made("a") == ["SELECT 1", "SELECT 2"]
    assert pipeline.made("a") is pipeline.made("a")
    assert run.places[-2:] == [("a.sql", 1), ("a.sql", 2)]


def test_the_rows_of_a_dataset_are_those_of_all_its_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frame(list[str]):
        def unionByName(self, other: Frame, allowMissingColumns: bool) -> Frame:
            assert allowMissingColumns
            return Frame([*self, *other])

    monkeypatch.setattr(pipelines, "renewed", lambda frame: frame)
    pipeline = Pipeline(Run(), {"a": "StreamingTable", "none": "StreamingTable"})
    for name in ("one", "two", "three"):
        pipeline.flows.append(Flow(name, "a", lambda name=name: Frame([name]), Path("a.py"), 1))  # type: ignore[misc, arg-type]
    assert pipeline.rows("a") == ["one", "two", "three"]
    assert pipeline.rows("none") is None


def test_a_run_is_of_another_file_only_while_that_file_runs(tmp_path: Path) -> None:
    source = ScriptSource(tmp_path / "a.yml", text="changed")
    lift: Any = SimpleNamespace(source=source, declared=0, is_elsewhere=False, failed=None)
    with contextlib.suppress(ValueError), Lift.within(lift, tmp_path / "b.sql", 7):
        assert (lift.source.code, lift.source.text, lift.declared) == (tmp_path / "b.sql", None, 7)
        raise ValueError
    assert (lift.source.code, lift.source.text, lift.declared) == (tmp_path / "a.yml", "changed", 0)


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        ("b.py", "one = 1\n\none / 0\n", 0, "b.py raised ZeroDivisionError, in line 3: division by zero"),
        ("b.py", "one = 1\none =\n", 0, "b.py isn't valid Python: invalid syntax, in line 2"),
        ("b.sql", "1 / 0", 7, "b.sql raised ZeroDivisionError, in line 7: division by zero"),
    ],
)
def test_an_error_in_a_file_of_a_project_names_the_file_and_its_line(
    tmp_path: Path, name: str, text: str, line: int, says: str
) -> None:
    source = ScriptSource(tmp_path / "a.yml")
    lift: Any = SimpleNamespace(source=source, declared=0, is_elsewhere=False, failed=None, missing=[])
    path = tmp_path / name
    file, other = str(path) if path.suffix == ".py" else "<statement>", tmp_path / "flow.py"
    failing = pytest.raises((ZeroDivisionError, SyntaxError))
    with failing as raised, Lift.within(lift, other), Lift.within(lift, path, line):
        exec(compile(text, file, "exec"))
    assert _raised(lift, raised.value).endswith(says)


def test_a_dataset_that_reads_itself_is_refused_with_its_way() -> None:
    pipeline = Pipeline(Run(), {"a": "StreamingTable", "b": "TemporaryView"})
    for one, other in (("a", "b"), ("b", "a")):
        pipeline.flows.append(Flow(one, one, lambda other=other: pipeline.made(other), Path("a.py"), 1))  # type: ignore[misc]
    with pytest.raises(BadInput, match=r"^shop\.yml: a reads b reads a: a dataset can't read itself$"):
        pipeline.made("a")


def test_a_pipeline_without_a_stream_is_refused_and_a_script_without_datasets_is_not() -> None:
    run = Run()
    Pipeline(run).start()
    pipeline = Pipeline(run, {"by_user": "MaterializedView"})
    with pytest.raises(BadInput, match=r"^shop\.yml declares by_user, and no flow that reads a stream: "):
        pipeline.start()
    assert run.notes == ["by_user isn't checked: Spark computes a materialized view anew each time"]


PROJECT = """name: shop
storage: file:///tmp/storage
configuration:
  spark.sql.shuffle.partitions: "3"
libraries:
  - glob:
      include: transformations/**
"""


def project(folder: Path, text: str = PROJECT, **files: str) -> Path:
    (folder / "transformations").mkdir()
    for name, content in files.items():
        (folder / "transformations" / name.replace("_", ".")).write_text(content)
    (folder / "spark-pipeline.yml").write_text(text)
    found = project_of(folder)
    assert found is not None
    return found


def test_the_files_of_a_project_are_run_in_order_and_its_settings_set(tmp_path: Path) -> None:
    run = Run()
    pipeline = Pipeline(run)
    path = project(tmp_path, b_sql="CREATE STREAMING TABLE b;", a_py="spark.seen = __file__", c_txt="no code")
    declare_all(pipeline, path)
    assert run.settings == {"spark.sql.shuffle.partitions": "3"}
    assert run.spark.seen == str(tmp_path / "transformations/a.py")
    assert pipeline.kinds == {"b": "StreamingTable"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "isn't valid YAML: "),
        ("no", "describes no pipeline: it needs a name, a storage and libraries"),
        ("libraries: [a]", "an entry of libraries needs glob and include"),
        ("name: a", "includes no file: its libraries match no .py or .sql file"),
    ],
)
def test_a_project_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        declare_all(Pipeline(Run()), project(tmp_path, text))
    assert said in refused.value.message


def test_a_folder_without_a_description_is_no_project(tmp_path: Path) -> None:
    assert project_of(tmp_path) is None


def test_an_error_on_an_unknown_line_may_have_any_query_behind_it(tmp_path: Path) -> None:
    text = "query = frame.writeStream.start()\nspark.stop()"
    lift: Any = SimpleNamespace(source=ScriptSource(tmp_path / "a.py"), failed=None, text=text)
    assert execution._rest(lift, ValueError()) == text


@pytest.mark.parametrize(("kind", "rows"), [("TemporaryView", "its rows"), ("StreamingTable", None)])
def test_a_batch_read_of_a_view_has_the_view_s_rows_and_of_a_table_none(kind: str, rows: str | None) -> None:
    pipeline: Any = Pipeline(Run(), {"a": kind})
    pipeline.rows = lambda dataset: "its rows"
    tables = SimpleNamespace(answer=lambda read, in_order: {})
    lift: Any = SimpleNamespace(tables=tables, pipeline=pipeline)
    assert Lift.table(lift, Read(target="a")) == rows
    assert Lift.table(lift, Read(target="b")) is None


@pytest.mark.parametrize("owner", ["inputs", "tables", "views"])
def test_a_table_named_stream_is_read_by_its_name(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifting, "server_session", lambda spark: spark)
    monkeypatch.setattr(lifting, "relations_of", lambda spark, text: [])
    given = {"inputs": SimpleNamespace(frames={}), "tables": SimpleNamespace(frames={}), "views": []}
    lift: Any = SimpleNamespace(spark=None, answering=[], **given)
    text = "SELECT * FROM STREAM s"
    assert Lift.statement(lift, text) == ("SELECT * FROM s", None)
    if owner == "views":
        lift.views = ["Stream"]
    else:
        setattr(lift, owner, SimpleNamespace(frames={"Stream": None}))
    assert Lift.statement(lift, text) == (text, None)
