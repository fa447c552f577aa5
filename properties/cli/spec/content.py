"""Create a report of TLC's checks, with a verdict for each model, and the counterexample as a sequence chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...checking.checked import Checked, LawCount
from ...report.content import Chart, Content, content_of
from .checked import CheckedModel
from .models import ChosenModel
from .printing import steps_shown

if TYPE_CHECKING:
    from ....specs.checking import ModelResult


def content(chosen: Sequence[ChosenModel], checked: Sequence[CheckedModel], command: str, ended: str) -> Content:
    """Create the content of a report from checks of models.

    Args:
        chosen: The models to check.
        checked: The checked models.
        command: The command that repeats the check.
        ended: The reason of an early end, in words; empty if the check didn't end early.
    """
    checks = [*map(_checked, checked), *(_not_begun(one) for one in chosen[len(checked) :])]
    traced = sorted(
        (one for one in checked if one.found and one.found.trace), key=lambda one: one.verdict == "conforms"
    )
    charts = [_chart(one, number) for number, one in enumerate(traced, 1)]
    return content_of(checks, charts=charts, command=command, ended=ended)


def _not_begun(chosen: ChosenModel) -> Checked:
    return Checked(chosen.name, "inconclusive", [], unfinished="not finished", counted="distinct states")


def _checked(checked: CheckedModel) -> Checked:
    found, says = checked.found, "" if checked.chosen.entry is None else checked.chosen.entry.says
    if found is None:
        law = LawCount("TLC's answer", says, ("TLC",), "inconclusive", why=checked.why)
        return Checked(checked.chosen.name, "inconclusive", [law], counted="distinct states")
    why = "; ".join(checked.broken)
    violations = 0 if checked.verdict == "conforms" else 1
    law = LawCount(_law(found), says, ("TLC",), checked.verdict, found.distinct, violations, why)
    notes = [f"{found.generated:,} states generated, depth {found.depth}."]
    if found.trace is not None:
        expected = ", as it should" if checked.verdict == "conforms" else ""
        notes.insert(0, f"{found.verdict} in {len(found.trace)} states{expected}.")
    return Checked(
        checked.chosen.name,
        checked.verdict,
        [law],
        found.distinct,
        0,
        found.seconds,
        notes=notes,
        counted="distinct states",
    )


def _law(found: ModelResult) -> str:
    return found.violation or "every property"


def _chart(checked: CheckedModel, number: int) -> Chart:
    from ....specs.sequence_chart import sequence_chart
    from ....specs.steps import read_module

    found, model = checked.found, checked.chosen.model
    assert found is not None
    assert found.trace is not None
    violated = read_module(model.module).definitions.get(found.violated or "")
    said = found.violation if violated is None or not violated.comment else violated.comment
    svg = sequence_chart(found.trace, model.module, checked.chosen.title, found.violation, f"sequence-{number}")
    steps = [" " * (indent - 2) + text.plain for indent, text in steps_shown(found.trace, model.module)]
    return Chart(checked.chosen.name, _law(found), said, svg, steps, checked.verdict == "conforms")
