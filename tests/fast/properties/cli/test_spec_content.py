"""Reports of specifications: a verdict for each model, a counterexample of TLC's as a sequence chart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.cli.spec.checked import CheckedModel
from streamproof.properties.cli.spec.content import content
from streamproof.properties.cli.spec.models import ChosenModel
from streamproof.properties.report.github import commands
from streamproof.properties.report.junit import junit
from streamproof.properties.report.page import html, text
from streamproof.specs.checking import ModelResult
from streamproof.specs.pytla import Model, Step, Trace

CLOCK = """\
---- MODULE Clock ----
EXTENDS Naturals
VARIABLE hour
Init == hour = 0
\\* An hour passes.
Pass == hour' = hour + 1
\\* It is never <noon>.
NeverNoon == hour < 2
====
"""


@pytest.fixture
def chosen(tmp_path: Path) -> ChosenModel:
    (tmp_path / "Clock.tla").write_text(CLOCK)
    return ChosenModel("Clock", Model(tmp_path / "Clock.tla", tmp_path / "Clock.cfg"), None)


def failing(chosen: ChosenModel, verdict: Any = "violated") -> CheckedModel:
    steps = [Step(number + 1, None if number == 0 else "Pass", {"hour": number}) for number in range(3)]
    found = ModelResult("safety failure", "NeverNoon", Trace(tuple(steps)), 3, 4, 3, 0.5)
    return CheckedModel(chosen, found, [], verdict)


def test_a_counterexample_is_a_chart_with_its_steps_as_text(chosen: ChosenModel) -> None:
    said = content([chosen], [failing(chosen)], "streamproof spec check", "")
    (chart,) = said.charts
    assert (chart.subject, chart.law, chart.sentence) == ("Clock", "NeverNoon", "It is never <noon>.")
    assert 'aria-labelledby="sequence-1-title sequence-1-steps"' in chart.svg
    assert chart.steps[-1].strip() == "hour: 1 -> 2" or "2" in chart.steps[-1]
    assert said.verdict == "violated"
    page = html(said)
    assert "It is never &lt;noon&gt;." in page
    assert "<noon>" not in page
    assert "violated by 1 of 3 distinct states" in junit(said)
    assert "Clock: NeverNoon. It is never <noon>." in text(said)
    assert len(list(commands(said))) == 1


def test_charts_on_one_page_have_ids_and_styles_of_their_own(chosen: ChosenModel) -> None:
    other = chosen._replace(name="Other")
    said = content([chosen, other], [failing(chosen), failing(other)], "", "")
    page = html(said)
    assert page.count('id="sequence-1-title"') == page.count('id="sequence-2-title"') == 1
    assert "#sequence-1 .ink" in page
    assert "\n  .ink" not in page


def test_a_model_that_should_fail_conforms_and_is_drawn_all_the_same(chosen: ChosenModel) -> None:
    one = chosen._replace(entry=SimpleNamespace(name="Clock", says="a clock"))  # type: ignore[arg-type]
    said = content([one], [failing(one, "conforms")], "", "")
    assert said.verdict == "conforms"
    assert said.charts[0].is_expected
    assert said.checks[0].notes[0] == "violates NeverNoon in 3 states, as it should."
    assert "This model is expected to violate it." in html(said)
    assert list(commands(said)) == []


def test_models_that_an_interruption_left_out_are_named(chosen: ChosenModel) -> None:
    said = content([chosen, chosen._replace(name="Other")], [failing(chosen)], "", "interrupted by SIGINT")
    assert said.missing == ["interrupted by SIGINT", "Other: not finished"]


def test_a_model_without_an_answer_is_inconclusive(chosen: ChosenModel) -> None:
    said = content([chosen], [CheckedModel(chosen, None, [], "inconclusive", "no answer in 5 s")], "", "")
    assert said.verdict == "inconclusive"
    assert said.checks[0].laws[0].why == "no answer in 5 s"
