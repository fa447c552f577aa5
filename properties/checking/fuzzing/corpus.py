"""The first plans of each run of the fuzzer: a plan for each known divergence, and hand-written equivalences."""

from __future__ import annotations

import itertools

from ....reference.spark.aggregates import AggregateFunction
from ....reference.spark.expressions import column, constant
from ....reference.spark.groups import Groups
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Filter,
    Limit,
    Union,
)
from ...generators.plans.drawing import COLUMNS, Query, is_, keep, looked_up, processing, subtraction
from ...generators.plans.rows import SILENCES
from .equivalences import EQUIVALENCES, A, B, C, groups, join, only, sessions, timed, windows

_LOOKED_UP = only(looked_up("left", A), *COLUMNS, "x")
_BELOW = Filter((_LOOKED_UP,), is_(">", "v", 0))
CORPUS: dict[str, Query] = {
    "filter after windows": Query(Filter((windows(timed(A)),), is_("=", "k", constant("a")))),
    "constant key of a join": Query(keep(join("left", timed(keep(A, k=constant("a"))), timed(B)))),
    "no time above a deduplication": Query(only(Deduplication((timed(A, 10),), ("h", "k")), "h", "k")),
    "no time above a join": Query(only(keep(join("inner", timed(A), timed(B))), "h", "k")),
    "semi join above a union": Query(looked_up("left_semi", Union((keep(_BELOW), B)))),
    "subtract a table": Query(subtraction(A), "update"),
    "semi join": Query(join("left_semi", timed(A), timed(B), 0, 0), without_data=False),
    "left join": Query(keep(join("left", timed(A), timed(B), 0, 5)), without_data=False),
    "no time above a deduplication within the watermark": Query(
        only(Deduplication((timed(A, 10),), ("h", "k"), within_watermark=True), "h", "k")
    ),
    "windows without an aggregate": Query(only(windows(timed(A)), "h", "k", "ts")),
    "false above a watermark": Query(windows(Union((Filter((timed(A, 10),), constant(False)), timed(B))))),
    "constants counted": Query(groups(Union((keep(A, k=constant("a")), keep(B, k=constant("b"))))), "complete"),
    "subtract in a union": Query(Union((subtraction(A), B)), "update"),
    "join above a union": Query(join("inner", Union((keep(timed(A), v=constant(1)), B)), timed(C), None, 5)),
    "limit above a join": Query(Limit((keep(join("left", timed(A), timed(B)), v=column("v2")),), 1)),
    "limit above windows": Query(Limit((windows(timed(A)),), 3)),
    "largest of a left join": Query(
        Aggregation(
            (keep(join("left", timed(A), timed(B), 0, 0)),),
            Groups(("h", "k", "ts"), "ts", {"v": AggregateFunction("max", "v")}),
        )
    ),
    "full join": Query(keep(join("full", timed(A), timed(B)), k=is_("coalesce", "k", "k2"))),
    "groups above sessions": Query(
        only(
            Aggregation((sessions(timed(A)),), Groups(("h", "ts"), "ts", {"w": AggregateFunction("count", None)})),
            "h",
            "ts",
        )
    ),
    "inner join": Query(keep(join("inner", timed(A), timed(B)))),
    "sessions": Query(sessions(timed(A))),
    "windows above windows": Query(windows(windows(timed(A), 5))),
    "windows above a join": Query(windows(keep(join("left", timed(A), timed(B))))),
    "deduplication above windows": Query(Deduplication((windows(timed(A)),), ("h", "ts"))),
    "a processor above a union": Query(processing(Union((timed(A), timed(B))))),
    "a processor above a join": Query(processing(keep(join("left", timed(A), timed(B))))),
    "sessions above a union": Query(sessions(Union((timed(A), timed(B))))),
}
"""The plans, by name."""
ASKED = {
    "limit above windows": "rocksdb",
    "inner join": "join state version 1",
    "sessions": "sessions merged early",
    "windows above a join": "restarts",
}
"""The relation to check on a corpus plan; other corpus plans skip all relations, because each check costs a query."""
SHOW = {
    "filter below the watermark": "filter after windows",
    "event time pruned": "no time above a deduplication",
    "session windows removed": "groups above sessions",
    "semi join above a union": "semi join above a union",
    "null keys joined": "full join",
    "semi join loses an evicted row": "semi join",
    "semi join takes left rows first": "semi join",
    "evicted row unjoined": "left join",
    "subtract repeats rows": "subtract a table",
    "limit above an aggregate": "limit above windows",
    "zero for null": "join above a union",
    "limit below an outer join": "limit above a join",
    "outer join removed": "largest of a left join",
    "plan below a false filter removed": "false above a watermark",
    "aggregate of one row removed": "subtract in a union",
    "constant of one side for both": "constants counted",
    "deduplication without its time": "no time above a deduplication within the watermark",
    "join state version 1": "inner join",
    "late rows in sessions merged early": "sessions",
    "times forgotten at a restart": "windows above a join",
}
"""The name of the corpus plan that shows each divergence."""


def seeds_of(plan: str) -> list[str]:
    """Return the seeds of a corpus plan; plans with more inputs have more seeds, because more combinations of inputs
    can be silent.
    """
    draws = len(SILENCES) * len(CORPUS[plan].inputs)
    return [f"{plan} #{number}" for number in range(1, draws + 1)]


def plan_of(seed: str) -> str:
    """Return the name of the corpus plan that a seed runs."""
    return seed.partition(" #")[0]


def silence_of(seed: str) -> float | None:
    """Return the share of batches in which an input gets no file, which varies between the seeds of a plan;
    None: any.
    """
    number = seed.partition(" #")[2]
    return SILENCES[int(number) % len(SILENCES)] if number else None


SEEDS = (
    *(seed for seeds in itertools.zip_longest(*map(seeds_of, CORPUS)) for seed in seeds if seed),
    *EQUIVALENCES,
)
"""The seeds of the corpus, each a plan's name and a number: the first seed of each plan, then the equivalences."""
QUERIES = {**CORPUS, **{name: one.query for name, one in EQUIVALENCES.items()}}
"""The query of each corpus plan, by the plan's name."""
