"""Measures how many histories a second each operator of `spark_impl` carries, in a cohort and in one query each."""

from __future__ import annotations

from streamproof.properties.cohorts import one_cohort
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import ON_SPARK, run_cohort

from .figures import Figure, Setting, Target, figure, ratio, seconds

LEAST = {"foreign_key_join": 100}
"""What the stages of a join cost more than one stage does."""
SINGLES = 2


def run(setting: Setting) -> list[Figure]:
    """Measure each operator's first definition, one after the other, each warmed up by a small cohort."""
    count, rounds = setting.size(2000, 100), setting.times(2)
    figures = []
    for operator in setting.among(ON_SPARK):
        name, options = next(iter(SHAPES[operator].items()))
        shape = Shape(options, SCHEDULE, operator=operator)
        cohort = one_cohort(list(draw_histories(shape, count, seed=0)))
        singles = [one_cohort([history]) for history in cohort.histories[: setting.size(SINGLES, 1)]]
        setting.progress(f"{operator}: {count:,} histories, {rounds} rounds; {len(singles)} histories alone")
        run_cohort(one_cohort(list(draw_histories(shape, 50, seed=1))))
        rates = [count / seconds(lambda cohort=cohort: run_cohort(cohort)) for _ in range(rounds)]  # type: ignore[misc]
        alone = [1 / seconds(lambda single=single: run_cohort(single)) for single in singles]  # type: ignore[misc]
        target = Target("at least", LEAST.get(operator, 300), aim=True)
        each = f"{shape.arrivals} arrivals, {len(SCHEDULE)} batches"
        many = figure(f"{operator} on Spark ({name})", "histories/s", rates, f"{count:,} histories of {each}", target)
        one = figure(f"{operator}, one query a history", "histories/s", alone, f"1 history of {each}")
        figures += [many, one, ratio(f"{operator}: the cohort over one query a history", many, one)]
    return figures
