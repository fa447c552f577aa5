"""The command `spec behaviours`, which counts and writes the behaviours of a small model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...system.outputs import BEHAVIOURS, require_replaceable
from ..terminal import messages, results, steps

if TYPE_CHECKING:
    from ....specs.pytla import StateGraph, TlaValue, Trace

from .files import write_lines
from .models import ChosenModel, constants_given, one_model
from .options import Behaviours, Configuration, Constants, Cover, Covered, Force, Memory, ModelName, Timeout, WalkSeed
from .printing import count_of
from .tlc import asking_tlc, reporter, tools_with


def behaviours_of(
    model: ModelName,
    cover: Covered = Cover.EDGES,
    count: Annotated[
        bool, typer.Option("--count", help=("Only count the behaviours, without computing a covering set."))
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the behaviours into this folder, as JSON Lines.")
    ] = None,
    behaviours: Behaviours = 1000,
    seed: WalkSeed = 0,
    constant: Constants = None,
    config: Configuration = None,
    timeout: Timeout = None,
    memory: Memory = None,
    force: Force = False,
) -> None:
    """Count the behaviours of a small model from start to end, and write them, one a line.

    If the count isn't finished within --timeout, the result is inconclusive: exit 2.
    """
    one = one_model(model, constants_given(constant), config)
    path = None if out is None else out / f"{one.name}-{cover.value}.jsonl"
    if path is not None:
        require_replaceable(path, BEHAVIOURS, force)
    with steps() as progress, asking_tlc(one.name):
        graph = graph_of(one, timeout, memory, progress)
        counts = [
            count_of(len(graph.states), "state"),
            count_of(len(graph.edges), "edge"),
            f"{count_of(graph.count_behaviours(), 'behaviour')} from start to end",
        ]
        chosen: Sequence[Trace] | None = None
        if not count and cover is Cover.EDGES:
            progress(f"{one.name}: covering every edge")
            chosen = graph.covering()
            counts.append(f"{len(chosen):,} of them cover{'s' if len(chosen) == 1 else ''} every edge")
        if path is not None:
            progress(f"{one.name}: writing behaviours")
            others = graph.sample(behaviours, seed) if cover is Cover.RANDOM else graph.behaviours()
            written = write_lines(path, _behaviour_lines(others if chosen is None else chosen))
            messages.out(f"{path}: {count_of(written, 'behaviour')}")
    results.print(f"{one.name}: {', '.join(counts)}.", markup=False)


def graph_of(
    chosen: ChosenModel, timeout: float | None, memory: int | None, progress: Callable[[str], None]
) -> StateGraph:
    """Return the state graph of a model.

    Args:
        chosen: The model.
        timeout: The time limit (s) of TLC (None: no limit).
        memory: The size of TLC's heap (MiB), if given.
        progress: Called with the name of each step.
    """
    from ....specs import pytla

    return pytla.state_graph(
        chosen.model, tools_with(memory), timeout=timeout, progress=reporter(chosen.name, progress)
    )


def behaviour_json(trace: Trace) -> list[dict[str, Any]]:
    """Return a behaviour as JSON, with the number, action and state of each step; values are in TLA+."""
    return [{"step": step.number, "action": step.action, "state": _state_json(step.state)} for step in trace.steps]


def _state_json(state: Mapping[str, TlaValue]) -> dict[str, str]:
    from ....specs.pytla import to_tla

    return {name: to_tla(value) for name, value in state.items()}


def _behaviour_lines(traces: Iterable[Trace]) -> Iterator[str]:
    """Yield behaviours as lines of JSON; the function writes each state of the shared graph only once."""
    # keep the state alive, so that no other object gets its id
    states: dict[int, tuple[Mapping[str, TlaValue], str]] = {}
    for trace in traces:
        steps = []
        for step in trace.steps:
            if id(step.state) not in states:
                states[id(step.state)] = step.state, json.dumps(_state_json(step.state), ensure_ascii=False)
            _, state = states[id(step.state)]
            steps.append(f'{{"step": {step.number}, "action": {json.dumps(step.action)}, "state": {state}}}')
        yield f"[{', '.join(steps)}]"
