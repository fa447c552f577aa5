"""Models of the catalogue, for tests of replays: each graph and counterexample is asked of TLC once a process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from streamproof.specs import catalogue
from streamproof.specs.checking import constants_of, find_tools
from streamproof.specs.pytla import Model, StateGraph, Step, TlaValue, Trace, check, parse_state, state_graph

FOLDER = Path(catalogue.__file__).parent


class Counterexample(NamedTuple):
    """How a model fails: the behaviour, its constants, and the property that it violates, where TLC names it."""

    trace: Trace
    constants: Mapping[str, TlaValue]
    violated: str | None


def _model(module: str, suffix: str, constants: Mapping[str, TlaValue]) -> Model:
    return Model(FOLDER / module / f"{module}.tla", FOLDER / module / f"{module}{suffix}.cfg", constants=constants)


@cache
def counterexample(module: str, suffix: str, **constants: TlaValue) -> Counterexample:
    """What TLC finds of the model of that name, with some constants overridden."""
    failing = _model(module, suffix, constants)
    result = check(failing, find_tools())
    assert result.trace is not None
    return Counterexample(result.trace, constants_of(failing), result.violated)


@cache
def graph(module: str, suffix: str, **constants: TlaValue) -> tuple[StateGraph, Mapping[str, TlaValue]]:
    """The state graph of the model of that name, with some constants overridden, and all its constants."""
    small = _model(module, suffix, constants)
    return state_graph(small, find_tools()), constants_of(small)


def trace_of(*steps: tuple[str, Mapping[str, str]], initial: Mapping[str, str], **ending: Any) -> Trace:
    """A behaviour: of each step the action, and the variables that change, as TLC writes them; and how it goes on."""
    texts, found = dict(initial), []
    for number, (action, changed) in enumerate([("Initial", {}), *steps], 1):
        texts |= changed
        state = parse_state("\n".join(f"/\\ {name} = {text}" for name, text in texts.items()))
        found.append(Step(number, action, state))
    return Trace(tuple(found), **ending)
