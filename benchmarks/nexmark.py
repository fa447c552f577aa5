"""Measures the queries of Nexmark by the operators, beside Spark's own; the results are compared with DuckDB's.

The events are parquet files, one a micro-batch of each kind. A query runs over them in a process of its own, by the
operators, and in another by Spark's own operators, where one streaming query can. Two of them also run on Bytewax,
where it is installed. An event of a kind that the query reads counts as a record. Then some queries run over events
that arrive at several rates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from . import nexmark_bytewax
from .figures import Figure, Setting, figure, growth_exponent, ratio
from .nexmark_events import Events, events
from .nexmark_queries import QUERIES
from .nexmark_run import BYTEWAX, OPERATORS, SPARKS
from .nexmark_sql import Compared, compared, load
from .processes import require_proc
from .production import HERE, UNIT, Measured, cpu_seconds, differing, growth, measured
from .production_run import write_batches

BATCHES = 16
AT_RATES = ("q11", "q20")
"""The queries that run at several rates: of one stage with a state that is bounded, and of three that keep all."""
RATES = (2_500, 5_000, 10_000, 20_000, 40_000)
FORMS: Mapping[str, str] = {OPERATORS: "", SPARKS: "Spark's own", BYTEWAX: "Bytewax"}
RUN = "nexmark_run"


def run(setting: Setting) -> list[Figure]:
    """Measure; each form of a query runs in a fresh process, each time; in a small run all share one."""
    require_proc()
    count, batches = setting.size(1_000_000, 20_000), setting.size(BATCHES, 3)
    queries = setting.among(QUERIES)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        folder = Path(name)
        setting.progress(f"{count:,} events")
        made = events(count, seed=setting.seed, closing=True)
        ends = [*(count * batch // batches for batch in range(1, batches)), count + len(made)]
        write_batches(made._asdict(), ends, folder)
        with duckdb.connect(":memory:") as connection:
            load(connection, str(folder))
            words: tuple[str, ...] = ("through", name, str(batches), str(setting.size(2, 1)))
            runs = _measured(setting, words, {query: _forms(query) for query in queries}, setting.times(1))
            for query, found in runs.items():
                results = {form: compared(connection, query, f"{folder / query} {form}/*.parquet") for form in found}
                figures += query_figures(query, found, results, _records(query, made), batches)
    # Both forms of one are enough to show that they run.
    at_rates = {query: _of_spark(query) for query in queries if query in AT_RATES[: setting.size(len(AT_RATES), 1)]}
    seconds, rates = setting.size(20, 4), RATES[: setting.size(len(RATES), 1)]
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        words = ("at-rates", name, *map(str, (seconds, *rates)))
        for query, found in _measured(setting, words, at_rates, 1).items():
            for form, (measured_there,) in found.items():
                figures += rate_figures(_named(query, form), measured_there, seconds)
    return figures


def _named(query: str, form: str) -> str:
    return f"{query}: {FORMS[form]}" if FORMS[form] else query


def _of_spark(query: str) -> list[str]:
    return [OPERATORS] if QUERIES[query].own is None else [OPERATORS, SPARKS]


def _forms(query: str) -> list[str]:
    others = [BYTEWAX] if query in nexmark_bytewax.QUERIES and nexmark_bytewax.is_installed() else []
    return [*_of_spark(query), *others]


def _measured(
    setting: Setting, words: Sequence[str], forms: Mapping[str, Sequence[str]], rounds: int
) -> dict[str, dict[str, list[Any]]]:
    """Run each form of each query; return what is measured of it, round by round."""
    found: dict[str, dict[str, list[Any]]] = {query: {form: [] for form in of} for query, of in forms.items()}
    pairs = [f"{query}:{form}" for query, of in forms.items() for form in of]
    groups = [pairs] if setting.small and pairs else [[pair] for pair in pairs]
    for group in groups * rounds:
        for pair, measured_there in measured(setting, HERE, RUN, (*words, *group)).items():
            query, _, form = pair.partition(":")
            found[query][form].append(measured_there)
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
        figures += [rates[form], differing(f"{name}: rows that differ from DuckDB's", [results[form]])]
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
