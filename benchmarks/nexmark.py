"""Measures the queries of Nexmark by the operators, beside Spark's own; the results are compared with DuckDB's.

The events are parquet files, one a micro-batch of each kind. A query runs over them in a process of its own, by the
operators, and in another by Spark's own operators, where one streaming query can. Two of them also run on Bytewax,
where it is installed. An event of a kind that the query reads counts as a record. Then some queries run over events
that arrive at several rates.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from . import nexmark_bytewax
from .figures import Figure, Setting, Target, figure, growth_exponent, ratio
from .machine import ROOT
from .nexmark_events import Events, events
from .nexmark_queries import QUERIES
from .nexmark_run import BYTEWAX, OPERATORS, SPARKS
from .nexmark_sql import Compared, compared, load
from .processes import require_proc
from .production import UNIT, Measured, Program, cpu_seconds, growth, measured
from .production_run import write_batches

BATCHES = 16
AT_RATES = ("q11", "q20")
"""The queries that run at several rates: of one stage with a state that is bounded, and of three that keep all."""
RATES = (2_500, 5_000, 10_000, 20_000, 40_000)
FORMS: Mapping[str, str] = {OPERATORS: "", SPARKS: "Spark's own", BYTEWAX: "Bytewax"}
RUN = "nexmark_run"
HERE = Program(ROOT, os.environ)


def run(setting: Setting) -> list[Figure]:
    """Measure, query by query; the forms take turns, each time in a fresh process."""
    require_proc()
    count, batches = setting.size(1_000_000, 20_000), setting.size(BATCHES, 4)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        folder = Path(name)
        setting.progress(f"{count:,} events")
        made = events(count, seed=setting.seed, closing=True)
        ends = [*(count * batch // batches for batch in range(1, batches)), count + len(made)]
        write_batches(made._asdict(), ends, folder)
        with duckdb.connect(":memory:") as connection:
            load(connection, str(folder))
            for query in setting.among(QUERIES):
                found = _through(setting, query, folder, batches)
                results = {form: compared(connection, query, f"{folder / query} {form}/*.parquet") for form in found}
                figures += query_figures(query, found, results, _records(query, made), batches)
    for query in setting.among(QUERIES):
        if query in AT_RATES:
            figures += _at_rates(setting, query)
    return figures


def _named(query: str, form: str) -> str:
    return f"{query}: {FORMS[form]}" if FORMS[form] else query


def _of_spark(query: str) -> list[str]:
    return [OPERATORS] if QUERIES[query].own is None else [OPERATORS, SPARKS]


def _through(setting: Setting, query: str, folder: Path, batches: int) -> dict[str, list[Measured]]:
    others = [BYTEWAX] if query in nexmark_bytewax.QUERIES and nexmark_bytewax.is_installed() else []
    found: dict[str, list[Measured]] = {form: [] for form in [*_of_spark(query), *others]}
    for _ in range(setting.times(1)):
        for form, runs in found.items():
            runs.append(measured(setting, HERE, RUN, ("through", form, query, str(folder), str(batches))))
    return found


def _records(query: str, made: Events) -> int:
    return sum(getattr(made, kind).num_rows - 1 for kind in QUERIES[query].reads)


def query_figures(
    query: str, found: Mapping[str, Sequence[Measured]], results: Mapping[str, Compared], records: int, batches: int
) -> list[Figure]:
    """Return the figures of a query.

    Args:
        query: Its name.
        found: What was measured of each form, run by run.
        results: How the rows of each form's first run compare with DuckDB's.
        records: How many records the query reads.
        batches: In how many batches.
    """
    sizes = f"{records:,} records in {batches} batches"
    figures, rates = [], {}
    for form, runs in found.items():
        name = _named(query, form)
        taken = sum(run["seconds"] for run in runs) / len(runs)
        rates[form] = figure(name, UNIT, [records / cpu_seconds(run) for run in runs], f"{sizes}; {taken:.1f} s")
        figures += [rates[form], _differing(name, results[form])]
        if form != BYTEWAX:
            figures += [*growth(name, runs, records, batches), *_state(name, runs, records, batches)]
    for form in [*found][1:]:
        figures.append(replace(ratio(f"{query} over {FORMS[form]}", rates[OPERATORS], rates[form]), sizes=sizes))
    return figures


def _state(name: str, runs: Sequence[Measured], records: int, batches: int) -> list[Figure]:
    """Return how large the state is before the last batch, which closes all, and how it grows in the second half."""
    half, last, each = batches // 2, batches - 1, records // batches
    points = [[(count * each, run["state"][count - 1]) for count in (half, last)] for run in runs]
    sizes = f"after {last * each:,} records"
    grown = f"from {half * each:,} to {last * each:,} records"
    return [
        figure(f"{name}, state", "MB", [of_run[-1][1] / 1e6 for of_run in points], sizes),
        figure(f"{name}, growth of the state", "exponent", [growth_exponent(of_run) for of_run in points], grown),
    ]


def _differing(name: str, result: Compared) -> Figure:
    # No row at all agrees with anything.
    different = result.differing if result.rows else 1
    return figure(f"{name}: rows that differ from DuckDB's", "rows", [different], f"of {result.rows:,}", NONE)


NONE = Target("at most", 0)


def _at_rates(setting: Setting, query: str) -> list[Figure]:
    seconds, rates = setting.size(24, 8), RATES[: setting.size(len(RATES), 1)]
    figures: list[Figure] = []
    for form in _of_spark(query):
        with tempfile.TemporaryDirectory(prefix="streamproof-") as folder:
            words = ("at-rates", form, query, folder, str(seconds), *map(str, rates))
            found = measured(setting, HERE, RUN, words)["rates"]
        figures += rate_figures(_named(query, form), found, seconds)
    return figures


def rate_figures(name: str, found: Mapping[str, Any], seconds: int) -> list[Figure]:
    """Return the latencies at each rate, and the highest rate with which a query keeps up.

    Args:
        name: The query's name, and its form's.
        found: What was measured at each rate, by events a second.
        seconds: How long events arrived at each rate.
    """
    figures = []
    for rate, measured_there in found.items():
        behind = "" if measured_there["keeps up"] else "; it doesn't keep up"
        for percent, latency in measured_there["latency"].items():
            what = f"{name} at {int(rate):,} events/s: latency of {percent} % at most"
            figures.append(figure(what, "seconds", [latency], f"{seconds} s, of which the last 3/4 count{behind}"))
    kept = [int(rate) for rate, measured_there in found.items() if measured_there["keeps up"]]
    tried = ", ".join(f"{int(rate):,}" for rate in found)
    figures.append(figure(f"{name}: keeps up with", "events/s", [max(kept, default=0)], f"tried: {tried}"))
    return figures
