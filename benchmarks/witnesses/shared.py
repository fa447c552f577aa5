"""Measures how many histories per CPU second Spark runs, in queries shared by all definitions, and in typed queries.

CPU seconds count the whole process tree (Python, the JVM, its workers, and their child processes).
"""

from __future__ import annotations

import sys

from streamproof.reference.core.errors import MissingTool

from ..figures import Figure, Setting, Target, figure, ratio
from .queries import cpu_seconds, of_tree

KINDS = {
    "one-stage": "all definitions of the operators without stages in one query",
    "staged": "all definitions of the operators in stages in one query",
    "typed": "session_windows of one definition, in typed columns",
}
TARGETS = {"one-stage": Target("at least", 1000)}


def run(setting: Setting) -> list[Figure]:
    """Measure the kinds of queries in turn, each in a separate process."""
    if not sys.platform.startswith("linux"):
        raise MissingTool("the processes of a process tree are only counted on Linux: run this benchmark there")
    rounds, histories, few, many = setting.times(), setting.size(14_000, 300), 1, setting.size(3, 2)
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind, runs in rates.items():
            setting.progress(f"round {number + 1} of {rounds}: {KINDS[kind]}")
            count = histories // 10 if kind == "typed" else histories
            # Subtract a run of few queries from a run of many, which excludes the cost of the session's start and of
            # drawing.
            words = ("benchmarks.witnesses.shared", kind, str(count))
            least, most = (cpu_seconds(*words, str(queries)) for queries in (few, many))
            runs.append(count * (many - few) / (most - least))
    found = {
        kind: figure(f"a CPU second of Spark: {KINDS[kind]}", "histories", runs, f"{histories:,}", TARGETS.get(kind))
        for kind, runs in rates.items()
    }
    shared = ratio("shared, without stages, over typed", found["one-stage"], found["typed"])
    return [*found.values(), shared, ratio("shared, in stages, over typed", found["staged"], found["typed"])]


def _queries(kind: str, histories: int, queries: int) -> None:
    from streamproof.properties.generators.cohorts import one_cohort
    from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
    from streamproof.properties.generators.options import draw_definitions
    from streamproof.properties.registration.registration import registered
    from streamproof.properties.witnesses.spark.session import spark_session
    from streamproof.properties.witnesses.spark.shared import Play, run_shared
    from streamproof.properties.witnesses.spark.witness import SPARK

    session = spark_session(cores=2)
    if kind == "typed":
        profile = HistorySettings("session_windows", registered()["session_windows"].profiles["update"], SCHEDULE)
        cohort = one_cohort(list(draw_histories(profile, histories, seed=0)))
        for _ in range(queries):
            SPARK.run(cohort)
    else:
        definitions = [
            (name, options)
            for name, one in registered().items()
            if one.spark and one.spark.shared and bool(one.spark.shared.hops) is (kind == "staged")
            for options in draw_definitions(one, 1, 0)
        ]
        each = max(1, histories // len(definitions))
        drawn = (draw_histories(HistorySettings(*one, SCHEDULE), each, seed=0, mixed=True) for one in definitions)
        plays = [Play(history) for of_definition in drawn for history in of_definition]
        for _ in range(queries):
            run_shared(plays)
    session.stop()


if __name__ == "__main__":
    asked, count, times = sys.argv[1:]
    print(of_tree(lambda: _queries(asked, int(count), int(times))))
