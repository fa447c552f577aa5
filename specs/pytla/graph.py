"""The state graph of a small model, and its behaviours."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .cover import Acyclic, Edge, cover
from .errors import CyclicGraph, TlcCrashed, unreadable
from .results import Step, Trace
from .tlc_error import ValueSyntaxError
from .values import TlaValue, parse_state


@dataclass(frozen=True)
class StateGraph:
    """All states of a model and the steps between them.

    The graph omits steps that change nothing. So a behaviour that ends by repeating its state for ever has a last
    state.

    Attributes:
        states: Every reachable state, in TLC's order.
        initial: The indexes of the initial states in `states`.
        edges: The steps. Several actions may lead from one state to the same next state.
    """

    states: Sequence[Mapping[str, TlaValue]]
    initial: tuple[int, ...]
    edges: Sequence[Edge]

    @cached_property
    def leaving(self) -> Sequence[Sequence[int]]:
        """The indexes in `edges` of the steps that leave each state."""
        leaving: list[list[int]] = [[] for _ in self.states]
        for number, edge in enumerate(self.edges):
            leaving[edge.source].append(number)
        return leaving

    @cached_property
    def order(self) -> Sequence[int]:
        """The states as indexes in a topological order. Raises `CyclicGraph` if there is no such order."""
        missing = [0] * len(self.states)
        for edge in self.edges:
            missing[edge.target] += 1
        ready = [state for state, count in enumerate(missing) if count == 0]
        order: list[int] = []
        for state in ready:  # which grows
            order.append(state)
            for number in self.leaving[state]:
                target = self.edges[number].target
                missing[target] -= 1
                if missing[target] == 0:
                    ready.append(target)
        if len(order) < len(self.states):
            raise self._cyclic({state for state, count in enumerate(missing) if count})
        return order

    def count_behaviours(self) -> int:
        """Count the maximal behaviours, without enumerating them.

        A behaviour is maximal when it starts in an initial state and its last state has no successor. Two behaviours
        with the same states but different actions count as two.

        Raises:
            CyclicGraph: There are infinitely many behaviours.
        """
        return sum(self.ways[state] for state in self.initial)

    @cached_property
    def ways(self) -> Sequence[int]:
        """Return for each state the number of paths to an end. Raises `CyclicGraph` if the number is infinite."""
        ways = [0] * len(self.states)
        for state in reversed(self.order):
            leaving = self.leaving[state]
            ways[state] = sum(ways[self.edges[number].target] for number in leaving) if leaving else 1
        return ways

    def behaviours(self) -> Iterator[Trace]:
        """Yield every maximal behaviour, depth first, in the order of `edges`.

        Raises:
            CyclicGraph: There are infinitely many behaviours.
        """
        _ = self.order  # raises `CyclicGraph` before the first behaviour
        for first in self.initial:
            path: list[int] = []
            waiting = [iter(self.leaving[first])]
            if not self.leaving[first]:
                yield self._trace(first, path)
            while waiting:
                number = next(waiting[-1], None)
                if number is None:
                    waiting.pop()
                    if path:
                        path.pop()
                    continue
                path.append(number)
                leaving = self.leaving[self.edges[number].target]
                if leaving:
                    waiting.append(iter(leaving))
                else:
                    yield self._trace(first, path)
                    path.pop()

    def sample(self, count: int, seed: int) -> Iterator[Trace]:
        """Yield random maximal behaviours with equal probability; all behaviours if there are no more.

        The random behaviours are in the order of the method `behaviours`, so that consecutive behaviours share many
        steps.

        Args:
            count: The number of different behaviours.
            seed: The same seed gives the same behaviours.

        Raises:
            CyclicGraph: There are infinitely many behaviours.
        """
        total = self.count_behaviours()
        generator = random.Random(seed)
        chosen: set[int] = set(range(total)) if total <= count else set()
        while len(chosen) < min(count, total):
            chosen.add(generator.randrange(total))
        yield from map(self._behaviour, sorted(chosen))

    def _behaviour(self, number: int) -> Trace:
        """Return a maximal behaviour by its number in the order of `behaviours`."""
        first = self.initial[0]
        for first in self.initial:
            if number < self.ways[first]:
                break
            number -= self.ways[first]
        path: list[int] = []
        state = first
        while self.leaving[state]:
            for edge in self.leaving[state]:
                target = self.edges[edge].target
                if number < self.ways[target]:
                    path.append(edge)
                    state = target
                    break
                number -= self.ways[target]
        return self._trace(first, path)

    def covering(self) -> list[Trace]:
        """Return a smallest set of maximal behaviours that together cover every edge, and so every state.

        The result is the same every time.

        Raises:
            CyclicGraph: There are infinitely many behaviours.
        """
        return [
            self._trace(first, path)
            for first, path in cover(Acyclic(self.initial, self.edges, self.leaving, self.order))
        ]

    def _trace(self, first: int, path: Sequence[int]) -> Trace:
        steps = [Step(1, "Initial", self.states[first])]
        for number, index in enumerate(path, 2):
            edge = self.edges[index]
            steps.append(Step(number, edge.action, self.states[edge.target]))
        return Trace(tuple(steps))

    def _cyclic(self, left: set[int]) -> CyclicGraph:
        # Some of the remaining states only follow a cycle, so search backward, which reaches only states before or on a
        # cycle.
        before: dict[int, int] = {}
        for edge in self.edges:
            if edge.source in left and edge.target in left:
                before.setdefault(edge.target, edge.source)
        state = min(left)
        seen: dict[int, int] = {}
        walk: list[int] = []
        while state not in seen:
            seen[state] = len(walk)
            walk.append(state)
            state = before[state]
        cycle = tuple(reversed(walk[seen[state] :]))
        error = CyclicGraph(
            f"the state graph has a cycle of {len(cycle)} states, so it has infinitely many behaviours: bound the "
            "model, for example with a counter."
        )
        error.states = cycle
        return error


_LABEL = r'label="((?:[^"\\]++|\\.)*+)"'
_NODE = re.compile(rf"(-?\d+) \[(?:[^\"]*,)?{_LABEL}(.*)")
_EDGE = re.compile(rf"(-?\d+) -> (-?\d+)(?: \[(?:[^\"]*,)?{_LABEL})?")


def read_dot(lines: Iterable[str]) -> StateGraph:
    """Read a state graph in the format of `-dump dot,actionlabels`; every distinct value is parsed once."""
    indices: dict[str, int] = {}
    texts: list[str | None] = []
    initial: list[int] = []
    edges: dict[Edge, None] = {}
    actions: dict[str, str] = {}

    def index_of(identity: str) -> int:
        index = indices.setdefault(identity, len(indices))
        if index == len(texts):
            texts.append(None)
        return index

    line = ""
    for line in lines:
        if edge := _EDGE.match(line):
            source, target = index_of(edge[1]), index_of(edge[2])
            if source != target:
                label = edge[3] or ""
                action = actions.get(label)
                if action is None:
                    action = actions[label] = _unescaped(label)
                edges[Edge(source, action, target)] = None
        elif node := _NODE.match(line):
            index = index_of(node[1])
            if texts[index] is None:
                texts[index] = node[2]
            if "filled" in node[3] and index not in initial:
                initial.append(index)
    known: dict[str, tuple[str, TlaValue]] = {}
    states = []
    for text in texts:
        if text is None:
            raise TlcCrashed("TLC dumped a step to a state that it didn't dump: try another tla2tools.jar.")
        try:
            states.append(parse_state(_unescaped(text), known))
        except ValueSyntaxError as error:
            raise unreadable("a state of the graph", error) from None
    if line.strip() != "}":
        raise TlcCrashed("TLC's dump of the state graph is truncated: is the disk full? Run it again.")
    return StateGraph(states, tuple(initial), list(edges))


def _unescaped(label: str) -> str:
    # Escaped backslashes are replaced first, so that each other backslash begins an escape.
    return label.replace("\\\\", "\0").replace("\\n", "\n").replace('\\"', '"').replace("\0", "\\")
