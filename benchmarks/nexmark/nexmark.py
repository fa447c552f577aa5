"""Measures Nexmark's queries, written with streamproof's operators and in other forms; compares the rows with DuckDB's.

The events are parquet files, one per micro-batch and kind. Each form of a query (`FORMS`) runs over these events in a
separate process. An event of a kind that the query reads counts as a record. Then some queries run over events that
arrive at several rates.
"""

from __future__ import annotations

import tempfile
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ..figures import Figure, Setting, figure, growth_exponent, ratio
from ..processes import require_proc
from ..production.production import HERE, UNIT, Measured, cpu_seconds, differing, growth, measured
from ..production.run import write_batches
from . import bytewax as nexmark_bytewax
from . import kafka as nexmark_kafka
from . import merge as nexmark_merge
from . import pandas as nexmark_pandas
from .events import RATE, Events, events
from .kafka import BROKER
from .merge import DELTA, DUCKDB
from .queries import QUERIES
from .run import BYTEWAX, KAFKA, OPERATORS, PANDAS, SPARKS
from .sql import Compared, compared, load

EVENTS, BATCHES = 500_000, 8
FEWER_BY = 20
"""Forms that are too slow for all events run over the number of events divided by this."""
AT_RATES = ("q11", "q20")
"""The queries that run at several rates: q11 has a bounded state, and q20 has several stages that keep all rows."""
RATES = (2_500, 5_000, 10_000, 20_000, 40_000, 80_000)
FORMS: Mapping[str, str] = {
    OPERATORS: "",
    SPARKS: "Spark's own",
    PANDAS: "applyInPandasWithState",
    DUCKDB: "a merge into DuckDB",
    DELTA: "a merge into Delta",
    KAFKA: "Kafka Streams",
    BYTEWAX: "Bytewax",
}
FEWER = (PANDAS,)
"""The forms that run over a twentieth of the events, because all of them would take half an hour."""
RUN = "nexmark.run"


class Through(NamedTuple):
    """The results of one form (one way to write the query) of a query.

    Attributes:
        records: The number of records that the query reads.
        runs: The measurements of the form, run by run.
        compared: The comparison of the first run's rows with DuckDB's.
    """

    records: int
    runs: Sequence[Measured]
    compared: Compared


def run(setting: Setting) -> list[Figure]:
    """Measure each form of a query in a fresh process; in a small run all forms share one process."""
    require_proc()
    queries = setting.among(QUERIES)
    forms = {query: _forms(setting, query) for query in queries}
    with_all = {query: [form for form in of if form not in FEWER] for query, of in forms.items()}
    runs = _through(setting, with_all, setting.size(EVENTS, 20_000), RATE)
    # The smaller runs cover the same event time, so that equally many sessions end before the last batch.
    count, rate = setting.size(EVENTS // FEWER_BY, 20_000), setting.size(RATE // FEWER_BY, RATE)
    with_fewer = {query: [OPERATORS, *FEWER] for query, of in forms.items() if {*FEWER} & {*of}}
    fewer = _through(setting, with_fewer, count, rate)
    figures: list[Figure] = []
    for query in queries:
        figures += query_figures(query, runs[query], setting.size(BATCHES, 3))
        of_fewer = query_figures(query, fewer.get(query, {}), setting.size(BATCHES, 3))
        # Leave out the operators' own figures over fewer events: only the ratio to the other forms needs this run.
        figures += [one for one in of_fewer if any(FORMS[form] in one.name for form in FEWER)]
    # In a small run, one query suffices to test both forms.
    at_rates = {query: _of_spark(query) for query in queries if query in AT_RATES[: setting.size(len(AT_RATES), 1)]}
    seconds, rates = setting.size(20, 4), RATES[: setting.size(len(RATES), 1)]
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        words = ("at-rates", name, *map(str, (seconds, *rates)))
        for query, found in _measured(setting, words, at_rates, 1).items():
            for form, (measured_there,) in found.items():
                figures += rate_figures(named(query, form), measured_there, seconds)
    return figures


def _through(
    setting: Setting, forms: Mapping[str, Sequence[str]], count: int, rate: int
) -> dict[str, dict[str, Through]]:
    """Run the forms of each query over this many events, at this rate; return the results by query and form."""
    batches = setting.size(BATCHES, 3)
    if not forms:
        return {}
    found: dict[str, dict[str, Through]] = {query: {} for query in forms}
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name, duckdb.connect(":memory:") as connection:
        folder = Path(name)
        setting.progress(f"{count:,} events")
        made = events(count, seed=setting.seed, rate=rate, closing=True)
        ends = [*(count * batch // batches for batch in range(1, batches)), count + len(made)]
        write_batches(made._asdict(), ends, folder)
        load(connection, name)
        words = ("through", name, str(batches), str(setting.size(2, 1)))
        for query, of_query in _measured(setting, words, forms, setting.times(1)).items():
            for form, runs in of_query.items():
                rows = compared(connection, query, f"{folder / query} {form}/*.parquet")
                found[query][form] = Through(_records(query, made), runs, rows)
    return found


def named(query: str, form: str) -> str:
    """Return the name of a form of a query, which is the prefix of its figures' names."""
    return f"{query}: {FORMS[form]}" if FORMS[form] else query


def _of_spark(query: str) -> list[str]:
    return [OPERATORS] if QUERIES[query].own is None else [OPERATORS, SPARKS]


def _forms(setting: Setting, query: str) -> list[str]:
    """Return the forms of a query that can run here."""
    why = {
        **dict.fromkeys((PANDAS, DUCKDB)),
        DELTA: None if nexmark_merge.is_installed() else "deltalake isn't installed",
        KAFKA: _why_not_kafka() if query in nexmark_kafka.QUERIES else None,
        BYTEWAX: None if nexmark_bytewax.is_installed() else "it isn't installed",
    }
    have: Mapping[str, Container[str]] = {
        PANDAS: nexmark_pandas.QUERIES,
        **nexmark_merge.TABLES,
        KAFKA: nexmark_kafka.QUERIES,
        BYTEWAX: nexmark_bytewax.QUERIES,
    }
    others = [form for form, of_form in have.items() if query in of_form]
    for form in others:
        if why[form] is not None:
            setting.progress(f"{query}: without {FORMS[form]}: {why[form]}")
    return [*_of_spark(query), *(form for form in others if why[form] is None)]


@cache
def _why_not_kafka() -> str | None:
    return nexmark_kafka.why_not()


def _measured(
    setting: Setting, words: Sequence[str], forms: Mapping[str, Sequence[str]], rounds: int
) -> dict[str, dict[str, list[Any]]]:
    """Run each form of each query; return the measurements, round by round."""
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


def query_figures(query: str, found: Mapping[str, Through], batches: int) -> list[Figure]:
    """Return the figures of a query.

    Args:
        query: Its name.
        found: The results of each form of the query.
        batches: The number of batches in which the records arrive.
    """
    figures, rates = [], {}
    for form, (records, runs, rows) in found.items():
        name, sizes = named(query, form), f"{records:,} records in {batches} batches"
        taken = sum(run["seconds"] for run in runs) / len(runs)
        rates[form] = figure(name, UNIT, [records / cpu_seconds(run) for run in runs], f"{sizes}; {taken:.1f} s")
        figures.append(rates[form])
        if form == KAFKA:
            both = [records / (cpu_seconds(run) + run[BROKER]) for run in runs]
            figures.append(figure(f"{name} and its broker", UNIT, both, sizes))
        figures.append(differing(f"{name}: rows that differ from DuckDB's", [rows]))
        if len(runs[0]["used"]) == batches:
            figures += growth(name, runs, records, batches)
        if "state" in runs[0]:
            figures += _state(name, runs, records, batches)
    for form in [*found][1:]:
        sizes = f"{found[form].records:,} records in {batches} batches"
        figures.append(replace(ratio(f"{query} over {FORMS[form]}", rates[OPERATORS], rates[form]), sizes=sizes))
    return figures


def _state(name: str, runs: Sequence[Measured], records: int, batches: int) -> list[Figure]:
    """Return the state's size before the last batch, which closes all windows, and its growth in the second half."""
    half, last, each = batches // 2, batches - 1, records // batches
    points = [[(count * each, run["state"][count - 1]) for count in (half, last)] for run in runs]
    sizes = f"after {last * each:,} records"
    grown = f"from {half * each:,} to {last * each:,} records"
    return [
        figure(f"{name}, state", "MB", [of_run[-1][1] / 1e6 for of_run in points], sizes),
        figure(f"{name}, growth of the state", "exponent", [growth_exponent(of_run) for of_run in points], grown),
    ]


def rate_figures(name: str, found: Mapping[str, Any], seconds: int) -> list[Figure]:
    """Return the latencies at each rate, and the highest rate that a query sustains.

    Args:
        name: The query's name and its form's name.
        found: The measurements at each rate, by events per second.
        seconds: The duration of the arrivals at each rate.
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
