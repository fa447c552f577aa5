"""The laws that run histories again, on mutants that they alone see; shared queries are played without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamproof.properties.checking.check import Check, begin_pool, judge_pool, query_threads
from streamproof.properties.checking.pools import pools_on_spark
from streamproof.properties.checking.report import Report
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.base import OWN
from streamproof.properties.laws.metamorphic.reruns import RerunLaw
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.spark.witness import QueryWitness
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.records import Record

JOIN = "table_table_join"
BY_ONE_LAW = {
    "forgets_at_second_restart": "restart",
    "takes_no_row_twice": "replay",
    "third_partition_lost": "partitions",
}
RERUN_LAWS = [law for law in ON_SPARK if isinstance(law, RerunLaw)]


def in_batches(*batches: Sequence[tuple[str, str, int]]) -> History:
    """Return a history of the outer join of tables: of each batch the records, as side, key and value."""
    lines: list[Any] = []
    for number, batch in enumerate(batches):
        lines += [CUT] * bool(number) + [Record(side, key, value, 5) for side, key, value in batch] + [ClockAdvance(9)]
    return History(JOIN, {"join": "outer"}, tuple(lines), "batch")


FIVE = in_batches(*([("left" if number % 2 else "right", "a", number)] for number in range(5)))
MANY_KEYS = in_batches([("left", key, 1) for key in "abcdefghijkl"], [("right", key, 2) for key in "abcdefghijkl"])


def checked(
    operators: Sequence[str], seed: int, folder: Path, witness: QueryWitness = OWN, histories: int = 20
) -> Mapping[str, Report]:
    """Ask the laws that run histories again about the pools of a check."""
    checks = {
        name: Check(
            registration_of(name),
            Report(name, [], seed),
            RERUN_LAWS,
            "spark",
            FolderStore(folder),
            lambda step: None,
            witness,
        )
        for name in operators
    }
    for one in checks.values():
        one.begin()
    with query_threads(1) as executor:
        for pool in pools_on_spark([one.registration for one in checks.values()], histories, seed):
            judge_pool(checks, begin_pool(checks, pool, executor))
    return {name: one.report for name, one in checks.items()}
