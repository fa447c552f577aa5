"""Equivalences that were written by hand: the reference of plans has the same rows for both."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.checking.fuzzing import seeds
from streamproof.properties.checking.fuzzing.campaign import LAST, STATEFUL
from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.corpus import CORPUS, QUERIES, SEEDS, plan_of
from streamproof.properties.checking.fuzzing.equivalences import EQUIVALENCES, Equivalence
from streamproof.properties.checking.fuzzing.relations import EQUIVALENCE
from streamproof.properties.checking.fuzzing.seeds import Seed
from streamproof.properties.generators.plans.drawing import draw_query
from streamproof.properties.generators.plans.rows import draw_rows
from streamproof.properties.generators.plans.texts import statements


def cases(equivalence: Equivalence, seeds: range) -> list[tuple[PlanCase, PlanCase]]:
    found = []
    for seed in seeds:
        case = PlanCase(equivalence.query, draw_rows(random.Random(seed), equivalence.query, 6).batches)
        other = equivalence.relation.vary(case)
        assert other is not None
        found.append((case, other))
    return found


@pytest.mark.parametrize("name", EQUIVALENCES)
def test_both_plans_have_the_same_rows_in_each_batch(name: str) -> None:
    equivalence = EQUIVALENCES[name]
    drawn = cases(equivalence, range(12))
    assert [one.expected() for one, _ in drawn] == [other.expected() for _, other in drawn]
    assert any(bag for one, _ in drawn for bag in one.expected())


@pytest.mark.parametrize("name", EQUIVALENCES)
def test_both_are_compared_in_the_same_columns_and_are_other_queries(name: str) -> None:
    ((case, other),) = cases(EQUIVALENCES[name], range(1))
    assert case.columns == other.columns
    assert {"h"} < {*(case.columns or ())}
    assert statements(case.query.plan) != statements(other.query.plan)


def test_there_are_at_least_fifty() -> None:
    assert len(EQUIVALENCES) >= 50


def test_a_shrunk_plan_has_no_equivalent() -> None:
    equivalence = EQUIVALENCES["a filter of windows"]
    ((case, _),) = cases(equivalence, range(1))
    assert equivalence.relation.vary(replace(case, query=replace(case.query, plan=case.query.plan.input))) is None


def asked(seed: Seed, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the relations that a seed asks, without Spark."""
    names: Counter[str] = Counter()
    monkeypatch.setattr(Seed, "judge", lambda self, case, asked, judged: names.update(one.name for one in asked))
    seed.answer()
    return names


@pytest.mark.parametrize(("only", "wanted"), [("", {EQUIVALENCE: 1}), (EQUIVALENCE, {EQUIVALENCE: 1}), ("rocksdb", {})])
def test_a_seed_of_an_equivalence_asks_it_alone(
    only: str, wanted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(Seed("a filter of windows", 5, only=only), monkeypatch) == wanted


def test_other_seeds_ask_no_equivalence(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = [asked(Seed(seed, 5), monkeypatch) for seed in ("1", "2", "windows above a join #1")]
    assert any(found)
    assert not any(EQUIVALENCE in names for names in found)


@pytest.mark.parametrize(("version", "skipped"), [((4, 0, 1), True), ((4, 1, 0), False)])
def test_a_pyspark_without_transform_with_state_of_rows_skips_its_plans(
    version: tuple[int, ...], skipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "spark_version", lambda: version)
    monkeypatch.setattr(Seed, "judge", lambda self, case, asked, judged: None)
    assert bool(Seed("a processor above a union #1", 5).answer().skipped) is skipped
    assert not Seed("sessions #1", 5).answer().skipped


def test_each_run_begins_with_every_plan_of_the_corpus_and_every_equivalence() -> None:
    assert {plan_of(seed) for seed in SEEDS} == {*CORPUS, *EQUIVALENCES} == {*QUERIES}


def test_each_kind_of_operator_that_is_drawn_may_be_named_as_never_seen() -> None:
    drawn = {seeds.kind_of(node) for seed in range(400) for node in draw_query(random.Random(seed)).stateful}
    assert drawn - {"subtraction"} == {*STATEFUL, *LAST}
