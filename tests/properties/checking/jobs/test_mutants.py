"""Mutants of users' jobs: what is changed, and which of them a test kills."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamproof import BadInput, Input, Script, as_batch, check_job, sql
from streamproof.properties.checking.jobs import mutants as module
from streamproof.properties.generators.columns.inputs import resolve_all
from streamproof.properties.witnesses.job.mutations.source import JobSource

TOTALS = '''
from pyspark.sql import functions as F

LIMIT = 100
UNUSED = 7


def totals(clicks):
    """Totals by the "1 hour"."""
    hours = F.window("at", "1 hour")
    large = clicks.where(F.col("amount") > LIMIT)
    groups = large.withWatermark("at", "10 minutes").groupBy("user", hours)
    return groups.agg(F.sum("amount").alias("total"))


def other(clicks):
    return clicks.where("amount > 3")
'''
CLICKS = Input(
    "user string, at timestamp, amount int, other int", key="user", name="clicks", values={"amount": [1, 100, 101, 200]}
)

BY_HOUR = """
    SELECT user, time_bucket(INTERVAL 1 HOUR, clicks."at") AS start, start + INTERVAL 1 HOUR AS "end",
        sum(amount) AS total FROM clicks WHERE amount > 100 GROUP BY ALL
"""


def job_of(folder: Path, code: str, name: str) -> Callable[..., Any]:
    path = folder / "job_under_test.py"
    path.write_text(textwrap.dedent(code))
    spec = importlib.util.spec_from_file_location("job_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    job: Callable[..., Any] = getattr(loaded, name)
    return job


def changes(folder: Path, code: str, name: str = "job") -> list[str]:
    sources = [given.source for given in resolve_all([CLICKS], 0)]
    return [str(mutant).partition(": ")[2] for mutant in JobSource.of(job_of(folder, code, name)).mutants(sources)]


def test_what_a_job_uses_in_its_module_is_changed_and_nothing_else(tmp_path: Path) -> None:
    assert changes(tmp_path, TOTALS, "totals") == [
        "`100` → `101`",
        '`F.window("at", "1 hour")` → `F.window("at", "1 hour", "30 minutes")`',
        '`F.window("at", "1 hour")` → `F.window("at", "1 hour", "1 hour", "30 minutes")`',
        '`"1 hour"` → `"2 hour"`',
        '`"1 hour"` → `"1000 hour"`',
        '`"1 hour"` → `"59 minutes"`',
        '`clicks.where(F.col("amount") > LIMIT)` → `clicks`',
        '`F.col("amount") > LIMIT` → `(F.col("amount") >= LIMIT)`',
        '`"amount"` → `"other"`',
        '`…nutes").groupBy("user", hours)` → `…nutes").groupBy(hours)`',
        '`…).groupBy("user", hours)` → `…).groupBy("user")`',
        '`large.withWatermark("at", "10 minutes")` → `large`',
        '`"10 minutes"` → `"11 minutes"`',
        '`"10 minutes"` → `"9 minutes"`',
        '`"10 minutes"` → `"10000 minutes"`',
        '`F.sum("amount")` → `F.max("amount")`',
        '`F.sum("amount")` → `F.count("amount")`',
        '`"amount"` → `"other"`',
    ]


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ('a.join(b, "user", "left_outer")', ['`"left_outer"` → `"inner"`']),
        ('a.join(b, "user", how="inner")', ['`"inner"` → `"leftOuter"`']),
        (
            'a.join(b, F.expr("x > y + INTERVAL 5 MINUTES"))',
            [
                '`"x > y + INTERVAL 5 MINUTES"` → `"x >= y + INTERVAL 5 MINUTES"`',
                '`"x > y + INTERVAL 5 MINUTES"` → `"x > y - INTERVAL 5 MINUTES"`',
                '`"x > y + INTERVAL 5 MINUTES"` → `"x > y + INTERVAL 6 MINUTES"`',
                '`"x > y + INTERVAL 5 MINUTES"` → `"x > y + INTERVAL 4 MINUTES"`',
                '`"x > y + INTERVAL 5 MINUTES"` → `"x > y + INTERVAL 5000 MINUTES"`',
            ],
        ),
        (
            'a.where("x BETWEEN y AND y + INTERVAL 2 HOURS")',
            [
                '`"x BETWEEN y AND y + INTERVAL 2 HOURS"` → `"(x > y AND x <= y + INTERVAL 2 HOURS)"`',
                '`"x BETWEEN y AND y + INTERVAL 2 HOURS"` → `"(x >= y AND x < y + INTERVAL 2 HOURS)"`',
                '`"x BETWEEN y AND y + INTERVAL 2 HOURS"` → `"x >= y"`',
                '`"x BETWEEN y AND y + INTERVAL 2 HOURS"` → `"x <= y + INTERVAL 2 HOURS"`',
            ],
        ),
        (
            "a.where(\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\")",
            [
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"kind = 'paid' AND z IS NOT NULL\"`",
                '`"x >= 5 AND kind = \'paid\' AND z IS NOT NULL"` → `"x >= 5 AND z IS NOT NULL"`',
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"x > 5 AND kind = 'paid' AND z IS NOT NULL\"`",
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"x >= 6 AND kind = 'paid' AND z IS NOT NULL\"`",
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"x >= 5 AND kind = 'paid?' AND z IS NOT NULL\"`",
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"x >= 5 AND kind <> 'paid' AND z IS NOT NULL\"`",
                "`\"x >= 5 AND kind = 'paid' AND z IS NOT NULL\"` → `\"x >= 5 AND kind = 'paid' AND z IS NULL\"`",
            ],
        ),
        ('a.where("NOT returned")', ['`"NOT returned"` → `"returned"`']),
        ('a.join(b, "k")', ['`a.join(b, "k")` → `a.join(b, "k", how="leftOuter")`']),
        ('a.join(b, ["k", "l"], "inner")', ['`["k", "l"]` → `["l"]`', '`["k", "l"]` → `["k"]`']),
        ("(a > b) & c", ["`(a > b) & c` → `(a > b)`", "`(a > b) & c` → `c`"]),
        ("a <= b <= c", ["`a <= b <= c` → `(a < b <= c)`", "`a <= b <= c` → `(a <= b < c)`"]),
        ("1 if a else b", ["`1 if a else b` → `1`", "`1 if a else b` → `b`"]),
        (
            "F.when(a, b).otherwise(c)",
            ["`F.when(a, b)` → `F.when(~(a), b)`", "`F.when(a, b).otherwise(c)` → `F.when(a, b)`"],
        ),
        ('F.lit("paid")', ['`"paid"` → `"paid?"`']),
        ('a.cast("bigint")', ['`a.cast("bigint")` → `a`', '`"bigint"` → `"int"`']),
        ('a.cast("decimal(8,2)")', ['`"decimal(8,2)"` → `"decimal(8,1)"`']),
        ('F.window(a, "1 day", "1 hour")', ['`F.window(a, "1 day", "1 hour")` → `F.window(a, "1 day")`']),
        ("F.timestamp_millis(a)", ["`F.timestamp_millis(a)` → `F.timestamp_micros(a)`"]),
        ('F.count("*")', ['`"*"` → `"at"`']),
        (
            'a.dropDuplicates(["user"])',
            [
                '`a.dropDuplicates(["user"])` → `a.dropDuplicates()`',
                '`["user"]` → `["user", "at"]`',
                '`["user"]` → `["user", "other"]`',
            ],
        ),
        ('a.select("amount", "user")', ['`"amount"` → `functions.col("other").alias("amount")`']),
        ('"Europe/Berlin"', ['`"Europe/Berlin"` → `"UTC"`']),
        ("max(a, b)", ["`max(a, b)` → `min(a, b)`"]),
        (
            'a.where("b").dropDuplicates(["c"])',
            ['`a.where("b").dropDuplicates(["c"])` → `a.dropDuplicates(["c"]).where("b")`'],
        ),
        ("F.coalesce(a, b)", ["`F.coalesce(a, b)` → `a`"]),
        ("a.isNotNull()", ["`a.isNotNull()` → `a.isNull()`"]),
        ("(a + b) | ~c", ["`(a + b) | ~c` → `((a + b) & ~c)`", "`(a + b)` → `(a - b)`", "`~c` → `c`"]),
        ('a == "paid"', ['`"paid"` → `"paid?"`', '`a == "paid"` → `(a != "paid")`']),
        ('a == ""', ['`""` → `"?"`']),
        ('a == r"r"', ['`r"r"` → `r"r?"`']),
        ("a[1] and not b", ["`a[1] and not b` → `(a[1] or not b)`", "`not b` → `b`"]),
        ("a.where(True)", ["`a.where(True)` → `a`", "`True` → `False`"]),
    ],
)
def test_each_kind_of_change(tmp_path: Path, line: str, made: list[str]) -> None:
    code = f"from pyspark.sql import functions as F\n\n\ndef job(a, b, c=None):\n    return {line}\n"
    assert {*made} <= {*changes(tmp_path, code)}


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
        with pytest.raises(BadInput, match="can't be mutated: its source must be a function of a module"):
            JobSource.of(job)


@pytest.mark.spark
def test_a_module_that_can_t_run_twice_is_refused_rather_than_all_its_mutants_killed(tmp_path: Path) -> None:
    once = "import sys\n\nassert not hasattr(sys, 'ran_once')\nsys.ran_once = True\n"
    code = f"{once}\n\ndef job(clicks):\n    return clicks"
    try:
        with pytest.raises(BadInput, match="its source, run again as it is, gives another job: its module fails"):
            check_job(job_of(tmp_path, code, "job"), CLICKS, expect=as_batch(), mutants=True, histories=60)
    finally:
        vars(sys).pop("ran_once", None)


@pytest.mark.spark
@pytest.mark.exhaustive
def test_a_strong_test_kills_what_a_weak_test_lets_live(tmp_path: Path) -> None:
    job = job_of(tmp_path, TOTALS, "totals")
    weak = check_job(job, CLICKS, expect=as_batch(), mutants=True, histories=100).mutants
    assert weak is not None
    by_fate = {one.mutant.partition(": ")[2]: one.fate for one in weak.judged}
    assert by_fate['`F.sum("amount")` → `F.max("amount")`'] == "survived"
    assert by_fate['`"10 minutes"` → `"9 minutes"`'] == "survived"
    assert Counter(one.fate for one in weak.judged) == {"survived": 15, "doesn't run": 3}
    assert by_fate["`100` → `101`"] == "survived"
    assert module.ALIKE in str(weak)

    strong = check_job(
        job,
        CLICKS,
        expect=sql(BY_HOUR),
        out_of_order="10 minutes",
        mutants=True,
        histories=100,
    )
    assert strong.mutants is not None
    print(weak, strong, sep="\n")
    assert "3 don't run" in str(strong)
    alive = {one.mutant.partition(": ")[2]: one.fate for one in strong.mutants.survivors}
    assert '`F.sum("amount")` → `F.max("amount")`' not in alive
    assert '`"10 minutes"` → `"9 minutes"`' not in alive
    assert len(alive) < len(weak.survivors)
    assert Counter(one.fate for one in strong.mutants.judged)["killed"] >= 8


@pytest.mark.spark
@pytest.mark.exhaustive
def test_fates_are_those_of_queries_as_the_test_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(tmp_path, TOTALS, "totals")

    def fates() -> list[tuple[str, str]]:
        report = check_job(job, CLICKS, expect=sql(BY_HOUR), out_of_order="10 minutes", mutants=True, histories=60)
        assert report.mutants is not None
        return [(one.mutant, one.fate) for one in report.mutants.judged]

    quick = fates()
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "_quick", lambda plain: plain.options.run)
    assert quick == fates()


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


@pytest.mark.spark
def test_mutants_of_a_script_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        'clicks = spark.readStream.table("clicks")\n'
        'clicks.where("amount > 100").writeStream.toTable("large", checkpointLocation="/checkpoints/large")\n'
    )
    expected = sql("SELECT * FROM clicks WHERE amount > 100")
    report = check_job(Script(path, reads={"clicks": CLICKS}), expect=expected, mutants=True, histories=60).mutants
    assert report is not None
    fates = {one.mutant.removeprefix("script.py:2: "): one.fate for one in report.judged}
    (without,) = (mutant for mutant in fates if mutant.endswith("→ `pass`"))
    assert fates.pop(without) == "doesn't run"
    killed = (
        '`clicks.where("amount > 100")` → `clicks`',
        '`"amount > 100"` → `"amount >= 100"`',
        '`"amount > 100"` → `"amount > 101"`',
    )
    assert fates == dict.fromkeys(killed, "killed")
