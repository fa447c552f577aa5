"""Dimensions as people keep them: each recipe is judged as it should be, a wrong one on a few events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from check_job_setup import but_for
from dimension_recipes import RIGHT, WRONG, Recipe
from postgres_server import postgres_server, programs
from streamproof import Sink, Violated, check_job, invariants
from streamproof.properties.witnesses.run_options import MIDDLE

HISTORIES = 100


@contextlib.contextmanager
def prepared(recipe: Recipe) -> Iterator[Any]:
    """Give the job of a recipe, with the server that it needs."""
    if recipe.needs != "postgres":
        yield recipe.job
        return
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL isn't installed: the recipe isn't run")
    with postgres_server(folder) as url:
        yield recipe.job(url)


def judge(recipe: Recipe) -> Any:
    """Check a recipe by deaths in the middle of its output if it is to stand them, and against its rule."""
    with prepared(recipe) as job:
        given = {"mode": recipe.mode} if recipe.mode else {}
        if recipe.dies:  # first: a wrong one is right but for that
            assert isinstance(job, Sink)
            invariants(job, recipe.events, histories=20, without=but_for("a crash"), seconds=240)
        return check_job(job, recipe.events, expect=recipe.expect, histories=HISTORIES, seconds=240, **given)


@pytest.fixture(autouse=True)
def dying_in_the_middle(dying_only: Callable[[str], None]) -> None:
    """Let sinks die between their statements alone: other moments are asked about in test_sink_crashes.py."""
    dying_only(MIDDLE)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.in_ci("aggregate: max_by of the sequence, deletes left out above it")
def test_a_right_dimension_is_not_condemned(name: str, spark: Any) -> None:
    report = judge(RIGHT[name])
    assert report.comparing == ("cuts" if RIGHT[name].mode else "end")
    assert report.expecting > HISTORIES / 3


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.in_ci("DuckDB: MERGE that deletes, so that a deleted key comes back")
def test_a_wrong_dimension_is_found_on_a_few_events(name: str, spark: Any) -> None:
    recipe = WRONG[name]
    with pytest.raises(Violated, match=recipe.says) as raised:
        judge(recipe)
    counterexample: Any = raised.value.counterexample
    assert len(counterexample.history.arrivals) <= recipe.rows
