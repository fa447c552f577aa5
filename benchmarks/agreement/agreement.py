"""Counts on how many of 10,000 random histories each operator on Spark disagrees with the reference.

With `--on` the benchmark instead counts false alarms, over millions of histories with random definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.changelog import Changelog
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure
from . import false_alarms

LARGEST_COHORT = 5_000
FIRST_SEED = 1
"""This seed differs from the seed of `streamproof check`, so the histories differ, too."""


def run(setting: Setting) -> list[Figure]:
    """Count disagreements operator by operator; each round draws new histories, equally many for each definition."""
    if setting.on is not None:
        return false_alarms.run(setting)
    count, rounds = setting.size(10_000, 60), setting.times(1)
    figures = []
    for operator in setting.among([*registered()]):
        profiles = registration_of(operator).profiles
        each = -(-count // len(profiles))
        runs, changes = [], 0
        for number in range(rounds):
            disagreements = 0
            for name, options in profiles.items():
                setting.progress(f"{operator}: round {number + 1} of {rounds}, {each:,} histories of {name!r}")
                found, emitted = disagreements_on(operator, options, each, FIRST_SEED + number, setting)
                if not emitted:
                    raise StreamproofError(f"{operator}, {name}: no history emitted anything, so nothing was compared")
                disagreements, changes = disagreements + found, changes + emitted
            runs.append(float(disagreements))
        sizes = (
            f"{each * len(profiles):,} histories of {len(profiles)} definitions, {changes // rounds:,} changes, drops"
        )
        figures.append(figure(f"{operator}: disagreements", "histories", runs, sizes, Target("at most", 0)))
    return figures


def disagreements_on(
    operator: str, options: Mapping[str, Any], count: int, seed: int, setting: Setting
) -> tuple[int, int]:
    """Return the number of histories on which Spark's changelog differs, and the number of changes that the reference
    emitted.

    Args:
        operator: The operator's name.
        options: Its options.
        count: The number of histories.
        seed: The seed of the draws.
        setting: The settings of the benchmark.
    """
    profile = HistorySettings(operator, options, SCHEDULE)
    histories = list(draw_histories(profile, count, seed=seed))
    broken, changes = [], 0
    for first in range(0, count, LARGEST_COHORT):
        cases = [Case(history) for history in histories[first : first + LARGEST_COHORT]]
        comparisons = Changelog().recheck(cases)
        changes += sum(len(comparison.expected[1].entries) for comparison in comparisons)
        broken += [comparison.differences[0] for comparison in comparisons if comparison.differences]
    if broken:
        setting.progress(f"{operator} differs on {len(broken)} histories; the first: {broken[0]}")
    return len(broken), changes
