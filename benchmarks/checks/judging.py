"""Measures the CPU time per history of a check without Spark: drawing, playing, coverage and each comparison."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from streamproof.properties.generators.coverage import count_goals_met, neighbours_shown
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.generators.schedules import draw_schedule
from streamproof.properties.laws.folding import by_batch, folded_differences
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import Options, registered, registration_of
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.reference.core.errors import StreamproofError
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry, Played, play

from ..figures import Figure, Setting, Target, figure

ARRIVALS, BATCHES = 20, 6
NEIGHBOURS, TOGETHER = "neighbours", "together, without neighbours"
BUDGET = Target("at most", 1.2)
"""The target: 20,000 histories in 25 CPU seconds."""


def run(setting: Setting) -> list[Figure]:
    """Measure each part's mean over the operators and each operator's sum, or the parts of one operator."""
    each, rounds = setting.size(60, 6), setting.times(3)
    names = setting.among([*registered()])
    definitions = {name: draw_definitions(registration_of(name), setting.size(30, 1), seed=0) for name in names}
    definitions = {name: drawn[: setting.size(len(drawn), 3)] for name, drawn in definitions.items()}
    counts = {name: len(drawn) for name, drawn in definitions.items()}
    costs: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in names}
    for number in range(rounds):
        for name in names:
            setting.progress(f"round {number + 1} of {rounds}: {name}, {counts[name]} definitions")
            for part, taken in _parts(name, definitions[name], each, number).items():
                costs[name][part].append(1000 * taken / (each * counts[name]))
            parts = [runs[-1] for part, runs in costs[name].items() if part not in (NEIGHBOURS, TOGETHER)]
            costs[name][TOGETHER].append(sum(parts))

    def mean(part: str, number: int) -> float:
        return sum(counts[name] * costs[name][part][number] for name in names) / sum(counts.values())

    def of(name: str, part: str, runs: Sequence[float], definitions: int, target: Target | None = None) -> Figure:
        sizes = f"{each} histories of each of {definitions} definitions, {ARRIVALS} records in {BATCHES} batches"
        return figure(f"{name}: {part}", "CPU ms/history", runs, sizes, target)

    figures = []
    if setting.only is None:
        figures = [of(name, TOGETHER, costs[name][TOGETHER], counts[name]) for name in names]
    for part in costs[names[0]]:
        runs, target = [mean(part, number) for number in range(rounds)], BUDGET if part == TOGETHER else None
        figures.append(of(setting.only or "all definitions", part, runs, sum(counts.values()), target))
    return figures


def _parts(operator: str, definitions: Sequence[Options], count: int, seed: int) -> dict[str, float]:
    """Return the CPU seconds of each part of judging this many histories of each definition."""
    taken: dict[str, float] = defaultdict(float)

    def timed(part: str, call: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = call()
        taken[part] += time.process_time() - started
        return result

    every: list[History] = []
    plays: list[Played] = []
    for options in definitions:
        schedule = draw_schedule(operator, options, seed, BATCHES)
        settings = HistorySettings(operator, options, schedule, ARRIVALS)
        histories = timed("drawing", lambda settings=settings: list(draw_histories(settings, count, seed, mixed=True)))
        played = timed("playing", lambda histories=histories: [play(history) for history in histories])
        timed("goals", lambda histories=histories, played=played: count_goals_met(histories, played))
        timed(NEIGHBOURS, lambda histories=histories, played=played: neighbours_shown(histories, played))
        every += histories
        plays += played
    outcomes = [_as_of_spark(history, played) for history, played in zip(every, plays, strict=True)]
    expected = [Outcome.of_play(history.name, played) for history, played in zip(every, plays, strict=True)]
    wrong = timed("differences", lambda: [differences(*pair) for pair in zip(expected, outcomes, strict=True)])
    wrong += timed("folding", lambda: _folded(every, plays, outcomes))
    answers = timed("DuckDB", lambda: DuckDBWitness().evaluate(every))
    wrong += timed(
        "against DuckDB",
        lambda: [
            differences(answer, outcome, played.definition.unordered)
            for answer, outcome, played in zip(answers, outcomes, plays, strict=True)
        ],
    )
    if any(wrong):
        raise StreamproofError(f"{operator}: judging found a difference between equal outcomes: run streamproof check")
    return taken


def _as_of_spark(history: History, played: Played) -> Outcome:
    """Return the outcome that Spark reports if it agrees: the entries of each batch, ordered only within each key."""
    entries = sorted(played.entries, key=lambda entry: (entry.batch, entry.output.key or ""))
    unnumbered = [Entry(-1, entry.batch, entry.output) for entry in entries]
    return Outcome(history.name, Grain.BATCH, unnumbered, is_stream=played.definition.is_stream)


def _folded(histories: Sequence[History], plays: Sequence[Played], outcomes: Sequence[Outcome]) -> list[Any]:
    return [
        folded_differences(history, played, by_batch(outcome.entries, len(played.steps)))
        for history, played, outcome in zip(histories, plays, outcomes, strict=True)
    ]
