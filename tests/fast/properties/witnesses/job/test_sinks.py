"""How what a sink wrote is read: which files count, which types values have, and what is refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamproof import BadInput, MissingTool, Sink
from streamproof.properties.generators.columns.schemas import arrow_schema
from streamproof.properties.witnesses.job.sinks import files as sink_files
from streamproof.properties.witnesses.job.sinks.databases import PostgresTable
from streamproof.properties.witnesses.job.sinks.types import DIGITS, of_type

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)


def job(*given: Any) -> Any:
    return given


def target_of(sink: Sink, folder: Path) -> str:
    with sink.at(folder) as (target, checkpoint):
        assert Path(checkpoint).parent == folder
        return str(target)


def written(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([*rows]), path)


@pytest.mark.parametrize(
    "sink",
    [Sink.parquet(job), Sink.json(job), Sink.sqlite(job, table="totals"), Sink.duckdb(job, table="totals")],
    ids=["parquet", "json", "sqlite", "duckdb"],
)
def test_where_nothing_was_written_there_are_no_rows(sink: Sink, tmp_path: Path) -> None:
    assert sink.read(target_of(sink, tmp_path)) == []


def test_files_count_that_spark_would_read_with_the_columns_in_names_of_folders(tmp_path: Path) -> None:
    sink = Sink.parquet(job, schema="day date", without=["batch"])
    out = Path(target_of(sink, tmp_path))
    written(out / "batch=0" / "day=2024-07-15" / "part-0.parquet", {"user": "a"})
    written(out / "batch=1" / "day=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", {"user": "b", "n": 1})
    written(out / "_temporary" / "part-0.parquet", {"user": "not committed"})
    written(out / "batch=1" / ".staging" / "part-0.parquet", {"user": "not committed"})
    (out / "_SUCCESS").touch()
    assert sink.read(str(out)) == [
        {"user": "a", "day": date(2024, 7, 15), "n": None},
        {"user": "b", "day": None, "n": 1},
    ]


def test_where_spark_s_sink_has_a_log_files_count_that_it_names_in_folders_of_partitions_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = [tmp_path / "a" / "day=1" / "part-1.parquet", tmp_path / "a" / "b" / "day=2" / "part-1.parquet"]
    monkeypatch.setattr(sink_files, "_named_by_log", lambda folder: logged[folder.name == "b" :][:1])
    for number, path in enumerate(logged):
        written(path, {"n": number})
        written(path.with_name("part-2.parquet"), {"n": "not committed"})
        (path.parents[1] / "_spark_metadata").mkdir()
    written(tmp_path / "c" / "day=3" / "part-1.parquet", {"n": 2})
    rows = Sink.parquet(job).read(str(tmp_path))
    assert [(row["n"], row["day"]) for row in rows] == [(1, "2"), (0, "1"), (2, "3")]


def test_the_target_may_be_one_file(tmp_path: Path) -> None:
    written(tmp_path / "result", {"at": NOON})
    assert Sink.parquet(job).read(str(tmp_path / "result")) == [{"at": NOON}]


def test_json_has_the_types_that_the_schema_names(tmp_path: Path) -> None:
    sink = Sink.json(job, schema="at timestamp, price decimal(8,2), tags array<struct<day: date>>, none string")
    row = {"user": "line\u2028break", "at": "2024-07-15T14:00:00.000+02:00", "tags": [{"day": "2024-07-15"}, {}]}
    (tmp_path / "a.json").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"user": "b", "price": 1.10}\n'))
    assert sink.read(str(tmp_path)) == [
        {
            "user": "line\u2028break",
            "at": NOON,
            "tags": [{"day": date(2024, 7, 15)}, {"day": None}],
            "price": None,
            "none": None,
        },
        {"user": "b", "at": None, "tags": None, "price": Decimal("1.10"), "none": None},
    ]


def test_sqlite_has_the_types_that_the_schema_names(tmp_path: Path) -> None:
    sink = Sink.sqlite(job, table="the table", schema="at timestamp, price decimal(8,2), paid boolean")
    with closing(sqlite3.connect(tmp_path / "result.sqlite")) as database, database:
        database.execute('CREATE TABLE "the table" (at, price DECIMAL(8,2), paid, bytes)')
        database.execute("""INSERT INTO "the table" VALUES ('2024-07-15 12:00:00', '1.10', 1, x'00ff')""")
    rows = sink.read(target_of(sink, tmp_path))
    assert rows == [{"at": NOON, "price": Decimal("1.10"), "paid": True, "bytes": b"\x00\xff"}]


@pytest.mark.parametrize(
    ("given", "kind", "value"),
    [
        ("2024-07-15 12:00:00", "timestamp", NOON),
        ("2024-07-15T12:00:00Z", "timestamp", NOON),
        ("2024-07-15 12:00:00", "timestamp_ntz", NOON.replace(tzinfo=None)),
        (1.1, "decimal(8,2)", Decimal("1.10")),
        (0.1 + 0.2, "decimal(8,2)", Decimal("0.30")),
        (7, "decimal(8,2)", Decimal(7)),
        ("12345678901234567.89", "decimal(38,2)", Decimal("12345678901234567.89")),
        (Decimal("1.234"), "decimal(8,2)", Decimal("1.234")),  # what has too many digits isn't cut
        ("true", "boolean", True),
        (0, "boolean", False),
        ("007", "int", 7),
        (1.5, "int", 1.5),
        ("NaN", "double", float("nan")),
        (Decimal("0.1"), "double", 0.1),
        (Decimal("0.1"), "float", 0.10000000149011612),
        ("AP8=", "binary", b"\x00\xff"),
        ({"a": "1"}, "map<string, int>", {"a": 1}),
        ({"2024-07-15": None, "2024-07-16": 2}, "map<date, int>", {date(2024, 7, 15): None, date(2024, 7, 16): 2}),
        ([{"1": "2"}], "array<map<int, bigint>>", [{1: 2}]),
        (None, "date", None),
    ],
)
def test_a_value_has_the_type_of_its_column(given: Any, kind: str, value: Any) -> None:
    assert repr(of_type(given, arrow_schema(f"x {kind}").field("x").type)) == repr(value)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("yesterday", "timestamp"),
        (1721044800, "timestamp"),
        ("2024-07-15 12:00:00", "date"),
        ("much", "decimal(8,2)"),
        (True, "decimal(8,2)"),
        (2, "boolean"),
        ([], "boolean"),
        ("1.5", "int"),
        ([1], "int"),
        (True, "double"),
        ([1], "double"),
        ("?", "binary"),
        (1, "string"),
        ("[]", "array<int>"),
        ([], "map<string, int>"),
    ],
)
def test_what_is_not_of_its_type_is_refused(given: Any, kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"x": given}))
    with pytest.raises(BadInput, match=r"Sink.json: the column 'x' has .*, which isn't of the schema's type"):
        Sink.json(job, schema=f"x {kind}").read(str(tmp_path))


def with_tables(folder: Path) -> None:
    statement = "CREATE TABLE totals AS SELECT 1 AS n"
    with closing(sqlite3.connect(folder / "result.sqlite")) as database, database:
        database.execute(statement)
    with duckdb.connect(str(folder / "result.duckdb")) as database:
        database.execute(statement)
    (folder / "result.json").write_text('{"n": 1}\n[1]\n')
    (folder / "result.parquet").write_text("no parquet")
    (folder / "result.text").write_text("no database " * 1000)


@pytest.mark.parametrize(
    ("made", "file", "message"),
    [
        (
            lambda: Sink.sqlite(job, table="total"),
            "result.sqlite",
            "Sink.sqlite: the target has no table 'total', but has 'tot",
        ),
        (
            lambda: Sink.duckdb(job, table="total"),
            "result.duckdb",
            "Sink.duckdb: the target has no table 'total', but has 'tot",
        ),
        (lambda: Sink.sqlite(job, table="t"), "result.json", "Sink.sqlite can't read the table 't': file is not a"),
        (lambda: Sink.duckdb(job, table="t"), "result.text", "Sink.duckdb can't read the table 't': .*not a valid"),
        (
            lambda: Sink.duckdb(job, table="totals", without=["m"]),
            "result.duckdb",
            "no column 'm', but has 'n'",
        ),
        (lambda: Sink.sqlite(job, table="totals", schema="m int"), "result.sqlite", "no column 'm', but has 'n'"),
        (lambda: Sink.parquet(job), "result.parquet", "isn't parquet: .*: write nothing else below the target"),
        (lambda: Sink.json(job), "result.json", r"result.json, line 2, has '\[1\]': write each row as a JSON object"),
        (lambda: Sink.json(job, schema="n int, n int"), "", "Sink.json: the schema has the column 'n' twice"),
        (lambda: Sink.json(job, without="n"), "", "Sink.json: without is 'n': give a list, a text each"),
        (lambda: Sink.sqlite(job, table=None), "", "Sink.sqlite: table is None: give a text"),
        (lambda: Sink.parquet("out"), "", "Sink.parquet: start is 'out': give a function"),
        (
            lambda: Sink.postgres(job, table="t", url="db"),
            "",
            "Sink.postgres: url is 'db': give a URL such as \"postgr",
        ),
    ],
)
def test_a_sink_that_cannot_be_read_is_refused(
    made: Callable[[], Sink], file: str, message: str, tmp_path: Path
) -> None:
    with_tables(tmp_path)
    with pytest.raises(BadInput, match=message):
        made().read(str(tmp_path / file))


@pytest.mark.parametrize(
    ("module", "made"),
    [
        ("deltalake", lambda: Sink.delta(job)),
        ("psycopg", lambda: Sink.postgres(job, table="totals", url="postgresql://localhost")),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(
    module: str, made: Callable[[], Sink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingTool, match=rf"needs {module}, .*: .*-m pip install 'streamproof\[(delta|postgres)\]'"):
        made()


@pytest.mark.parametrize(
    ("url", "target"),
    [
        (
            "postgresql://me:pw@db:1/tests?sslmode=require",
            "jdbc:postgresql://db:1/tests?user=me&password=pw&sslmode=require&currentSchema=s",
        ),
        ("postgresql://db", "jdbc:postgresql://db:5432/?currentSchema=s"),
    ],
)
def test_a_database_has_the_same_parameters_over_jdbc(url: str, target: str) -> None:
    pytest.importorskip("psycopg")
    assert PostgresTable(table="t", url=url, jdbc=True)._of_jdbc("s") == target


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    sink = Sink.postgres(job, table="totals", url="postgresql://me:secret@127.0.0.1:1/tests")
    with (
        pytest.raises(BadInput, match=r"PostgreSQL at .*host=127.0.0.1.* refuses CREATE SCHEMA") as refused,
        sink.at(tmp_path),
    ):
        pass
    assert "secret" not in str(refused.value)


class Postgres:
    """Stands in for psycopg and a database: notes what is run, and has tables with rows."""

    class Error(Exception):
        pass

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self.tables, self.ran, self.urls = tables, [], []  # type: ignore[var-annotated]

    def connect(self, url: str) -> Any:
        self.urls.append(url)
        return self

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def cursor(self, row_factory: Any) -> Any:
        return self

    def execute(self, statement: Any) -> Any:
        text = statement.decode() if isinstance(statement, bytes) else statement
        self.ran.append(text)
        if "refused" in self.tables and text.startswith("CREATE"):
            raise self.Error("no rights")
        if "FROM information_schema" in text:
            return [(name,) for name in sorted(self.tables)]
        return self.tables.get(text.partition('"')[2].rstrip('"'), [])


def postgres(monkeypatch: pytest.MonkeyPatch, jdbc: bool = False, **tables: list[dict[str, Any]]) -> tuple[Any, Sink]:
    stand_in: Any = Postgres(**tables)
    conninfo = SimpleNamespace(
        conninfo_to_dict=lambda url: {"host": "db", "user": "me", "password": "secret"},
        make_conninfo=lambda text, **shown: " ".join(f"{name}={value}" for name, value in shown.items()),
    )
    for name, module in (("", stand_in), (".rows", SimpleNamespace(dict_row=None)), (".conninfo", conninfo)):
        monkeypatch.setitem(sys.modules, f"psycopg{name}", module)
    return stand_in, Sink.postgres(job, table="totals", url="postgresql://me:secret@db", jdbc=jdbc)


@pytest.mark.parametrize("jdbc", [False, True])
def test_a_query_has_a_schema_of_its_own_in_postgres_and_its_rows_are_read_there(
    jdbc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, sink = postgres(monkeypatch, jdbc, totals=[{"n": 1}])
    with sink.at(tmp_path) as (target, _):
        lock, made = stand_in.ran
        schema = made.removeprefix("CREATE SCHEMA ")
        assert (lock, schema.startswith("streamproof_")) == ("SET lock_timeout = '10s'", True)
        assert (schema in target, target.startswith("jdbc:")) == (True, jdbc)
        assert sink.read(target) == [{"n": 1}]
        assert stand_in.urls[-1] == f"postgresql://me:secret@db?options={quote(f'-c search_path={schema}')}"
    assert stand_in.ran[-1] == f"DROP SCHEMA {schema} CASCADE"


def test_a_table_of_postgres_that_is_not_there_has_no_rows_or_is_refused_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, sink = postgres(monkeypatch)
    assert sink.read("postgresql://db") == []
    _, sink = postgres(monkeypatch, other=[])
    with pytest.raises(BadInput, match="the target has no table 'totals', but has 'other': name one of these"):
        sink.read("postgresql://db")
    _, sink = postgres(monkeypatch, refused=[])
    with (
        pytest.raises(BadInput, match=r"PostgreSQL at host=db user=me refuses CREATE SCHEMA .*: no rights"),
        sink.at(tmp_path),
    ):
        pass
    with pytest.raises(BadInput, match="url is 'db': give a URL such as"):
        Sink.postgres(job, table="totals", url="db")


def test_a_table_of_iceberg_is_the_one_of_its_name_in_a_catalog_or_in_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoSuchTableError(Exception):
        pass

    read: list[str] = []

    def from_metadata(path: str) -> Any:
        read.append(path)
        if "broken" in path:
            raise NoSuchTableError("no metadata")
        return SimpleNamespace(scan=lambda: SimpleNamespace(to_arrow=lambda: pa.table({"n": [1]})))

    errors = SimpleNamespace(NoSuchTableError=NoSuchTableError, ValidationError=NoSuchTableError)
    tables = SimpleNamespace(StaticTable=SimpleNamespace(from_metadata=from_metadata))
    for name, module in (("", SimpleNamespace()), (".exceptions", errors), (".table", tables)):
        monkeypatch.setitem(sys.modules, f"pyiceberg{name}", module)

    def rows(table: str) -> Any:
        return Sink.iceberg(job, table=table).read(str(tmp_path))

    assert rows("t") == []
    for name in ("shop/t/metadata/v9", "shop/t/metadata/v10", "shop/t/metadata/vx", "other/broken/metadata/v1"):
        path = tmp_path / f"{name}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in ("t", "shop.t"):
        assert rows(name) == [{"n": 1}]
    assert {*read} == {str(tmp_path / "shop/t/metadata/v10.metadata.json")}
    with pytest.raises(BadInput, match=r"there is no table 'p'; the target has 'other\.broken', 'shop\.t'"):
        rows("p")
    with pytest.raises(BadInput, match="pyiceberg can't read the table: no metadata"):
        rows("broken")
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database, database:
        database.execute("CREATE TABLE iceberg_tables (table_namespace, table_name, metadata_location)")
        database.execute("INSERT INTO iceberg_tables VALUES ('lake', 't', '/of/catalog')")
    with pytest.raises(BadInput, match="there are several namespaces with a table 't'"):
        rows("t")
    rows("lake.t")
    assert read[-1] == "/of/catalog"
    with closing(sqlite3.connect(tmp_path / "other.db")) as database, database:
        database.execute("CREATE TABLE mine (n)")
    assert rows("lake.t") == [{"n": 1}]
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(MissingTool, match="needs pyiceberg"):
        rows("t")


def test_a_decimal_of_all_digits_that_spark_has_is_not_rounded() -> None:
    (kind,) = arrow_schema("price decimal(38,2)").types
    assert of_type(1e35, kind) == Decimal("1e35").quantize(Decimal("0.01"), context=DIGITS)


def test_a_delta_table_is_read_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class DeltaError(Exception):
        pass

    class DeltaTable:
        def __init__(self, target: str) -> None:
            self.target = target

        @staticmethod
        def is_deltatable(target: str) -> bool:
            return not target.endswith("none")

        def to_pyarrow_table(self) -> pa.Table:
            if self.target.endswith("broken"):
                raise DeltaError("no log")
            return pa.table({"n": [1]})

    module = SimpleNamespace(DeltaTable=DeltaTable, exceptions=SimpleNamespace(DeltaError=DeltaError))
    monkeypatch.setitem(sys.modules, "deltalake", module)
    sink = Sink.delta(job)
    assert (sink.read("/none"), sink.read("/there")) == ([], [{"n": 1}])
    with pytest.raises(BadInput, match="deltalake can't read the table: no log"):
        sink.read("/broken")
    with pytest.raises(BadInput, match="the target has no column 'batch', but has 'n'"):
        Sink.delta(job, without=["batch"]).read("/there")


@pytest.mark.parametrize("url", ["postgresql:///tests", "postgresql:///tests?host=/var/run/postgresql"])
def test_jdbc_reaches_no_unix_socket(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(BadInput, match="JDBC can't use a Unix socket: name a host"):
        PostgresTable(table="t", url=url, jdbc=True)._of_jdbc("s")


def test_a_partition_s_column_may_begin_like_a_folder_that_spark_leaves_out(tmp_path: Path) -> None:
    written(tmp_path / "_day=1" / "part-0.parquet", {"n": 1})
    written(tmp_path / "_day" / "part-0.parquet", {"n": 2})
    assert Sink.parquet(job).read(str(tmp_path)) == [{"n": 1, "_day": "1"}]


def test_a_target_without_rows_lacks_no_column(tmp_path: Path) -> None:
    sink = Sink.parquet(job, without=["b"])
    assert sink.read(str(tmp_path)) == []
    pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="the target has no column 'b', but has 'a'"):
        sink.read(str(tmp_path))
