"""Measures the cost of a small stateful query, with and without streamproof's session settings.

The benchmark also runs four operators, each over its own small batches, in four queries and in one query.

CPU seconds count the whole process tree (Python, the JVM, its workers, and their child processes).
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path

from streamproof.reference.core.errors import MissingTool, StreamproofError

from ..figures import Figure, Setting, figure, ratio
from ..machine import ROOT

WITHOUT = {
    "spark.python.unix.domain.socket.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
TOGETHER, APART = "together", "apart"
NAMES = {
    "with": "a query with the session's settings",
    "without": "a query without the session's settings",
    TOGETHER: "four operators in one query",
    APART: "four operators in four queries",
}
OPERATORS = ("session_windows", "window_aggregate", "range_aggregate", "table_aggregate")
"""The operators with one input that run in one query and in four."""
BATCHES = 5
_BECOME_SUBREAPER = 36


def run(setting: Setting) -> list[Figure]:
    """Measure the kinds of queries in turn, each in a separate process."""
    if not sys.platform.startswith("linux"):
        raise MissingTool("the processes of a process tree are only counted on Linux: run this benchmark there")
    rounds, histories, few, many = setting.times(), setting.size(500, 20), 1, setting.size(9, 2)
    of_one = f"{histories:,} histories of table_table_join a query"
    of_four = f"{', '.join(OPERATORS)}: {histories * BATCHES:,} records each in {BATCHES} batches"
    costs: dict[str, list[float]] = {kind: [] for kind in NAMES}
    for number in range(rounds):
        for kind, runs in costs.items():
            setting.progress(f"round {number + 1} of {rounds}: {NAMES[kind]}")
            # Subtract a run of few queries from a run of many, which excludes the cost of the session's start.
            least, most = (
                cpu_seconds("benchmarks.witnesses.queries", kind, str(histories), str(queries))
                for queries in (few, many)
            )
            runs.append((most - least) / (many - few))
    found = {
        kind: figure(NAMES[kind], "CPU s", runs, of_four if kind in (TOGETHER, APART) else of_one)
        for kind, runs in costs.items()
    }
    return [
        *found.values(),
        ratio("a query, with over without", found["with"], found["without"]),
        ratio("four operators in one query over in four", found[TOGETHER], found[APART]),
    ]


def cpu_seconds(module: str, *words: str) -> float:
    """Run a module of the benchmarks, and return its last output, the CPU seconds.

    Raises:
        StreamproofError: The process failed; the message contains the last line of its output.
    """
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise StreamproofError(f"the queries failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout.split()[-1])


def _queries(settings: dict[str, str] | None, histories: int, queries: int) -> None:
    from streamproof.properties.generators.cohorts import one_cohort
    from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
    from streamproof.properties.registration.registration import registered
    from streamproof.properties.witnesses.spark.session import spark_session
    from streamproof.properties.witnesses.spark.witness import SPARK

    session = spark_session(cores=2, settings=settings)
    if settings is not None:
        from ..production.run import with_plain_hadoop

        session.sparkContext.pythonExec = sys.executable
        with_plain_hadoop(session)
    operator = "table_table_join"
    profile = HistorySettings(operator, registered()[operator].profiles["inner"], SCHEDULE)
    cohort = one_cohort(list(draw_histories(profile, histories, seed=0)))
    for _ in range(queries):
        SPARK.run(cohort)
    session.stop()


def _operators(together: bool, rows: int, times: int) -> None:
    """Run four operators in one query or in four, this many times."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F
    from streamproof.properties.witnesses.spark.session import spark_session

    from ..production.cases import CASES, TODAY, arrow
    from ..production.run import Source, into, streamed, write_batches

    session = spark_session(cores=2)
    cases = {name: CASES[name]() for name in OPERATORS}
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        sources = {}
        for operator, case in cases.items():
            inputs = {of: arrow(columns) for of, columns in case.make(rows * BATCHES).items()}
            write_batches(inputs, [rows * (batch + 1) for batch in range(BATCHES)], Path(name, operator))
            sources[operator] = Source(session, Path(name, operator), inputs)

        def changes(operator: str) -> DataFrame:
            """Declare an operator with its changes as text, because operators have changes with different columns."""
            result = cases[operator].build(sources[operator].streaming(session), TODAY).drop("place")
            return result.select(F.to_json(F.struct("*")).alias("change"))

        for _ in range(times):
            each = [changes(operator) for operator in OPERATORS]
            for query in [reduce(DataFrame.unionAll, each)] if together else each:
                streamed(query, into(None), lambda: {})
    session.stop()


def of_tree(call: Callable[[], None]) -> float:
    """Call a function in a separate process, and return the CPU seconds of that process and its descendants."""
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if not child:
        call()
        sys.exit()
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            break
        if ended == child and status:
            sys.exit(1)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    kind, histories, queries = sys.argv[1:]
    if kind in (TOGETHER, APART):
        print(of_tree(lambda: _operators(kind == TOGETHER, int(histories), int(queries))))
    else:
        settings = None if kind == "with" else WITHOUT
        print(of_tree(lambda: _queries(settings, int(histories), int(queries))))
