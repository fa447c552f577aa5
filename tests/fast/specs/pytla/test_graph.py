from __future__ import annotations

from graph_setup import acyclic, graph_of, numbers
from hypothesis import given

DIAMOND = graph_of([(0, "Up", 1), (0, "Down", 2), (1, "Down", 3), (2, "Up", 3), (3, "On", 4)])


def test_every_maximal_behaviour_is_walked_depth_first():
    assert [numbers(trace) for trace in DIAMOND.behaviours()] == [[0, 1, 3, 4], [0, 2, 3, 4]]
    first = next(DIAMOND.behaviours())
    assert [step.action for step in first] == ["Initial", "Up", "Down", "On"]
    assert [step.number for step in first] == [1, 2, 3, 4]
    assert (first.loop, first.stutters) == (None, False)


def test_behaviours_that_differ_only_by_action_are_two():
    graph = graph_of([(0, "A", 1), (0, "B", 1)])
    assert graph.count_behaviours() == 2
    assert [trace.steps[1].action for trace in graph.behaviours()] == ["A", "B"]
    assert len(graph.covering()) == 2


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
