"""What the interpreter makes of a module's actions is what TLC makes of them, step by step and in both directions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamproof.specs.catalogue import CatalogueModel, catalogue, find_model
from streamproof.specs.checking import constants_of, find_tools
from streamproof.specs.proofs.interpreter import Frame, Interpreter
from streamproof.specs.pytla import Function, Model, StateGraph, state_graph
from streamproof.specs.pytla.syntax import parse_module

STATES = 250
"""Of how many states of a graph the steps are compared, drawn at random."""


def model_of(entry: CatalogueModel) -> Model:
    return Model(entry.module, entry.configuration, invariants=(), properties=(), deadlock=False)


def interpreter_of(entry: CatalogueModel, module: Path | None = None) -> Interpreter:
    return Interpreter(parse_module(module or entry.module, find_tools()), constants_of(model_of(entry)))


def successors(interpreter: Interpreter, state: Mapping[str, Any]) -> set[Function]:
    ways = list(interpreter.branches(interpreter.syntax.named("Next").body, Frame(state)))
    assert all(way.condition is True for way in ways)
    return {Function(way.after) for way in ways} - {Function(state)}


def differing(interpreter: Interpreter, graph: StateGraph, states: Iterable[int]) -> list[int]:
    """The states from which the two take different steps."""
    after: dict[int, set[Function]] = {}
    for edge in graph.edges:
        after.setdefault(edge.source, set()).add(Function(graph.states[edge.target]))
    return [number for number in states if successors(interpreter, graph.states[number]) != after.get(number, set())]


@pytest.mark.parametrize(
    "name",
    [
        "ForeignKeyJoin_keep",
        "ForeignKeyJoin_two_rows",
        "ForeignKeyJoin_kafka_4_3_answer",
        "ForeignKeyJoin_kafka_3_9_left_move",
        "ForeignKeyJoin_safe_update",
    ],
)
def test_it_takes_the_steps_of_tlc_and_no_others(name: str) -> None:
    entry = find_model(name)
    graph = state_graph(model_of(entry), find_tools())
    states = random.Random(7).sample(range(len(graph.states)), min(STATES, len(graph.states)))
    assert differing(interpreter_of(entry), graph, states) == []


SMALL = [
    one.name
    for each in catalogue()
    if each.name == "ForeignKeyJoin"
    for one in each.models
    # With a constraint TLC leaves steps out, which the module has.
    if one.size == "small" and "CONSTRAINT" not in one.configuration.read_text(encoding="utf-8")
]


@pytest.mark.weekly("every step of every small model: CI compares a sample of five")
@pytest.mark.parametrize("name", SMALL)
def test_it_takes_all_steps_of_tlc(name: str) -> None:
    entry = find_model(name)
    graph = state_graph(model_of(entry), find_tools())
    assert differing(interpreter_of(entry), graph, range(len(graph.states))) == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Append(@, Answer", None),  # nothing to alter: the guard of this test
        ("subscriptions[route] \\o SentTo(route, sent)", "SentTo(route, sent) \\o subscriptions[route]"),
        ("IF Mutant = \"no hash check\" \\/ response.hash = Hash(left[key])", "IF TRUE"),
        ("[] value # None -> [left |-> row, right |-> value]", "[] value # None -> [left |-> row, right |-> None]"),
    ],
)  # fmt: skip
def test_an_altered_action_is_seen(tmp_path: Path, text: str, other: str | None) -> None:
    entry = find_model("ForeignKeyJoin_keep")
    source = entry.module.read_text(encoding="utf-8")
    altered = tmp_path / entry.module.name
    if other is None:
        assert text not in source
        other = text
    else:
        assert source.count(text) == 1
    altered.write_text(source.replace(text, other), encoding="utf-8")
    graph = state_graph(model_of(entry), find_tools())
    found = differing(interpreter_of(entry, altered), graph, range(0, len(graph.states), 5))
    assert bool(found) == (text != other)
