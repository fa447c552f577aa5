from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from streamproof import Inconclusive, JobReport, Violated
from streamproof.properties.counterexamples.notebook import STYLES

COUNTEREXAMPLE: Any = None
OUTCOMES = [
    (JobReport("visits", "it conforms to <b>the rule</b>.", {"the rule": 300}, "batches"), "conforms"),
    (JobReport("visits", "the output doesn't change with", {"restart": 300}), "conforms"),
    (Inconclusive("inconclusive: <b>too few</b>"), "inconclusive"),
    (Violated("violated: <b>in batch 0</b>", COUNTEREXAMPLE), "violated"),
]


@pytest.mark.parametrize(("outcome", "verdict"), OUTCOMES, ids=lambda value: getattr(value, "verdict", ""))
def test_a_notebook_shows_what_a_check_says(outcome: Any, verdict: str) -> None:
    assert (outcome.verdict, verdict in STYLES) == (verdict, True)
    html = outcome._repr_mimebundle_([], [])["text/html"]
    assert verdict in html
    assert "<b>" not in html


def test_rich_prints_the_whole_text() -> None:
    file = io.StringIO()
    Console(file=file, width=200).print(OUTCOMES[0][0])
    assert "it conforms to <b>the rule</b>. Compared: the rows of each batch" in file.getvalue()


def test_a_notebook_shows_a_violation_without_the_traceback_of_the_check() -> None:
    found = OUTCOMES[-1][0]
    assert found._render_traceback_() == ["Violated: violated: <b>in batch 0</b>"]  # type: ignore[attr-defined]
