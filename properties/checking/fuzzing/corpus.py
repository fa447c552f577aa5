"""The plans that each run begins with: one for each known divergence, and equivalences that were written by hand."""

from __future__ import annotations

import itertools

from ....reference.spark.aggregates import Aggregate
from ....reference.spark.expressions import column, constant
from ....reference.spark.groups import Groups
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Filter,
    Join,
    Limit,
    Lookup,
    Node,
    Project,
    Source,
    Union,
    Watermark,
)
from ....reference.spark.session_windows import SessionWindows
from ....reference.spark.static_join import StaticJoin
from ....reference.spark.stream_join import AS_WRITTEN, Kind, StreamJoin
from ....reference.spark.windows import Windows
from ...generators.plans.drawing import COLUMNS, SECOND_US, TABLE, Query, is_, keep, subtraction
from ...generators.plans.rows import SILENCES

_A, _B, _C = (Source(name, COLUMNS) for name in ("a", "b", "c"))
_COUNT = {"v": Aggregate("count", None)}


def _timed(node: Node, seconds: int = 0) -> Node:
    return Watermark((node,), "ts", seconds * SECOND_US)


def _windows(node: Node, seconds: int = 10) -> Node:
    size_us = seconds * SECOND_US
    return Aggregation((node,), Windows("ts", ("h", "k"), size_us, size_us, 0, _COUNT), "ts")


def _sessions(node: Node, seconds: int = 10) -> Node:
    return Aggregation((node,), SessionWindows("ts", ("h", "k"), seconds * SECOND_US, _COUNT), "ts")


def _join(kind: Kind, left: Node, right: Node, before: int = 5, after: int = 5) -> Join:
    renamed = Project((right,), tuple((f"{name}2", column(name)) for name in COLUMNS))
    bounds_us = before * SECOND_US, after * SECOND_US
    by = StreamJoin(kind, (("h", "k"), ("h2", "k2")), ("ts", "ts2"), *bounds_us, dialect=AS_WRITTEN, null_keys=False)
    return Join((left, renamed), by)


def _only(node: Node, *names: str) -> Node:
    return Project((node,), tuple((name, column(name)) for name in names))


def _counted(node: Node) -> Node:
    return Aggregation((node,), Groups(("h", "k"), None, _COUNT, "complete"))


_SEMI_LOOKUP = StaticJoin("left_semi", ("k",), ("tk",), ("tk", "x"), TABLE)
_LEFT_LOOKUP = StaticJoin("left", ("k",), ("tk",), ("tk", "x"), TABLE)
_LOOKED_UP = _only(Lookup((_A,), _LEFT_LOOKUP), *COLUMNS, "x")
_BELOW = Filter((_LOOKED_UP,), is_(">", "v", 0))
CORPUS: dict[str, Query] = {
    "filter after windows": Query(Filter((_windows(_timed(_A)),), is_("=", "k", constant("a")))),
    "constant key of a join": Query(keep(_join("left", _timed(keep(_A, k=constant("a"))), _timed(_B)))),
    "no time above a deduplication": Query(_only(Deduplication((_timed(_A, 10),), ("h", "k")), "h", "k")),
    "no time above a join": Query(_only(keep(_join("inner", _timed(_A), _timed(_B))), "h", "k")),
    "semi join above a union": Query(Lookup((Union((keep(_BELOW), _B)),), _SEMI_LOOKUP)),
    "subtract a table": Query(subtraction(_A), "update"),
    "semi join": Query(_join("left_semi", _timed(_A), _timed(_B), 0, 0), without_data=False),
    "left join": Query(keep(_join("left", _timed(_A), _timed(_B), 0, 5)), without_data=False),
    "no time above a deduplication within the watermark": Query(
        _only(Deduplication((_timed(_A, 10),), ("h", "k"), within_watermark=True), "h", "k")
    ),
    "windows without an aggregate": Query(_only(_windows(_timed(_A)), "h", "k", "ts")),
    "false above a watermark": Query(_windows(Union((Filter((_timed(_A, 10),), constant(False)), _timed(_B))))),
    "constants counted": Query(_counted(Union((keep(_A, k=constant("a")), keep(_B, k=constant("b"))))), "complete"),
    "subtract in a union": Query(Union((subtraction(_A), _B)), "update"),
    "join above a union": Query(
        _join("inner", Union((keep(_timed(_A), v=constant(1)), _timed(_B))), _timed(_C), 10, 10)
    ),
    "limit above a join": Query(Limit((keep(_join("left", _timed(_A), _timed(_B)), v=column("v2")),), 1)),
    "limit above windows": Query(Limit((_windows(_timed(_A)),), 3)),
    "full join": Query(keep(_join("full", _timed(_A), _timed(_B)), k=is_("coalesce", "k", "k2"))),
    "groups above sessions": Query(
        _only(
            Aggregation((_sessions(_timed(_A)),), Groups(("h", "ts"), "ts", {"w": Aggregate("count", None)})), "h", "ts"
        )
    ),
    "inner join": Query(keep(_join("inner", _timed(_A), _timed(_B)))),
    "sessions": Query(_sessions(_timed(_A))),
    "windows above windows": Query(_windows(_windows(_timed(_A), 5))),
    "windows above a join": Query(_windows(keep(_join("left", _timed(_A), _timed(_B))))),
    "deduplication above windows": Query(Deduplication((_windows(_timed(_A)),), ("h", "ts"))),
    "sessions above a union": Query(_sessions(Union((_timed(_A), _timed(_B))))),
}
"""Each plan by its name."""
ASKED = {
    "limit above windows": "rocksdb",
    "inner join": "join state version 1",
    "sessions": "sessions merged early",
    "windows above a join": "restarts",
}
"""The relation that a plan of the corpus is asked beside the reference; others are asked none, and cost a run each."""
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
    "plan below a false filter removed": "false above a watermark",
    "aggregate of one row removed": "subtract in a union",
    "constant of one side for both": "constants counted",
    "deduplication without its time": "no time above a deduplication within the watermark",
    "join state version 1": "inner join",
    "late rows in sessions merged early": "sessions",
    "times forgotten at a restart": "windows above a join",
}
"""The plan that shows a divergence, by the name of that."""


def seeds_of(plan: str) -> list[str]:
    """Return the seeds of a plan: the more inputs it has, the more ways there are in which some are silent."""
    draws = len(SILENCES) * len(CORPUS[plan].inputs)
    return [f"{plan} #{number}" for number in range(1, draws + 1)]


def plan_of(seed: str) -> str:
    """Return the name of the plan of a seed."""
    return seed.partition(" #")[0]


def silence_of(seed: str) -> float | None:
    """Return the share of the batches of a seed in which inputs are silent: one draw of a plan has each; None: any."""
    number = seed.partition(" #")[2]
    return SILENCES[int(number) % len(SILENCES)] if number else None


SEEDS = tuple(seed for seeds in itertools.zip_longest(*map(seeds_of, CORPUS)) for seed in seeds if seed)
"""The seeds of the corpus, each the name of a plan and a number: first one of each plan."""
