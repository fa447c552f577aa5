"""What the interpreter makes of a module's actions is what TLC makes of them, step by step and in both directions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamproof.specs.catalogue import catalogue
from streamproof.specs.checking import find_tools
from streamproof.specs.proofs.interpreter import Frame, Interpreter
from streamproof.specs.pytla import Function
from streamproof.specs.pytla.syntax import parse_module
from tla_models import FOLDER, graph

MODULE = FOLDER / "ForeignKeyJoin" / "ForeignKeyJoin.tla"
STATES = 250
"""Of how many states of a graph the steps are compared, drawn at random."""


def successors(interpreter: Interpreter, state: Mapping[str, Any]) -> set[Function]:
    ways = list(interpreter.branches(interpreter.syntax.named("Next").body, Frame(state)))
    assert all(way.condition is True for way in ways)
    return {Function(way.after) for way in ways} - {Function(state)}


def differing(model: str, chosen: Callable[[int], Iterable[int]], module: Path = MODULE) -> list[int]:
    """The states, chosen by their number, from which the two take different steps."""
    whole, constants = graph(MODULE.stem, model.removeprefix(MODULE.stem))
    interpreter = Interpreter(parse_module(module, find_tools()), constants)
    after: dict[int, set[Function]] = {}
    for edge in whole.edges:
        after.setdefault(edge.source, set()).add(Function(whole.states[edge.target]))
    states = chosen(len(whole.states))
    return [number for number in states if successors(interpreter, whole.states[number]) != after.get(number, set())]


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
    assert differing(name, lambda count: random.Random(7).sample(range(count), min(STATES, count))) == []


SMALL = [
    one.name
    for each in catalogue()
    if each.name == MODULE.stem
    for one in each.models
    # With a constraint TLC leaves steps out, which the module has.
    if one.size == "small" and "CONSTRAINT" not in one.configuration.read_text(encoding="utf-8")
]


@pytest.mark.weekly("every step of every small model: CI compares a sample of five")
@pytest.mark.parametrize("name", SMALL)
def test_it_takes_all_steps_of_tlc(name: str) -> None:
    assert differing(name, range) == []


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
    source = MODULE.read_text(encoding="utf-8")
    altered = tmp_path / MODULE.name
    if other is None:
        assert text not in source
        other = text
    else:
        assert source.count(text) == 1
    altered.write_text(source.replace(text, other), encoding="utf-8")
    found = differing("ForeignKeyJoin_keep", lambda count: range(0, count, 5), altered)
    assert bool(found) == (text != other)
