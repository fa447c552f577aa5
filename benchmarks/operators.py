"""Measures how many histories a second each operator of `spark_impl` carries in a cohort."""

from __future__ import annotations

from streamproof.properties.cohorts import one_cohort
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import ON_SPARK, run_cohort

from .figures import Figure, Setting, Target, figure, seconds

LEAST = {"foreign_key_join": 100}
"""What the stages of a join cost more than one stage does."""


def run(setting: Setting) -> list[Figure]:
    """Measure each operator's first definition, one after the other, each warmed up by a small cohort."""
    count, rounds = setting.size(2000, 100), setting.times(2)
    figures = []
    for operator in ON_SPARK:
        name, options = next(iter(SHAPES[operator].items()))
        shape = Shape(options, SCHEDULE, operator=operator)
        cohort = one_cohort(list(draw_histories(shape, count, seed=0)))
        setting.progress(f"{operator}: {count:,} histories, {rounds} rounds")
        run_cohort(one_cohort(list(draw_histories(shape, 50, seed=1))))
        rates = [count / seconds(lambda cohort=cohort: run_cohort(cohort)) for _ in range(rounds)]  # type: ignore[misc]
        target = Target("at least", LEAST.get(operator, 300), aim=True)
        sizes = f"{count:,} histories of {shape.arrivals} arrivals, {len(SCHEDULE)} batches"
        figures.append(figure(f"{operator} on Spark ({name})", "histories/s", rates, sizes, target))
    return figures
