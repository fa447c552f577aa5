"""Each mutant dies in ten histories of a check of the default size, by a law that it asks of Spark; in memory.

The histories are those of `streamproof check OPERATOR`. A few mutants show only under a schedule of delivery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking.mutation import LAWS, chosen
from streamproof.properties.checking.pools import plan_pools
from streamproof.properties.checking.running import cohort_run
from streamproof.properties.laws.all import asked_of
from streamproof.properties.laws.base import LawResult
from streamproof.properties.laws.runs import Pool, Sample
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.report.kills import DEFAULT_HISTORIES, MIN_KILLING
from streamproof.properties.witnesses.spark.witness import SparkWitness

SLICES = 6
"""A pool is run in so many slices: most mutants are killed often enough in the first."""


@pytest.mark.parametrize("operator", registered())
@pytest.mark.in_ci("session_windows", "table_table_join", "stream_table_join")
def test_each_mutant_of_an_operator_is_killed_in_ten_histories_of_a_check(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_in_memory(monkeypatch)
    pools = pools_of(operator)
    kills = {one.name: times_killed(one, pools) for one in chosen(operator, []) if not one.scheduled}
    assert {name: count for name, count in kills.items() if count < MIN_KILLING} == {}
    assert len(kills) > 20


def pools_of(operator: str) -> list[list[Sample]]:
    """Return the samples in the pools of a check of an operator."""
    return [[one.drawn() for one in pool] for pool in plan_pools([registration_of(operator)], DEFAULT_HISTORIES, 0)]


def times_killed(mutant: Mutant, pools: Sequence[Sequence[Sample]]) -> int:
    """Count the histories on which a mutant breaks the law that it breaks most, until they are enough."""
    broken: Counter[str] = Counter()
    for samples in (pool[start::SLICES] for start in range(SLICES) for pool in pools):
        for law, count in killed_by(mutant, samples):
            broken[law] += count
            if broken[law] >= MIN_KILLING:  # what the other laws would run again isn't run
                return broken[law]
    return max(broken.values(), default=0)


def killed_by(mutant: Mutant, samples: Sequence[Sample]) -> Iterator[tuple[str, int]]:
    """Yield the laws that a mutant breaks in samples that run together, each with its number of histories."""
    laws, _ = asked_of(registration_of(mutant.operator), LAWS)
    asked = [[law for law in laws if law.is_asked_of(sample)] for sample in samples]
    witness = SparkWitness(mutant.logic, mutant.name)
    members = [cohort_run(*each, 0, [witness]) for each in zip(samples, asked, strict=True)]
    Pool(members)
    for member, own in zip(members, asked, strict=True):
        for run in member.shares():
            for law in own:
                violations = law.judge(run, LawResult(law))
                yield law.name, len({id(one.case.history) for one in violations})
