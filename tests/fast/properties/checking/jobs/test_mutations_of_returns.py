"""Changes of the DataFrame that a job returns: rows and columns that its test should look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_jobs import CLICKS, job_of
from streamproof import Input
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.mutations.source import JobSource

NO_NULLS = Input("user string, at timestamp, amount int not null", key="user", name="clicks")


def changes_of_returns(folder: Path, body: str, *given: Input) -> list[str]:
    """Return the code that mutants have in place of what a job returns."""
    code = f"from pyspark.sql import functions as F\n\n\ndef job(clicks, views=None):\n    {body}\n"
    source, inputs = JobSource.of(job_of(folder, code, "job")), [one.source for one in resolve_all(given or [CLICKS])]
    others = {str(mutant) for mutant in source.mutants(inputs)}
    made = [mutant for mutant in source.mutants(inputs, returns_rows=True) if str(mutant) not in others]
    assert all(callable(mutant.make()) for mutant in made)
    return [mutant.after for mutant in made]


@pytest.mark.parametrize(
    ("rows", "made"),
    [
        (
            'clicks.where("amount > 5")',
            [
                'clicks.where("amount > 5").dropna()',
                'clicks.where("amount > 5").distinct()',
                'clicks.where("amount > 5").withColumn("amount", functions.col("other"))',
                'clicks.where("amount > 5").withColumn("other", functions.col("amount"))',
            ],
        ),
        (
            'clicks.select("user", F.lit(1))',
            ['clicks.select("user", F.lit(1)).dropna()', 'clicks.select("user", F.lit(1)).distinct()'],
        ),
        ('clicks.drop("other")', ['clicks.drop("other").dropna()', 'clicks.drop("other").distinct()']),
        ('clicks.groupBy("user").agg(F.count("at"))', ['clicks.groupBy("user").agg(F.count("at")).dropna()']),
        (
            "clicks if views else views",
            ["(clicks if views else views).dropna()", "(clicks if views else views).distinct()"],
        ),
        ("(\n        clicks\n        .toDF()\n    )", ["( clicks .toDF().dropna() )", "( clicks .toDF().distinct() )"]),
    ],
)
def test_rows_with_nulls_repeated_rows_and_columns_are_changed(tmp_path: Path, rows: str, made: list[str]) -> None:
    assert changes_of_returns(tmp_path, f"return {rows}") == made


def test_no_row_with_a_null_is_left_out_where_no_value_of_the_inputs_may_be_null(tmp_path: Path) -> None:
    assert changes_of_returns(tmp_path, 'return clicks.select("user")', NO_NULLS) == [
        'clicks.select("user").distinct()'
    ]


def test_only_the_return_of_the_job_itself_is_changed(tmp_path: Path) -> None:
    body = "helped = [helper(clicks) for _ in [1]]\n    def inner():\n        return clicks\n    return helped[0]"
    body += "\n\n\ndef helper(clicks):\n    return clicks"
    assert changes_of_returns(tmp_path, body) == ["helped[0].dropna()", "helped[0].distinct()"]
