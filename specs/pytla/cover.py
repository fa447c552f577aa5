"""The smallest number of maximal paths of an acyclic graph that together cover every edge.

The paths form a flow of at least 1 over every edge, from initial states to states without successors. Every edge first
gets a flow of 1. Then a state with more inflow than outflow has a surplus, and a state with more outflow than inflow
has a deficit. A path that starts at a state reduces the state's deficit by 1. So a maximum flow (Dinic's algorithm)
first moves surplus to deficits. New paths are needed only for the remaining deficits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Edge(NamedTuple):
    """An edge: the `action` that leads from one state to another, given as indexes of `StateGraph.states`."""

    source: int
    action: str
    target: int


class Acyclic(NamedTuple):
    """An acyclic graph, which has the same attributes as `StateGraph`, with states and edges as indexes."""

    initial: tuple[int, ...]
    edges: Sequence[Edge]
    leaving: Sequence[Sequence[int]]
    order: Sequence[int]


def cover(graph: Acyclic) -> list[tuple[int, list[int]]]:
    """Return the initial state of each path, and the indexes of the path's edges."""
    flow = _Flow(graph)
    flow.spread()
    starts = dict.fromkeys(graph.initial, 0)
    came_by = _shortest_from_initial(graph)
    leads_on = _shortest_to_the_end(graph)
    for state in range(len(graph.order)):
        for _ in range(flow.lacks[state]):
            at = state
            while (number := came_by[at]) >= 0:
                flow.carried[number] += 1
                at = graph.edges[number].source
            starts[at] += 1
        for _ in range(flow.spare[state]):
            at = state
            while (number := leads_on[at]) >= 0:
                flow.carried[number] += 1
                at = graph.edges[number].target
    paths: list[tuple[int, list[int]]] = []
    for first, count in starts.items():
        paths += [(first, _walk(graph, first, flow.carried)) for _ in range(count)]
        if not graph.leaving[first]:
            paths.append((first, []))
    return paths


def _walk(graph: Acyclic, first: int, carried: list[int]) -> list[int]:
    """Remove one path from the flow."""
    path: list[int] = []
    at = first
    while graph.leaving[at]:
        number = next(number for number in graph.leaving[at] if carried[number])
        carried[number] -= 1
        path.append(number)
        at = graph.edges[number].target
    return path


def _shortest_from_initial(graph: Acyclic) -> list[int]:
    """Return for each state the last edge of a shortest path from an initial state to the state; -1 for initial
    states.
    """
    came_by = [-2] * len(graph.order)
    reached = list(graph.initial)
    for state in reached:
        came_by[state] = -1
    for state in reached:  # which grows
        for number in graph.leaving[state]:
            target = graph.edges[number].target
            if came_by[target] == -2:
                came_by[target] = number
                reached.append(target)
    return came_by


def _shortest_to_the_end(graph: Acyclic) -> list[int]:
    """Return for each state the first edge of a shortest path to a state without successors; -1 for such states."""
    leads_on = [-1] * len(graph.order)
    length = [0] * len(graph.order)
    for state in reversed(graph.order):
        if graph.leaving[state]:
            number = min(graph.leaving[state], key=lambda number: length[graph.edges[number].target])
            leads_on[state] = number
            length[state] = length[graph.edges[number].target] + 1
    return leads_on


class _Flow:
    """The flow over every edge, and the surplus or deficit of each state."""

    def __init__(self, graph: Acyclic) -> None:
        self._graph = graph
        self.carried = [1] * len(graph.edges)
        balance = [0] * len(graph.order)
        # Flow may increase without limit along an edge, and decrease down to 1.
        self._arcs: list[list[tuple[int, int, bool]]] = [[] for _ in graph.order]
        for number, edge in enumerate(graph.edges):
            balance[edge.target] += 1
            balance[edge.source] -= 1
            self._arcs[edge.source].append((number, edge.target, True))
            self._arcs[edge.target].append((number, edge.source, False))
        # A path may end only at a state without successors, so its surplus needn't move.
        self.spare = [max(0, balance[state]) if graph.leaving[state] else 0 for state in range(len(balance))]
        self.lacks = [max(0, -balance[state]) for state in range(len(balance))]

    def spread(self) -> None:
        """Move as much flow as possible from surpluses to deficits."""
        while levels := self._levels():
            tried = [0] * len(self._arcs)
            for state, spare in enumerate(self.spare):
                while spare and self._push(state, levels, tried):
                    spare = self.spare[state]

    def _levels(self) -> list[int] | None:
        """Return each state's distance from a state with a surplus, or None if no deficit can be reached."""
        levels = [0 if spare else -1 for spare in self.spare]
        reached = [state for state, spare in enumerate(self.spare) if spare]
        met = False
        for state in reached:  # which grows
            met = met or self.lacks[state] > 0
            for number, other, forward in self._arcs[state]:
                if levels[other] < 0 and (forward or self.carried[number] > 1):
                    levels[other] = levels[state] + 1
                    reached.append(other)
        return levels if met else None

    def _push(self, first: int, levels: list[int], tried: list[int]) -> bool:
        """Move flow from `first` to a deficit along increasing levels; `tried` counts each state's exhausted edges."""
        path: list[tuple[int, bool]] = []
        states = [first]
        while states:
            state = states[-1]
            if self.lacks[state]:
                amount = min(self.spare[first], self.lacks[state])
                amount = min([amount, *(self.carried[number] - 1 for number, forward in path if not forward)])
                for number, forward in path:
                    self.carried[number] += amount if forward else -amount
                self.spare[first] -= amount
                self.lacks[state] -= amount
                return True
            arcs = self._arcs[state]
            while tried[state] < len(arcs):
                number, other, forward = arcs[tried[state]]
                if levels[other] == levels[state] + 1 and (forward or self.carried[number] > 1):
                    path.append((number, forward))
                    states.append(other)
                    break
                tried[state] += 1
            else:
                states.pop()
                if path:
                    path.pop()
                    tried[states[-1]] += 1
        return False
