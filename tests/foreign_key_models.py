"""Models of `ForeignKeyJoin.tla`: their constants, counterexamples and state graphs, each asked of TLC once a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from streamproof.specs import catalogue
from streamproof.specs.checking import constants_of, find_tools
from streamproof.specs.pytla import Model, StateGraph, Trace, Value, check, state_graph

MODULE = "ForeignKeyJoin"
FOLDER = Path(catalogue.__file__).parent
MUTANTS = [
    "no_hash_check",
    "no_hash_check_deleted_row",
    "routes_out_of_order",
    "kafka_18713",
    "kafka_9244_not_sent",
    "kafka_9244_hash_stored",
    "move_silent",
    "delete_silent",
    "null_key_silent",
    "no_prefix_length",
    "no_prefix_length_other_key",
    "right_tombstone_silent",
]
NOT_ON_SPARK = ("routes_out_of_order", "no_prefix_length", "no_prefix_length_other_key")
RACES = ["race_any", "race_delete_insert", "race_lose_update"]
"""Of the races one of each kind; `streamproof spec replay` plays them all."""
GRAPHS = {"left": "", "left, null keys kept": "_keep", "inner, kip": "_race_any", "inner, answer": "_inner_answer"}
"""Models with every kind of change: what their names add to the module's."""
FEWER: Mapping[str, Value] = {"LeftChanges": 2, "RightChanges": 2}
"""Enough for every mutant to show, and quicker than the models' own."""
SMALL: Mapping[str, Value] = {"LeftChanges": 2, "RightChanges": 1, "Ghost": False}


class Counterexample(NamedTuple):
    """How a model fails: the behaviour, its constants, and the property that it violates."""

    trace: Trace
    constants: Mapping[str, Value]
    violated: str


def model(suffix: str, constants: Mapping[str, Value]) -> Model:
    return Model(FOLDER / f"{MODULE}.tla", FOLDER / f"{MODULE}{suffix}.cfg", constants=constants)


@cache
def counterexample(name: str) -> Counterexample:
    failing = model(f"_{name}", FEWER if name.startswith("mutant") else {})
    result = check(failing, find_tools())
    assert result.trace is not None
    assert result.violated is not None
    return Counterexample(result.trace, constants_of(failing), result.violated)


@cache
def graph(name: str) -> tuple[StateGraph, Mapping[str, Value]]:
    """A model with 2 left and 1 right changes: its state graph and its constants."""
    small = model(GRAPHS[name], SMALL)
    return state_graph(small, find_tools()), constants_of(small)
