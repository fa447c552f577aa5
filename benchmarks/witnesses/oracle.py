"""Measures the speed of every operator's reference, DuckDB and the real Kafka Streams on the same histories."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof import reference
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from streamproof.properties.registration.registration import registered
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import MissingTool
from streamproof.reference.core.history import History
from streamproof.reference.core.operator import OPERATORS

from ..figures import Figure, Setting, Target, figure, ratio, seconds
from .reference import play_all

ARRIVALS = 20


def run(setting: Setting) -> list[Figure]:
    """Measure the witnesses in turn, definition by definition, and sum over an operator's definitions."""
    count, rounds = setting.size(2000, 200), setting.times(3)
    figures = [_lines()]
    for operator, registration in registered().items():
        setting.progress(f"{operator}: {count:,} histories, {rounds} rounds")
        profiles = registration.profiles
        each = max(1, count // len(profiles))
        drawn = {name: _drawn(operator, options, each) for name, options in profiles.items()}
        served = {name: histories for name, histories in drawn.items() if KafkaWitness().refuses(histories[0]) is None}
        # Many histories, because each SQL statement has a fixed cost.
        large = {name: _drawn(operator, options, 5 * each) for name, options in profiles.items()}
        by_duckdb = _rates(large, {"the reference": play_all, "DuckDB": DuckDBWitness().evaluate}, rounds)
        sizes = f"{5 * each * len(drawn):,} histories"
        figures += _figures(operator, by_duckdb, "DuckDB", sizes, Target("at least", 2000), None)
        if served:
            try:
                by_kafka = _rates(
                    served, {"the reference": play_all, "the test driver": KafkaWitness().evaluate}, rounds
                )
            except MissingTool as missing:
                setting.progress(f"skipped: {missing}")
                continue
            sizes = f"{each * len(served):,} histories"
            figures += _figures(operator, by_kafka, "the test driver", sizes, None, Target("at least", 10, aim=True))
    return figures


def _drawn(operator: str, options: Mapping[str, Any], count: int) -> list[History]:
    profile = HistorySettings(operator, options, SCHEDULE, ARRIVALS)
    return [under_stream_time(history) for history in draw_histories(profile, count, seed=0)]


def _rates(
    drawn: Mapping[str, Sequence[History]], witnesses: Mapping[str, Callable[[Sequence[History]], Any]], rounds: int
) -> dict[str, list[float]]:
    """Return the histories per second of each witness in each round."""
    total = sum(map(len, drawn.values()))
    rates: dict[str, list[float]] = {name: [] for name in witnesses}
    for witness in witnesses.values():
        for histories in drawn.values():
            witness(histories[:5])
    for _ in range(rounds):
        for name, witness in witnesses.items():
            taken = sum(seconds(lambda h=histories, w=witness: w(h)) for histories in drawn.values())  # type: ignore[misc]
            rates[name].append(total / taken)
    return rates


def _figures(
    operator: str,
    rates: Mapping[str, Sequence[float]],
    witness: str,
    sizes: str,
    target: Target | None,
    target_of_ratio: Target | None,
) -> list[Figure]:
    ours = figure(f"{operator}: the reference", "histories/s", rates["the reference"], sizes)
    theirs = figure(f"{operator}: {witness}", "histories/s", rates[witness], sizes, target)
    return [ours, theirs, ratio(f"{operator}: the reference over {witness}", ours, theirs, target_of_ratio)]


def _lines() -> Figure:
    """Return the lines of the twelve operators' files, without docstrings, comments and blank lines."""
    folder = Path(next(iter(reference.__path__)))
    lines = sum(lines_without_docstrings((folder / f"{name}.py").read_text(encoding="utf-8")) for name in OPERATORS)
    return figure("the twelve reference operators", "lines", [lines], "without docstrings", Target("under", 1000))


def lines_without_docstrings(source: str) -> int:
    """Count the lines of a module that contain code, rather than docstrings, comments or nothing."""
    lines = {number for number, line in enumerate(source.splitlines(), 1) if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)
