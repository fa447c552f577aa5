"""Measures DuckDB's vote on a cohort, against the reference on the same histories."""

from __future__ import annotations

from streamproof.properties.check import SHAPES
from streamproof.properties.draws import draw_histories
from streamproof.properties.duckdb_witness import tables

from .figures import Figure, Setting, Target, figure, ratio, seconds
from .reference import play_all

SHAPES_ASKED = ("update", "close", "own")


def run(setting: Setting) -> list[Figure]:
    """Measure; DuckDB and the reference take turns."""
    count, rounds = setting.size(5000, 500), setting.times(5)
    drawn = {name: list(draw_histories(SHAPES[name], count, seed=0)) for name in SHAPES_ASKED}
    setting.progress("warming up: a small cohort")
    tables(drawn["update"][:100])
    voted: dict[str, list[float]] = {name: [] for name in drawn}
    played: dict[str, list[float]] = {name: [] for name in drawn}
    for number in range(rounds):
        setting.progress(f"round {number + 1} of {rounds}: {count:,} histories of each shape")
        for name, histories in drawn.items():
            voted[name].append(count / seconds(lambda histories=histories: tables(histories)))  # type: ignore[misc]
            played[name].append(count / seconds(lambda histories=histories: play_all(histories)))  # type: ignore[misc]
    figures: list[Figure] = []
    sizes = f"{count:,} histories of {SHAPES['update'].arrivals} arrivals"
    for name in drawn:
        shape = f"shape {name} ({SHAPES[name].options['aggregate']})"
        duckdb = figure(f"DuckDB, {shape}", "histories/s", voted[name], sizes, Target("at least", 5000))
        reference = figure(f"reference, {shape}", "histories/s", played[name], sizes)
        figures += [duckdb, reference, ratio(f"DuckDB over the reference, {shape}", duckdb, reference)]
    return figures
