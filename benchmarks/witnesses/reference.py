"""Measures how many histories per second the reference plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamproof.properties.generators.draws import draw_histories
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play

from ..figures import Figure, Setting, Target, figure, seconds
from .profiles import PROFILES

COUNT = {"gap_ms": 10, "grace_ms": 5, "aggregate": "count"}
TARGET = Target("at least", 5000)


def run(setting: Setting) -> list[Figure]:
    """Measure the kinds of histories in turn."""
    count, rounds = setting.size(5000, 500), setting.times(5)
    drawn = {name: list(draw_histories(PROFILES[name], count, seed=0)) for name in ("update", "close", "own")}
    kinds = {_described(name): histories for name, histories in drawn.items()}
    kinds["count, stream time, records alone"] = [_under_stream_time(history) for history in drawn["update"]]
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds):
        setting.progress(f"round {number + 1} of {rounds}: {count:,} histories of each kind")
        for name, histories in kinds.items():
            rates[name].append(count / seconds(lambda histories=histories: play_all(histories)))  # type: ignore[misc]
    sizes = f"{count:,} histories of {PROFILES['update'].arrivals} arrivals"
    return [figure(f"reference, {name}", "histories/s", runs, sizes, TARGET) for name, runs in rates.items()]


def play_all(histories: Sequence[History]) -> None:
    """Play each history on the reference."""
    for history in histories:
        play(history)


def _described(name: str) -> str:
    options = PROFILES[name].options
    return f"profile {name} ({options['aggregate']}, batch clock, {len(PROFILES[name].schedule)} batches)"


def _under_stream_time(history: History) -> History:
    return replace(history, options=COUNT, lines=tuple(history.records), clock="stream_time")
