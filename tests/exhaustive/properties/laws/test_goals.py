"""No goal counts as met because there are many histories: each is unmet by hundreds in which nothing happens."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.generators.cohorts import with_clock_advances
from streamproof.properties.generators.coverage import covered_by
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.options import met_by
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import LawResult
from streamproof.properties.laws.causes import played_with_causes
from streamproof.properties.laws.on_spark.columns import expected, layouts_of
from streamproof.properties.laws.on_spark.labels import labels_of
from streamproof.properties.laws.runs import CohortRun, Kind, ReferenceRun, Sample, TypedRun
from streamproof.properties.outcomes.outcomes import Outcome
from streamproof.properties.registration.registration import Registration, registered, registration_of
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.properties.witnesses.spark.answers import Answers
from streamproof.reference.core.history import History

MANY, BATCHES = 40, 4
OTHERS = ("duckdb", "kafka", "protocol", "packing")
"""Laws of other witnesses, whose goals are other laws' too."""
KINDS = (Kind.RANDOM, Kind.WITHOUT_LATE_DATA, Kind.REFERENCE, Kind.DEFINITIONS, Kind.IN_TIME)
WAYS = {
    "restart": [RunOptions(stop_after=(1, 2))],
    "replay": [RunOptions(crash_in=(Crash(1),) * 2)],
    "partitions": [RunOptions(partitions=5, state_groups=4)],
}


def dull(registration: Registration, options: Any) -> list[list[History]]:
    """Return histories without records, and histories with the same record in each batch, under a clock at rest."""
    settings = HistorySettings(registration.name, options, (0,) * BATCHES, 1)
    (drawn,) = draw_histories(settings, 1, seed=0)
    made = [with_clock_advances([records] * BATCHES, settings.schedule) for records in ([], [*drawn.records])]
    return [[History(registration.name, options, lines, "batch", f"h{at}") for at in range(MANY)] for lines in made]


def run_of(sample: Sample, more: Any = None) -> Any:
    """Return a run whose answers are right; nothing differs, whatever is run again."""
    if sample.kind in (Kind.REFERENCE, Kind.DEFINITIONS, Kind.IN_TIME):
        return ReferenceRun(sample)
    if sample.kind is Kind.COLUMNS:
        return TypedRun(sample, [expected(sample.more.layout, one) for one in sample.histories])
    played = [played_with_causes(one) for one in sample.histories]
    outcomes = [Outcome.of_play(one.name, own) for one, (own, _) in zip(sample.histories, played, strict=True)]
    labels = [[*labels_of(one, *own)] for one, own in zip(sample.histories, played, strict=True)]
    empty: list[Any] = [[] for _ in outcomes]
    answers = Answers(outcomes, empty, [set() for _ in outcomes], 2, 5, labels=labels, emitting=5, without_keys=1)
    return SimpleNamespace(
        sample=sample,
        histories=sample.histories,
        drawn=MANY,
        variants=(),
        played=[own for own, _ in played],
        causes=[causes for _, causes in played],
        answers=answers,
        outcomes=outcomes,
        leftover=empty,
        whole=CohortRun(sample),
        again=lambda way: answers,
    )


@pytest.mark.parametrize("operator", registered())
def test_each_goal_of_each_law_is_unmet_by_many_histories_in_which_nothing_happens(operator: str) -> None:
    registration = registration_of(operator)
    options = next(iter(registration.profiles.values()))
    samples = [(kind, options, None, False) for kind in KINDS] + [(Kind.RANDOM, options, None, True)]
    samples += [(Kind.COLUMNS, one.options, one, False) for one in layouts_of(registration)]
    wanted: dict[Any, set[str]] = defaultdict(set)
    unmet: dict[Any, set[str]] = defaultdict(set)
    for kind, own, more, pooled in samples:
        for histories in dull(registration, own):
            covered = covered_by(histories) if kind is Kind.RANDOM else Counter[str]()
            sample = Sample(registration, kind, "", own, histories, covered, True, pooled, ways=WAYS, more=more)
            run = run_of(sample)
            for law in (*LAWS["reference"].values(), *LAWS["spark"].values()):
                if law.name in OTHERS or law.not_checked(registration) or not law.is_asked_of(sample):
                    continue
                result = LawResult(law, goals=tuple(law.goals(sample)))
                assert not [*law.judge(run, result)]
                of_histories = {*result.goals} - met_by(registration, own)
                wanted[law.name].update(of_histories)
                unmet[law.name].update(of_histories & {*result.missing})
    assert {law: found for law, goals in wanted.items() if (found := goals - unmet[law])} == {}
