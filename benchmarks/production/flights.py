"""Measures how long each witness (a system that runs histories) takes for the flights of 2013, and for fewer flights.

The measured time is the time that `streamproof compare` prints for a witness: from the data set as one table to the
outcome, including packing and unpacking. Then the flights are joined with their planes and airlines by foreign keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamproof.properties.datasets.compare import compare_data
from streamproof.properties.datasets.data import DataSet, flights
from streamproof.properties.witnesses.by_name import witness_named
from streamproof.properties.witnesses.spark.witness import NativeSparkWitness
from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure, growth_exponent, ratio
from . import real_foreign_keys

HOUR_MS = 3_600_000
UPDATE: Mapping[str, Any] = {"gap_ms": 4 * HOUR_MS, "grace_ms": 0, "aggregate": "count"}
CLOSE: Mapping[str, Any] = {**UPDATE, "emit": "close", "late": "own"}  # options that Spark's operator supports
GROWING = ("reference", "spark", "spark-native")
AVAILABLE_NOW = "spark-native, availableNow"
NAMES = {
    "reference": "reference",
    "duckdb": "DuckDB",
    "spark": "stateful operator (availableNow)",
    "spark-native": "native operator (stepwise)",
    AVAILABLE_NOW: "native operator (availableNow; late rows may be taken)",
}
Taken = dict[tuple[str, int], list[float]]
"""The seconds of every run, by witness and rows."""


def run(setting: Setting) -> list[Figure]:
    """Measure the witnesses in turn, over increasing numbers of flights."""
    rounds, batches, whole = setting.times(), setting.size(12, 4), flights()
    divisors = (64, 32) if setting.small else (16, 8, 4, 2, 1)
    rows = [whole.table.num_rows // divisor for divisor in divisors]
    data = {count: DataSet(whole.name, whole.table.slice(0, count)) for count in rows}
    setting.progress(f"warming up: {rows[0]:,} flights on every witness, which must agree")
    for options, witnesses in ((UPDATE, ("reference", "spark", "duckdb")), (CLOSE, (*GROWING, "duckdb"))):
        agreed = compare_data(data[rows[0]], options, list(map(witness_named, witnesses)), batches)
        if agreed.verdict != "conforms":
            raise StreamproofError(f"the witnesses disagree, so their times mean nothing: {agreed.why}")

    update: Taken = {}
    close: Taken = {}
    for number in range(rounds):
        for count in rows:
            setting.progress(f"round {number + 1} of {rounds}: {count:,} flights on {', '.join(GROWING)}")
            for name in GROWING:
                close.setdefault((name, count), []).append(_seconds(data[count], CLOSE, name, batches))
        setting.progress(f"round {number + 1} of {rounds}: {rows[-1]:,} flights on the other witnesses")
        close.setdefault((AVAILABLE_NOW, rows[-1]), []).append(_seconds(data[rows[-1]], CLOSE, AVAILABLE_NOW, batches))
        for name in ("reference", "duckdb", "spark"):
            update.setdefault((name, rows[-1]), []).append(_seconds(data[rows[-1]], UPDATE, name, batches))
    joined = real_foreign_keys.run(setting)
    return [*_times(update, close, rows[-1], batches), *_growth(close, rows, batches, rounds), *joined]


def _seconds(data: DataSet, options: Mapping[str, Any], name: str, batches: int) -> float:
    witness = NativeAvailableNow() if name == AVAILABLE_NOW else witness_named(name)
    return compare_data(data, options, [witness], batches).seconds[name]


class NativeAvailableNow(NativeSparkWitness):
    """Run Spark's own operator over all batches at once."""

    name = AVAILABLE_NOW
    stepwise = False


def _times(update: Taken, close: Taken, rows: int, batches: int) -> list[Figure]:
    sizes = f"{rows:,} flights in {batches} batches"
    within = {"reference": Target("at most", 10)}

    def time(taken: Taken, name: str, when: str) -> Figure:
        return figure(f"{NAMES[name]}, {when}", "seconds", taken[name, rows], sizes, within.get(name))

    stateful, native, at_once = (time(close, name, "at close") for name in ("spark", "spark-native", AVAILABLE_NOW))
    return [
        *(time(update, name, "every update") for name in ("reference", "duckdb", "spark")),
        time(close, "reference", "at close"),
        stateful,
        native,
        at_once,
        ratio("stateful over native (stepwise), at close", stateful, native, Target("at most", 5)),
        ratio("stateful over native (both availableNow), at close", stateful, at_once, Target("at most", 5)),
    ]


def _growth(close: Taken, rows: Sequence[int], batches: int, rounds: int) -> list[Figure]:
    figures: list[Figure] = []
    for name in GROWING:
        points = [
            figure(f"{NAMES[name]}, at close", "seconds", close[name, count], f"{count:,} flights in {batches} batches")
            for count in rows
        ]

        def exponents(counts: Sequence[int], name: str = name) -> list[float]:
            return [growth_exponent([(count, close[name, count][turn]) for count in counts]) for turn in range(rounds)]

        sizes = f"{rows[0]:,} to {rows[-1]:,} flights in {batches} batches"
        last = f"{rows[-2]:,} to {rows[-1]:,} flights in {batches} batches"
        figures += [
            *points[:-1],
            figure(f"{NAMES[name]}, growth", "exponent", exponents(rows), sizes, Target("at most", 1.1)),
            figure(
                f"{NAMES[name]}, growth of the last doubling (fixed query costs weigh least here)",
                "exponent",
                exponents(rows[-2:]),
                last,
            ),
        ]
    return figures
