"""The columns of a plan whose values don't depend on an arbitrary choice of Spark.

Of several duplicates, Spark keeps any one, and a limit keeps any of its input rows. The columns in which these rows
differ vary between runs, so the fuzzer can't compare them.
"""

from __future__ import annotations

from ....reference.spark.plans import Aggregation, Deduplication, Explode, Limit, Lookup, Node, Processing, Project


def exact_columns(node: Node) -> frozenset[str] | None:
    """Return the columns whose values are the same in each run; None if even the number of rows may vary."""
    below = [exact_columns(one) for one in node.inputs]
    known = [one for one in below if one is not None]
    if len(known) < len(below):
        return None
    exact = frozenset.union(*known) if known else frozenset(node.columns)
    # A column of a union varies between runs if the column varies in one of the union's inputs.
    if len(below) == 2 and node.inputs[0].columns == node.inputs[1].columns:
        exact = known[0] & known[1]
    if not node.needs <= exact:
        return None
    match node:
        case Deduplication():
            is_chosen = node.within_watermark and any(one.is_stateful for one in node.input.walk())
            return None if is_chosen else frozenset(node.by)  # Spark's choice of a duplicate changes later rows too
        case Limit():
            return frozenset()
        case Aggregation() | Processing():
            return frozenset(node.columns)
        case Project():
            return frozenset(name for name, made in node.made if made.columns <= exact)
        case Lookup():
            return (exact | frozenset(node.join.added)) & frozenset(node.columns)
        case Explode():
            made = frozenset().union(*(value.columns for value in node.values))
            return exact if made <= exact else exact - {node.column}
    return exact & frozenset(node.columns) if known else exact
