"""Bugs planted in the reference of plans, and how many pairs of a drawn plan and a history show each."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache

from streamproof.properties.checking.fuzzing.cases import Bags, PlanCase
from streamproof.properties.generators.plans.drawing import Query, draw_query
from streamproof.properties.generators.plans.rows import CLOCK, draw_rows
from streamproof.reference.spark import drop_duplicates
from streamproof.reference.spark.plans import Aggregation, Deduplication, Limit, Node

from .making import Mutant
from .operators import OF_OPERATORS
from .watermarks import OF_EXECUTION

MUTANTS = (*OF_OPERATORS, *OF_EXECUTION)
MOST_ALONE = 5


@cache
def query_of(seed: int) -> Query:
    """Return the query of a seed."""
    return draw_query(random.Random(seed))


@cache
def drawn(seed: int, histories: int) -> list[tuple[PlanCase, Bags]]:
    """Return cases of a seed's query, with their expected rows; none if Spark refuses it or nothing can be compared.

    All histories are rows of one case; but where they have to do with each other, some have a case of their own.
    """
    query = query_of(seed)
    if any(lacks_event_time(node) for node in query.plan.walk()) or PlanCase(query, ()).columns is None:
        return []
    generator = random.Random(seed)
    sizes = [1] * MOST_ALONE if any(mixes_histories(node) for node in query.plan.walk()) else [histories]
    cases = [PlanCase(query, draw_rows(generator, query, size).batches) for size in sizes]
    return [(case, case.expected()) for case in cases]


def mixes_histories(node: Node) -> bool:
    """Whether an operator's rows of a history depend on other histories."""
    return isinstance(node, Limit) or (isinstance(node, Aggregation) and "h" not in node.columns)


def lacks_event_time(node: Node) -> bool:
    """Whether Spark refuses an operator because its input has no event time."""
    appends = isinstance(node, Aggregation) and node.by.mode == "append"
    needs = appends or (isinstance(node, Deduplication) and node.within_watermark)
    return needs and not node.input.event_times


def concerns(mutant: Mutant, node: Node) -> bool:
    """Whether a node runs the mutated code; all do where that isn't an operator's."""
    if mutant.at is not None:
        return mutant.at(node)
    module = mutant.owner.__module__
    if issubclass(mutant.owner, Node):
        return isinstance(node, mutant.owner)
    of_models = {type(getattr(node, name, None)).__module__ for name in ("by", "join")}
    if isinstance(node, Deduplication):
        of_models = {drop_duplicates.__name__}
    return module in of_models or module.rpartition(".")[2] in ("aggregates", "execution", "expressions")


def shown(mutant: Mutant, case: PlanCase, right: Bags) -> int:
    """Return how many histories of a case show a mutant; without their column among those compared, the case is one."""
    with mutant.planted():
        wrong = case.expected()
    if right == wrong:
        return 0
    columns = case.columns or []
    if "h" not in columns:
        return 1
    at = columns.index("h")
    differing = (row for one, other in zip(right, wrong, strict=True) for row in (*(one - other), *(other - one)))
    return len({row[at] for row in differing} - {CLOCK, None})


def pairs(mutant: Mutant, seeds: Iterable[int], histories: int) -> Iterator[int]:
    """Yield of each plan that shows a mutant the number of its histories that do."""
    for seed in seeds:
        if any(concerns(mutant, node) for node in query_of(seed).plan.walk()):
            found = sum(shown(mutant, case, right) for case, right in drawn(seed, histories))
            if found:
                yield found
