"""Changes of a job's source: which places of it mutants change, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from changed_jobs import CLICKS, TOTALS, changes, job_of
from streamproof import BadInput, Input, Script
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.mutations.nodes import text_of
from streamproof.properties.witnesses.job.mutations.source import JobSource
from streamproof.properties.witnesses.job.mutations.sql import other_sql


def test_what_a_job_uses_in_its_module_is_changed_and_nothing_else(tmp_path: Path) -> None:
    assert changes(tmp_path, TOTALS, "totals") == [
        "`100` → `101`",
        '`F.window("at", "1 hour")` → `F.window("at", "1 hour", "30 minutes")`',
        '`F.window("at", "1 hour")` → `F.window("at", "1 hour", "1 hour", "30 minutes")`',
        '`"1 hour"` → `"2 hour"`',
        '`"1 hour"` → `"1000 hour"`',
        '`"1 hour"` → `"59 minutes"`',
        '`"1 hour"` → `"61 minutes"`',
        '`"1 hour"` → `"1 minute"`',
        '`clicks.where(F.col("amount") > LIMIT)` → `clicks`',
        '`F.col("amount") > LIMIT` → `(F.col("amount") >= LIMIT)`',
        '`"amount"` → `"other"`',
        '`…nutes").groupBy("user", hours)` → `…nutes").groupBy(hours)`',
        '`…).groupBy("user", hours)` → `…).groupBy("user")`',
        '`…, "10 minutes").groupBy("user", …` → `…, "10 minutes").dropna(subset=["user"]).groupBy("user", …`',
        '`large.withWatermark("at", "10 minutes")` → `large`',
        '`"10 minutes"` → `"0 seconds"`',
        '`"10 minutes"` → `"11 minutes"`',
        '`"10 minutes"` → `"9 minutes"`',
        '`"10 minutes"` → `"10000 minutes"`',
        '`"10 minutes"` → `"10 seconds"`',
        '`F.sum("amount")` → `F.max("amount")`',
        '`F.sum("amount")` → `F.count("amount")`',
        '`"amount"` → `"other"`',
    ]


def changes_of(folder: Path, line: str) -> list[str]:
    return changes(folder, f"from pyspark.sql import functions as F\n\n\ndef job(a, b, c=None):\n    return {line}\n")


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ('a.join(b, "user", "left_outer")', ['"inner"']),
        ('a.join(b, "user", how="inner")', ['"leftOuter"']),
        (
            'a.join(b, F.expr("x > y + INTERVAL 5 MINUTES"))',
            [
                '"x >= y + INTERVAL 5 MINUTES"',
                '"x > y - INTERVAL 5 MINUTES"',
                '"x > y + INTERVAL 6 MINUTES"',
                '"x > y + INTERVAL 4 MINUTES"',
                '"x > y + INTERVAL 5000 MINUTES"',
            ],
        ),
        (
            'a.where("x BETWEEN y AND y + INTERVAL 2 HOURS")',
            [
                '"(x > y AND x <= y + INTERVAL 2 HOURS)"',
                '"(x >= y AND x < y + INTERVAL 2 HOURS)"',
                '"x >= y"',
                '"x <= y + INTERVAL 2 HOURS"',
            ],
        ),
        (
            "a.where(\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\")",
            [
                "\"kind = 'paid' AND z IS NOT NULL\"",
                '"x >= 5 AND z IS NOT NULL"',
                "\"x > 5 AND kind = 'paid' AND z IS NOT NULL\"",
                "\"x >= 6 AND kind = 'paid' AND z IS NOT NULL\"",
                "\"x >= 5 AND kind = 'paid?' AND z IS NOT NULL\"",
                "\"x >= 5 AND kind <> 'paid' AND z IS NOT NULL\"",
                "\"x >= 5 AND kind = 'paid' AND z IS NULL\"",
            ],
        ),
        ('a.where("NOT returned")', ['"returned"']),
        ('a.join(b, "k")', ['a.join(b, "k", how="leftOuter")']),
        ('a.join(b, ["k", "l"], "inner")', ['["l"]', '["k"]']),
        ("(a > b) & c", ["(a > b)", "c"]),
        ("a <= b <= c", ["(a < b <= c)", "(a <= b < c)"]),
        ("1 if a else b", ["1", "b"]),
        ("F.when(a, b).otherwise(c)", ["F.when(~(a), b)", "F.when(a, b)"]),
        ('F.lit("paid")', ['"paid?"']),
        ('a.cast("bigint")', ["a", '"int"']),
        ('a.cast("decimal(8,2)")', ['"decimal(8,1)"']),
        ('F.window(a, "1 day", "1 hour")', ['F.window(a, "1 day")']),
        ("F.timestamp_millis(a)", ["F.timestamp_micros(a)"]),
        ('F.count("*")', ['"at"']),
        ('a.dropDuplicates(["user"])', ["a.dropDuplicates()", '["user", "at"]', '["user", "other"]']),
        ('a.select("amount", "user")', ['functions.col("other").alias("amount")']),
        ('"Europe/Berlin"', ['"UTC"']),
        ("max(a, b)", ["min(a, b)"]),
        ('a.where("b").dropDuplicates(["c"])', ['a.dropDuplicates(["c"]).where("b")']),
        ("F.coalesce(a, b)", ["a"]),
        ("a.isNotNull()", ["a.isNull()"]),
        ("(a + b) | ~c", ["((a + b) & ~c)", "(a - b)", "c"]),
        ('a == "paid"', ['"paid?"', '(a != "paid")']),
        ('a == ""', ['"?"']),
        ('a == r"r"', ['r"r?"']),
        ("a[1] and not b", ["(a[1] or not b)", "b"]),
        ("a.where(True)", ["a", "False"]),
        ('a.withWatermark("at", "2 days")', ['"2 hours"']),
        ('a.where("x > y + INTERVAL 5 MINUTES")', ['"x > y + INTERVAL 5 SECONDS"']),
        ('a.groupBy("amount")', ['functions.col("other").alias("amount")']),
        ('a.groupBy("user")', ['a.dropna(subset=["user"]).groupBy("user")']),
        ('a.dropDuplicates(["amount"])', ['"other"']),
        ('a.dropDuplicates(["user", "x.y"])', ['a.dropna(subset=["user"]).dropDuplicates(["user", "x.y"])']),
        ('a.join(b, "amount", "left")', ['a.join(b.withColumnRenamed("amount", "other"), "other", "left")']),
        (
            'a.join(b if c else a, on=["user", "amount"])',
            ['a.join((b if c else a).withColumnRenamed("amount", "other"), on=["user", "other"])'],
        ),
        ('a.join(b, ["k"], "left")', ['a.dropna(subset=["k"]).join(b, ["k"], "left")']),
        ('a.join(b, F.col("k") == F.col("l"))', ['F.col("k").eqNullSafe(F.col("l"))']),
        ('a.drop("b")', ["a"]),
        ('a.select("user", "amount")', ["a"]),
        (
            'a.withWatermark("at", "1 hour").dropDuplicates(["user"])',
            ['a.dropDuplicates(["user"]).withWatermark("at", "1 hour")'],
        ),
        ('a.orderBy(F.col("b").desc())', ['F.col("b").asc()']),
        ('a.orderBy(F.desc("b"))', ['F.asc("b")']),
        ('a.writeStream.outputMode("complete").start()', ['"update"']),
        ('a.where("b").write.mode("append").saveAsTable("c")', ['"overwrite"', 'a.where("b").distinct()']),
        ('a.select("b", "c").collect()', ['a.select("c", "b")', 'a.select("b", "c").distinct()']),
        ('a.write.parquet("b")', ["a.distinct()"]),
        ('a.select("b", "c").write.insertInto("t")', ['a.select("c", "b")']),
        (
            'F.from_json(a, "user string, amount bigint, price decimal(8,2) NOT NULL")',
            [
                '"user string, amount int, price decimal(8,2) NOT NULL"',
                '"user string, amount bigint, price decimal(8,1) NOT NULL"',
            ],
        ),
    ],
)
def test_each_kind_of_change(tmp_path: Path, line: str, made: list[str]) -> None:
    assert {*made} <= {change.rpartition("→ `")[2][:-1] for change in changes_of(tmp_path, line)}


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("from pyspark.sql.functions import sum, col as c", 'sum("amount")'),
        ("from pyspark.sql.functions import sum as total", 'total("amount")'),
        ("import pyspark.sql.functions as spark_functions", 'spark_functions.sum("amount")'),
        ("import pyspark.sql.functions", 'pyspark.sql.functions.sum("amount")'),
        ("from pyspark.sql import functions as any_name", 'any_name.sum("amount")'),
    ],
)
def test_functions_of_spark_are_known_however_they_are_imported(tmp_path: Path, imports: str, call: str) -> None:
    code = f"{imports}\n\n\ndef job(a):\n    return {call}\n"
    before, is_bare = call.rpartition("(")[0], "." not in call
    other = "functions" if is_bare else before.rpartition(".")[0]
    assert changes(tmp_path, code) == [
        f'`{call}` → `{other}.max("amount")`',
        f'`{call}` → `{other}.count("amount")`',
        '`"amount"` → `"other"`',
    ]
    made = JobSource.of(job_of(tmp_path, code, "job")).mutants([])
    assert {type(mutant.make()).__name__ for mutant in made} == {"function"}


def test_a_function_of_python_is_none_of_spark_s(tmp_path: Path) -> None:
    assert changes(tmp_path, "def job(a):\n    return sum(a) + max(a, 2)\n") == [
        "`sum(a) + max(a, 2)` → `(sum(a) - max(a, 2))`",
        "`max(a, 2)` → `min(a, 2)`",
        "`2` → `3`",
    ]


def test_a_bare_function_s_mutant_runs_with_spark_s_own(tmp_path: Path) -> None:
    from pyspark.sql import functions

    code = "from pyspark.sql.functions import sum\n\n\ndef job():\n    return sum\n"
    source = JobSource.of(job_of(tmp_path, code, "job"))
    assert source.run(code.replace("return sum", "return functions.max"))() is functions.max


def test_statements_and_conditions_of_a_processor_are_changed(tmp_path: Path) -> None:
    code = '''
    class Counting:
        """Counts."""

        def count(self, rows: "list[int]" = None) -> int:
            if self.state.exists():
                self.total += len(rows)
            self.state.clear()
            return self.total


    def job(clicks):
        return Counting()
    '''
    assert changes(tmp_path, code) == [
        "`self.state.exists()` → `(not (self.state.exists()))`",
        "`self.total += len(rows)` → `self.total -= len(rows)`",
        "`self.state.clear()` → `pass`",
    ]


def test_each_mutant_runs_as_a_module_of_its_own_and_no_file_is_written(tmp_path: Path) -> None:
    job = job_of(tmp_path, "LIMIT = 100\n\n\ndef job():\n    return LIMIT\n", "job")
    (mutant,) = JobSource.of(job).mutants([])
    assert (job(), mutant.make()(), job()) == (100, 101, 100)
    assert (tmp_path / "job_under_test.py").read_text().startswith("LIMIT = 100\n")
    assert str(mutant) == "job_under_test.py:1: `100` → `101`"


def test_a_function_without_a_source_of_its_own_is_refused() -> None:
    def inner(clicks: Any) -> Any:
        return clicks

    for job in (inner, lambda clicks: clicks, len):
        with pytest.raises(BadInput, match="can't be mutated: it must be a function or a method that a module"):
            JobSource.of(job)


def test_a_step_in_parentheses_is_left_out_with_its_lines_kept(tmp_path: Path) -> None:
    code = "def job(a):\n    return (\n        a.table\n        .where('b > 1')\n        .distinct()\n    )\n"
    source = JobSource.of(job_of(tmp_path, code, "job"))
    assert all(callable(mutant.make()) for mutant in source.mutants([]))


def test_a_script_is_changed_in_memory_without_the_lines_that_change_no_result(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        'clicks = spark.readStream.option("subscribe", "clicks").load()\n'
        'query = clicks.where("amount > 100").writeStream.option("checkpointLocation", "x").start()\n'
        "query.awaitTermination()\n"
    )
    source = JobSource.of_script(Script(path, reads={"clicks": CLICKS}))
    mutants = source.mutants([])
    assert [str(mutant).partition(": ")[2] for mutant in mutants] == [
        '`clicks.where("amount > 100")` → `clicks`',
        '`"amount > 100"` → `"amount >= 100"`',
        '`"amount > 100"` → `"amount > 101"`',
    ]
    made = mutants[1].make()
    assert isinstance(made, Script)
    assert '"amount >= 100"' in (made.text or "")
    assert '"amount > 100"' in path.read_text()


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ('a.select("b", "c").groupBy("b")', '("c", "b")'),  # by name
        ('a.select("b", F.col("c").alias("d"))', "→ `a`"),  # which later steps name
        ('a.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["user"])', '(["user"]).withWatermark'),
        ('F.col("k") == 5', "eqNullSafe"),
        ('f("the user string, amount bigint")', "amount int"),  # no schema
        ('f("deleted from the table where it was")', '→ `"deleted from the table"`'),  # no statement
        ('f("select a number where it is 5")', 'number"`'),  # none either
        ('a.open("b").write("c")', "distinct"),  # a file
        ('a.join(b, ["amount", "other"])', "withColumnRenamed"),  # both are keys already
        ('a.withWatermark("at", "0 seconds")', '→ `"0 seconds"`'),
        ("zip(a, b, strict=True)", "False"),  # it changes no result
        ('F.count("amount")', '→ `"at"`'),  # as of all rows
        ('a.execute("MERGE INTO t USING s ON x > y WHEN MATCHED THEN DELETE")', 'x > y "'),  # nothing to do
        ('a.format("append")', "overwrite"),  # a format, and no mode
        ('F.window("at", "1 second")', '500 ms"'),  # no interval of Spark
        ('a.execute("UPDATE t SET b = c")', "<>"),  # an assignment
        ('a.execute("CREATE OR REPLACE TABLE t (b INT)")', "AND"),
    ],
)
def test_no_change_is_made_where_it_would_be_none_or_nonsense(tmp_path: Path, line: str, absent: str) -> None:
    assert not [change for change in changes_of(tmp_path, line) if absent in change]


def texts(folder: Path, text: str) -> list[str]:
    """Return the values that the mutants give to a text, a constant of its module."""
    code = f"SQL = {text!r}\n\n\ndef job(a):\n    return a.run(SQL)\n"
    return [mutant.after.strip("'") for mutant in JobSource.of(job_of(folder, code, "job")).mutants([])]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("DELETE FROM t WHERE a = ?", ["DELETE FROM t", "DELETE FROM t WHERE a <> ?"]),
        ("DELETE FROM t WHERE a = ? AND b = ?", ["DELETE FROM t WHERE b = ?", "DELETE FROM t WHERE a = ?"]),
        ("UPDATE t SET a = 1 WHERE b", ["UPDATE t SET a = 1", "UPDATE t SET a = 2 WHERE b"]),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", ["CREATE TABLE t (a INT)"]),
        ("INSERT OR IGNORE INTO t VALUES (?)", ["INSERT INTO t VALUES (?)"]),
        (
            "INSERT INTO t (a, b, c) VALUES (?, ?, ?)",
            ["INSERT INTO t (b, a, c) VALUES (?, ?, ?)", "INSERT INTO t (a, c, b) VALUES (?, ?, ?)"],
        ),
        (
            "INSERT INTO t VALUES (?) ON CONFLICT (a) DO UPDATE SET b = 1",
            ["INSERT INTO t VALUES (?)", "INSERT INTO t VALUES (?) ON CONFLICT (a) DO NOTHING"],
        ),
        ("SELECT DISTINCT a FROM t", ["SELECT a FROM t"]),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", ["SELECT a FROM t UNION SELECT a FROM u"]),
        ("SELECT a FROM t UNION SELECT a FROM u", ["SELECT a FROM t UNION ALL SELECT a FROM u"]),
        ("SELECT * FROM t LEFT JOIN u ON a", ["SELECT * FROM t INNER JOIN u ON a"]),
        ("SELECT * FROM t JOIN u ON a", ["SELECT * FROM t LEFT JOIN u ON a"]),
        (
            "SELECT sum(a) FROM t WHERE b GROUP BY c",
            ["SELECT MAX(a) FROM t WHERE b GROUP BY c", "SELECT sum(a) FROM t GROUP BY c"],
        ),
        ("SELECT coalesce(a, 0) FROM t", ["SELECT a FROM t"]),
        ("SELECT a FROM t ORDER BY a DESC", ["SELECT a FROM t ORDER BY a ASC"]),
        (
            "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN DELETE WHEN NOT MATCHED THEN INSERT *",
            [
                "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
                "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT *",
                "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN DELETE ",
                "MERGE INTO t USING s ON t.a <> s.a WHEN MATCHED AND s.b THEN DELETE WHEN NOT MATCHED THEN INSERT *",
            ],
        ),
    ],
)
def test_statements_of_sql_are_changed_wherever_they_stand(tmp_path: Path, text: str, made: list[str]) -> None:
    assert {*made} <= {*texts(tmp_path, text)}


def test_an_f_string_keeps_its_expressions(tmp_path: Path) -> None:
    code = 'def job(a, table, n):\n    return a.sql(f"DELETE FROM {table} WHERE batch = {n + 1} AND a > 5")\n'
    made = [mutant.after for mutant in JobSource.of(job_of(tmp_path, code, "job")).mutants([])]
    assert made == [
        'f"DELETE FROM {table}"',
        'f"DELETE FROM {table} WHERE a > 5"',
        'f"DELETE FROM {table} WHERE batch = {n + 1}"',
        'f"DELETE FROM {table} WHERE batch = {n + 1} AND a >= 5"',
        'f"DELETE FROM {table} WHERE batch <> {n + 1} AND a > 5"',
        'f"DELETE FROM {table} WHERE batch = {n + 1} AND a > 6"',
        "(n - 1)",
        "2",
    ]


def test_guards_transactions_and_the_order_of_statements_are_changed(tmp_path: Path) -> None:
    code = """
    def job(database, lock, rows):
        with database.open() as connection, connection:
            connection.execute("a")
            connection.insert(rows)
        with lock:
            total = database.total.get()
            database.total.clear()
        for row in rows:
            if row.seen:
                continue
            if row.bad:
                raise ValueError
            if row.last:
                break
            else:
                row.first()
            number = row.next()
            row.write(number)
        return total
    """
    assert changes(tmp_path, code) == [
        "`with database.open() as connection, connection: ...` → `with database.open() as connection: ...`",
        '`connection.execute("a"); connection.insert(rows)` → `connection.insert(rows); connection.execute("a")`',
        '`connection.execute("a")` → `pass`',
        "`connection.insert(rows)` → `pass`",
        "`with lock: ...` → `if True: ...`",
        "`total = database.total.get(); database.total.clear()` → "
        "`database.total.clear(); total = database.total.get()`",
        "`database.total.clear()` → `pass`",
        "`row.seen` → `(not (row.seen))`",
        "`if row.seen: ...` → `pass`",
        "`row.bad` → `(not (row.bad))`",
        "`row.last` → `(not (row.last))`",
        "`row.first()` → `pass`",
        "`row.write(number)` → `pass`",
    ]
    for mutant in JobSource.of(job_of(tmp_path, code, "job")).mutants([]):
        assert callable(mutant.make())


def test_a_number_is_exchanged_for_another_if_no_column_has_its_type(tmp_path: Path) -> None:
    functions = "F.max('big'), F.max('small'), F.max('on'), F.max('at')"
    code = f"from pyspark.sql import functions as F\n\n\ndef job(a):\n    return {functions}\n"
    (given,) = resolve_all([Input("big bigint, small int, tiny int, on boolean, at timestamp", time=False)])
    made = list(JobSource.of(job_of(tmp_path, code, "job")).mutants([given.source]))
    exchanged = {(mutant.before, mutant.after) for mutant in made if mutant.kind == "column"}
    assert exchanged == {("'big'", "'small'"), ("'small'", "'tiny'")}  # and "at" for no column that the job isn't given


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'a'", "a"),
        ("b'a'", None),
        ("f'a {b} c'", "a __filled_1__ c"),
        ("rf'a {b}'", None),
        (r"f'a\\n {b}'", None),
        ("f'a {{b'", None),
        ("f'a }} {b}'", None),
        ("3", None),
    ],
)
def test_the_text_of_a_string_is_read_where_it_can_be_written_again(code: str, text: str | None) -> None:
    assert text_of(cst.parse_expression(code)) == text


BODY = """
def job(a, b, c=None):
    with a, b:
        c.d()
    if -c:
        c = 3
    if not c:
        c = 4
    if c > 5:
        c = 6
    return a
"""


def test_each_thing_that_a_with_enters_is_left_out_and_a_condition_is_negated_unless_it_is_changed_by_itself(
    tmp_path: Path,
) -> None:
    made = changes(tmp_path, BODY, "job")
    of_with = [one for one in made if "with" in one]
    assert of_with == ["`with a, b: ...` → `with b: ...`", "`with a, b: ...` → `with a: ...`"]
    assert [one for one in made if "(not " in one or "not (" in one] == ["`-c` → `(not (-c))`"]


def test_a_join_without_columns_has_no_other_kind(tmp_path: Path) -> None:
    assert not any("leftOuter" in one for one in changes_of(tmp_path, "a.join(b)"))
    assert any("leftOuter" in one for one in changes_of(tmp_path, 'a.join(b, "user")'))


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("a + b", {"arithmetic"}),
        ("a & b", {"condition"}),
        ("a | b", {"condition"}),
        ("a and b", {"condition"}),
        ("a < b", {"comparison"}),
        ("b == 'x'", {"comparison", "value"}),
        ("'x' == b", {"comparison", "value"}),
        ("F.when()", set()),
    ],
)
def test_a_change_of_an_expression_is_of_its_kind(line: str, kinds: set[str], tmp_path: Path) -> None:
    code = f"from pyspark.sql import functions as F\n\n\ndef job(a, b, c=None):\n    return {line}\n"
    sources = [given.source for given in resolve_all([CLICKS], 0)]
    assert {mutant.kind for mutant in JobSource.of(job_of(tmp_path, code, "job")).mutants(sources)} == kinds


def test_a_join_is_not_made_by_the_same_column_twice(tmp_path: Path) -> None:
    made = changes_of(tmp_path, 'a.join(b, ["amount", "other"])')
    assert not any('"other", "other"' in one or '"amount", "amount"' in one for one in made)
    assert any('withColumnRenamed("amount", "other")' in one for one in changes_of(tmp_path, 'a.join(b, ["amount"])'))


def test_a_join_is_made_by_one_of_several_columns_of_a_type(tmp_path: Path) -> None:
    (given,) = resolve_all([Input("user string, at timestamp, a int, b int, c int", key="user", name="clicks")])
    job = job_of(tmp_path, 'def job(x, y):\n    return x.join(y, ["a"])\n', "job")
    renamed = [one for one in JobSource.of(job).mutants([given.source]) if "withColumnRenamed" in str(one)]
    assert len(renamed) == 1


def test_a_document_and_bytes_are_no_durations(tmp_path: Path) -> None:
    code = "def job(a, b, c=None):\n    '10 minutes'\n    return b'1 hour', {}\n"
    assert changes(tmp_path, code.format("c")) == []
    assert '`"2 days"` → `"3 days"`' in changes(tmp_path, code.format('"2 days"'))


@pytest.mark.parametrize("call", ["groupBy", "dropDuplicates", "select"])
@pytest.mark.parametrize("listed", [True, False])
def test_each_of_several_columns_is_left_out(call: str, listed: bool, tmp_path: Path) -> None:
    def of(*names: str) -> str:
        named = ", ".join(f'"{name}"' for name in names)
        return f"a.{call}([{named}])" if listed else f"a.{call}({named})"

    for names in (("k", "l"), ("k", "l", "m")):
        made = changes_of(tmp_path, of(*names))
        wanted = [f"`{of(*names)}` → `{of(*(one for one in names if one != left))}`" for left in names]
        assert [one for one in made if one in wanted] == wanted
    assert not any("[]" in one for one in changes_of(tmp_path, of("k")))


def test_a_constant_with_a_type_is_changed_where_the_job_uses_it(tmp_path: Path) -> None:
    typed = TOTALS.replace("LIMIT =", "LIMIT: int =").replace("UNUSED =", "UNUSED: int =")
    assert changes(tmp_path, typed, "totals") == changes(tmp_path, TOTALS, "totals")


@pytest.mark.parametrize("interval", ["INTERVAL '5 minutes'", "interval '5 minutes'", "Interval  '5 minutes'"])
def test_the_text_of_an_interval_is_no_value(interval: str) -> None:
    made = [text for text, kind in other_sql(f"x > y - {interval} AND kind = 'a'") if kind == "value"]
    assert made == [f"x > y - {interval} AND kind = 'a?'"]
