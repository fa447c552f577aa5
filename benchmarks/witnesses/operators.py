"""Measures how many histories per second each operator of `spark_impl` runs: many in a query, and one in a query."""

from __future__ import annotations

from streamproof.properties.generators.cohorts import one_cohort
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.registration.registration import registered
from streamproof.properties.witnesses.spark.witness import SPARK

from ..figures import Figure, Setting, Target, figure, ratio, seconds

PROFILES = {name: registration.profiles for name, registration in registered().items()}

LEAST = {"foreign_key_join": 100}
"""The target of operators in stages (histories/s), which cost more than operators of one stage."""
SINGLES = 2


def run(setting: Setting) -> list[Figure]:
    """Measure each operator's first definition, one after the other, each after a small cohort as warm-up."""
    count, rounds = setting.size(2000, 100), setting.times(2)
    figures = []
    for operator in setting.among(tuple(registered())):
        name, options = next(iter(PROFILES[operator].items()))
        profile = HistorySettings(operator, options, SCHEDULE)
        cohort = one_cohort(list(draw_histories(profile, count, seed=0)))
        singles = [one_cohort([history]) for history in cohort.histories[: setting.size(SINGLES, 1)]]
        setting.progress(f"{operator}: {count:,} histories, {rounds} rounds; {len(singles)} histories alone")
        SPARK.run(one_cohort(list(draw_histories(profile, 50, seed=1))))
        rates = [count / seconds(lambda cohort=cohort: SPARK.run(cohort)) for _ in range(rounds)]  # type: ignore[misc]
        alone = [1 / seconds(lambda single=single: SPARK.run(single)) for single in singles]  # type: ignore[misc]
        target = Target("at least", LEAST.get(operator, 300), aim=True)
        each = f"{profile.arrivals} arrivals, {len(SCHEDULE)} batches"
        many = figure(f"{operator} on Spark ({name})", "histories/s", rates, f"{count:,} histories of {each}", target)
        one = figure(f"{operator}, one query a history", "histories/s", alone, f"1 history of {each}")
        figures += [many, one, ratio(f"{operator}: the cohort over one query a history", many, one)]
    return figures
