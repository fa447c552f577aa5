"""Print models, counterexamples and behaviours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from ...system.visible import visible
from ..terminal import results

if TYPE_CHECKING:
    from ....specs.catalogue import CatalogueModel
    from ....specs.checking import ModelResult
    from ....specs.pytla import Trace


def expected_of(model: CatalogueModel) -> str:
    """Return a description of a catalogue model's expected result."""
    if not model.fails:
        return "passes"
    failure = "a deadlock" if model.violated is None else f"{model.violated} violated"
    return f"{failure} in {model.trace_length} states"


def count_of(number: int, noun: str) -> str:
    """Return a count with its noun, such as `2 states`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_counterexample(found: ModelResult, module: Path) -> None:
    """Print a counterexample: the violated property, its line and text, and the steps of the violation."""
    from ....specs.steps import read_module

    if found.trace is None:
        return
    violated = read_module(module).definitions.get(found.violated or "")
    where = "" if violated is None else f" ({violated.path.name}, line {violated.line})"
    results.print()
    said = found.violation if found.result == "deadlock failure" else f"violated: {found.violation}{where}"
    results.out(f"  {said}", style="bold red")
    if violated is not None and violated.comment:
        results.out(f"  {violated.comment}")
    print_steps(found.trace, module)
    results.print()


def print_steps(trace: Trace, module: Path, first: str = "initial state") -> None:
    """Print a behaviour in the form of `steps_shown`."""
    for indent, text in steps_shown(trace, module, first):
        if results.is_terminal:
            results.print(Padding(text, (0, 0, 0, indent)))
        else:
            results.print(Text(" " * indent) + text, soft_wrap=True)


def steps_shown(trace: Trace, module: Path, first: str = "initial state") -> Iterator[tuple[int, Text]]:
    """Yield the lines of a behaviour and their indents: the first state, then each step's action and changes."""
    from ....specs.steps import ending, read_module, readable_steps, written

    text = read_module(module)
    yield 2, Text.assemble((f"{1:2}", "dim"), f"  {first}")
    for name, value in text.ordered(trace.steps[0].state).items():
        yield 8, Text.assemble((name, "cyan"), f" = {visible(written(value))}")
    for step in readable_steps(trace, text):
        yield 2, Text.assemble((f"{step.number:2}", "dim"), "  ", (visible(step.action), "bold"))
        for change in step.changes:
            yield 8, Text.assemble((visible(change.path), "cyan"), f": {visible(change.difference)}")
        if not step.changes:
            yield 8, Text("nothing changes", "dim")
    if ending(trace):
        yield 6, Text(ending(trace), "yellow")
