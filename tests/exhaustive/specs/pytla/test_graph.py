from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamproof.specs.pytla import CyclicGraph, Edge, Function, StateGraph, TlcCrashed
from streamproof.specs.pytla.graph import read_dot


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


DIAMOND = graph_of([(0, "Up", 1), (0, "Down", 2), (1, "Down", 3), (2, "Up", 3), (3, "On", 4)])


def test_every_maximal_behaviour_is_walked_depth_first():
    assert [numbers(trace) for trace in DIAMOND.behaviours()] == [[0, 1, 3, 4], [0, 2, 3, 4]]
    first = next(DIAMOND.behaviours())
    assert [step.action for step in first] == ["Initial", "Up", "Down", "On"]
    assert [step.number for step in first] == [1, 2, 3, 4]
    assert (first.loop, first.stutters) == (None, False)


def test_a_graph_without_steps_has_a_behaviour_for_each_initial_state():
    graph = graph_of([], (0, 1))
    assert [numbers(trace) for trace in graph.behaviours()] == [[0], [1]]
    assert graph.count_behaviours() == len(graph.covering()) == 2


def test_behaviours_are_counted_without_being_walked():
    # 100 diamonds in a row.
    edges = [edge for n in range(0, 300, 3) for edge in ((n, n + 1), (n, n + 2), (n + 1, n + 3), (n + 2, n + 3))]
    assert graph_of(edges).count_behaviours() == 2**100


def test_a_long_behaviour_is_no_recursion():
    graph = graph_of([(n, n + 1) for n in range(5000)])
    assert [len(trace) for trace in graph.behaviours()] == [5001]
    assert [len(trace) for trace in graph.covering()] == [5001]


@given(acyclic)
def test_all_walked_behaviours_are_distinct_and_as_many_as_counted(graph):
    walked = [tuple((step.action, step.state["n"]) for step in trace) for trace in graph.behaviours()]
    assert len(set(walked)) == len(walked) == graph.count_behaviours()


def taken(graph, traces):
    taken = [(trace.steps[index - 1].state["n"], trace.steps[index].action, trace.steps[index].state["n"])
             for trace in traces for index in range(1, len(trace))]  # fmt: skip
    return set(taken)


@given(acyclic, st.integers(1, 40), st.integers(0, 3))
def test_a_sample_is_of_distinct_behaviours_in_their_order_and_all_where_it_is_as_large(graph, count, seed):
    every = list(graph.behaviours())
    sampled = list(graph.sample(count, seed))
    assert sampled == list(graph.sample(count, seed))
    assert len(sampled) == min(count, len(every))
    places = [every.index(trace) for trace in sampled]
    assert places == sorted(set(places))


def test_each_behaviour_is_as_likely_as_any_other():
    # A way that ends at once beside a way with seven ends.
    graph = graph_of([(0, 1), (0, 2), *((2, end) for end in range(3, 10))])
    first = [numbers(trace) for seed in range(400) for trace in graph.sample(1, seed)]
    assert 25 <= first.count([0, 1]) <= 80


@given(acyclic)
def test_a_covering_takes_every_step_by_maximal_behaviours(graph):
    traces = graph.covering()
    assert taken(graph, traces) == set(graph.edges)
    ends = {index for index, leaving in enumerate(graph.leaving) if not leaving}
    assert {numbers(trace)[0] for trace in traces} <= set(graph.initial)
    assert {numbers(trace)[-1] for trace in traces} <= ends
    assert traces == graph.covering()


@given(acyclic)
def test_no_covering_is_smaller(graph):
    found = len(graph.covering())
    # By Dilworth: no cover is smaller than a set of steps no two of which lie on one path.
    later = {index: {index} for index in range(len(graph.states))}
    for index in reversed(graph.order):
        for number in graph.leaving[index]:
            later[index] |= later[graph.edges[number].target]
    alone = sum(1 for index in graph.initial if not graph.leaving[index])
    edges = range(len(graph.edges))

    def apart(one, other):
        first, second = graph.edges[one], graph.edges[other]
        return second.source not in later[first.target] and first.source not in later[second.target]

    most = 0
    stack = [((), list(edges))]
    while stack:
        chosen, candidates = stack.pop()
        most = max(most, len(chosen))
        for index, edge in enumerate(candidates):
            rest = [other for other in candidates[index + 1 :] if apart(edge, other)]
            if len(chosen) + 1 + len(rest) > most:
                stack.append(((*chosen, edge), rest))
    assert found == most + alone


@pytest.mark.parametrize("ask", ["count_behaviours", "covering", lambda graph: next(graph.behaviours())])
def test_a_cycle_is_refused_by_its_states(ask):
    graph = graph_of([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)])
    with pytest.raises(CyclicGraph, match="cycle of 3 states") as caught:
        ask(graph) if callable(ask) else getattr(graph, ask)()
    cycle = caught.value.states
    assert set(cycle) == {1, 2, 3}
    steps = {(edge.source, edge.target) for edge in graph.edges}
    assert set(itertools.pairwise((*cycle, cycle[0]))) <= steps


# As TLC 2.15 dumps it; a step that changes nothing, a step dumped twice, and a string that looks like a label.
DOT = r"""strict digraph DiskGraph {
nodesep=0.35;
subgraph cluster_graph {
color="white";
-53 [label="/\\ n = 1\n/\\ x = \"q\\\"uo\\\\te\\n -> 5 [label=\"",style = filled]
-53 -> -10 [label="Step",color="black",fontcolor="black"];
-10 [label="/\\ n = 2\n/\\ x = << [k |-> \"one\"],\n   [k |-> \"two\"] >>"];
-53 -> -10 [label="Step",color="black",fontcolor="black"];
-53 -> -10 [label="Other",color="black",fontcolor="black"];
-10 -> -10 [label="Finished",color="black",fontcolor="black"];
7 [label="/\\ n = 1\n/\\ x = {}",style = filled]
7 -> -10 [label="Step",color="black",fontcolor="black"];
{rank = same; -53;}
}
}
"""


def test_a_dumped_graph_is_read():
    graph = read_dot(DOT.splitlines(keepends=True))
    assert graph.states == [
        {"n": 1, "x": 'q"uo\\te\n -> 5 [label='},
        {"n": 2, "x": (Function({"k": "one"}), Function({"k": "two"}))},
        {"n": 1, "x": frozenset()},
    ]
    assert graph.initial == (0, 2)
    assert graph.edges == [Edge(0, "Step", 1), Edge(0, "Other", 1), Edge(2, "Step", 1)]


def test_a_step_to_a_state_that_was_not_dumped_is_refused():
    with pytest.raises(TlcCrashed, match="a step to a state that it didn't dump"):
        read_dot(['1 [label="x = 1",style = filled]', '1 -> 2 [label="Step"];'])
