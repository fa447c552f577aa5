"""Measures the speed of DuckDB on a cohort (many histories at once), and of the reference on the same histories."""

from __future__ import annotations

from streamproof.properties.generators.draws import draw_histories
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness

from ..figures import Figure, Setting, Target, figure, ratio, seconds
from .profiles import PROFILES
from .reference import play_all

MEASURED = ("update", "close", "own")


def run(setting: Setting) -> list[Figure]:
    """Measure DuckDB and the reference in turn, on the same histories."""
    count, rounds = setting.size(5000, 500), setting.times(5)
    drawn = {name: list(draw_histories(PROFILES[name], count, seed=0)) for name in MEASURED}
    setting.progress("warming up: a small cohort")
    DuckDBWitness().evaluate(drawn["update"][:100])
    by_duckdb: dict[str, list[float]] = {name: [] for name in drawn}
    by_reference: dict[str, list[float]] = {name: [] for name in drawn}
    for number in range(rounds):
        setting.progress(f"round {number + 1} of {rounds}: {count:,} histories of each profile")
        for name, histories in drawn.items():
            by_duckdb[name].append(count / seconds(lambda histories=histories: DuckDBWitness().evaluate(histories)))  # type: ignore[misc]
            by_reference[name].append(count / seconds(lambda histories=histories: play_all(histories)))  # type: ignore[misc]
    figures: list[Figure] = []
    sizes = f"{count:,} histories of {PROFILES['update'].arrivals} arrivals"
    for name in drawn:
        profile = f"profile {name} ({PROFILES[name].options['aggregate']})"
        duckdb = figure(f"DuckDB, {profile}", "histories/s", by_duckdb[name], sizes, Target("at least", 5000))
        reference = figure(f"reference, {profile}", "histories/s", by_reference[name], sizes)
        figures += [duckdb, reference, ratio(f"DuckDB over the reference, {profile}", duckdb, reference)]
    return figures
