"""Measures how much cheaper a cohort (many histories in one query) is than one query per history.

The time of the operator, or of Spark's own operator, includes packing and unpacking, not drawing and the reference.
"""

from __future__ import annotations

from functools import partial

from streamproof.properties.generators.cohorts import Cohort, cohorts_of, pack, unpack
from streamproof.properties.generators.draws import draw_histories
from streamproof.properties.witnesses.spark.decode import entries_of
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.properties.witnesses.spark.session import spark_session
from streamproof.properties.witnesses.spark.witness import NATIVE, SPARK, binding_of
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import Entry

from ..figures import Figure, Setting, Target, figure, ratio, seconds
from .profiles import PROFILES


def run(setting: Setting) -> list[Figure]:
    """Measure single histories and the cohort in turn, after a warm-up, in one Spark session."""
    count, rounds = setting.size(5000, 300), setting.times()
    update, native = (_cohort(name, count) for name in ("update", "native"))
    native_large = _cohort("native", 4 * count)
    warming, a_round = setting.size(2, 1), setting.size(2, 1)
    singles = [cohorts_of([history])[0][0] for history in update.histories[: warming + rounds * a_round]]

    setting.progress(f"warming up: {warming} single histories, a cohort on either operator")
    for single in singles[:warming]:
        SPARK.run(single)
    if not setting.small:
        SPARK.run(update)
        NATIVE.run(native)
    taken: dict[str, list[float]] = {"single": [], "cohort": [], "stepwise": [], "large": [], "availableNow": []}
    for number in range(rounds):
        setting.progress(f"round {number + 1} of {rounds}: {a_round} single histories, {count:,} in a cohort")
        for single in singles[warming + number * a_round : warming + (number + 1) * a_round]:
            taken["single"].append(seconds(lambda single=single: SPARK.run(single)))  # type: ignore[misc]
        taken["cohort"].append(seconds(lambda: SPARK.run(update)))
        taken["stepwise"].append(seconds(lambda: NATIVE.run(native)))
        taken["large"].append(seconds(lambda: NATIVE.run(native_large)))
        taken["availableNow"].append(seconds(lambda: _native_available_now(native)))

    each = f"{PROFILES['update'].arrivals} arrivals in {len(update.schedule)} batches"
    whole = f"{count:,} histories of {each}"
    sizes = {"single": 1, "large": 4 * count}
    rates = {name: [sizes.get(name, count) / run for run in runs] for name, runs in taken.items()}
    one = figure("stateful operator, one query a history", "histories/s", rates["single"], f"1 history of {each}")
    many = figure("stateful operator, cohort", "histories/s", rates["cohort"], whole, Target("at least", 400, aim=True))
    return [
        figure("stateful operator, one query", "seconds", taken["single"], f"1 history of {each}"),
        figure("stateful operator, the cohort's query", "seconds", taken["cohort"], whole),
        one,
        many,
        ratio("cohort over one query a history", many, one, Target("at least", 1000)),
        figure(
            "native operator, cohort, stepwise (as checks run it)",
            "histories/s",
            rates["stepwise"],
            whole,
            Target("at least", 2000, aim=True),
        ),
        figure(
            "native operator, cohort of four times as many, stepwise",
            "histories/s",
            rates["large"],
            f"{4 * count:,} histories of {each}",
            Target("at least", 2000, aim=True),
        ),
        figure(
            "native operator, cohort, availableNow (late rows may be taken)",
            "histories/s",
            rates["availableNow"],
            whole,
            Target("at least", 2000, aim=True),
        ),
    ]


def _cohort(profile: str, count: int) -> Cohort:
    (cohort, _), *others = cohorts_of(list(draw_histories(PROFILES[profile], count, seed=0)))
    assert not others
    return cohort


def _native_available_now(cohort: Cohort) -> list[list[Entry]]:
    definition, binding = operator_named(cohort.operator).declare(cohort.options), binding_of(cohort.operator)
    tables = pack(cohort, binding.fields(definition, [one for history in cohort.histories for one in history.records]))
    output = run_stream(spark_session(), tables, NATIVE.builder(cohort.operator, cohort.options), stepwise=False)
    return unpack(cohort, entries_of(output, partial(binding.decode, definition), binding.keys))
