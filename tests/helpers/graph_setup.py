from __future__ import annotations

from hypothesis import strategies as st
from streamproof.specs.pytla import Edge, StateGraph


def graph_of(edges, initial=(0,), size=None):
    edges = [Edge(*edge) if len(edge) == 3 else Edge(edge[0], "Go", edge[1]) for edge in edges]
    size = size or 1 + max((max(edge.source, edge.target) for edge in edges), default=max(initial))
    return StateGraph([{"n": index} for index in range(size)], tuple(initial), edges)


def numbers(trace):
    return [step.state["n"] for step in trace]


# Edges go from a lower to a higher number, so there is no cycle; every state is reached from the first two.
acyclic = st.integers(2, 7).flatmap(
    lambda size: st.tuples(
        st.sets(
            st.tuples(st.integers(0, size - 1), st.sampled_from("AB"), st.integers(0, size - 1)).filter(
                lambda edge: edge[0] < edge[2]
            ),
            max_size=9,
        ),
        st.tuples(*(st.integers(0, index - 1) for index in range(2, size))),
    ).map(
        lambda drawn: graph_of(
            sorted(drawn[0] | {(source, "A", index) for index, source in enumerate(drawn[1], 2)}), (0, 1), size
        )
    )
)
