"""Draw clock schedules for queries of one or many definitions; an edge is a time at which the clock closes windows.

A job that closes a window 1 ms late differs if the clock is exactly at an edge. A job that closes a window 1 ms early
differs if the clock is 1 ms before an edge. A schedule has too few batches for the edges of many definitions, so
several schedules are drawn together, each for one query. Each clock value is at or next to as many edges as possible
that no earlier value has hit.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from math import fsum
from typing import TypeAlias

from ..registration.domain import Aligned
from ..registration.registration import Options, registration_of

OnBoard: TypeAlias = tuple[str, Options]
"""A definition in a shared query: the operator's name, and its options."""

BATCHES = 5
"""The number of batches in the schedule of one definition; each batch costs about a second, even an empty batch."""
FEWEST_BATCHES, MOST_BATCHES = 4, 10
STEPS = ("still", "one", "near", "distance", "far", "past everything")
"""The steps of the clock between batches, except for steps to an edge."""

_Goal: TypeAlias = tuple[Aligned, int]
"""A series of edges, and the clock's distance from such an edge (ms): 0, -1 or 1."""
_PLACES = {0: "at", -1: "1 ms before", 1: "1 ms after"}


def edge_goals(on_board: OnBoard) -> tuple[str, ...]:
    """Return the names of a definition's clock goals, such as `clock at the end of a window`.

    For each series of fixed edges, such as window ends, the goals are clocks at an edge, 1 ms before, and 1 ms after. A
    definition whose edges depend on the records, such as session ends, has no clock goals.
    """
    return tuple(dict.fromkeys(_text(aligned, by) for aligned in _aligned(on_board) for by in _PLACES))


def edges_met(on_board: OnBoard, schedule: Sequence[int]) -> set[str]:
    """Return the `edge_goals` that a schedule covers; its last value doesn't count, because another batch may
    follow.
    """
    hit = _hit(_aligned(on_board), schedule[:-1])
    return {_text(aligned, by) for aligned, by in hit}


def draw_schedule(operator: str, options: Options, seed: int, batches: int = BATCHES) -> tuple[int, ...]:
    """Draw a clock schedule for a definition: the clock (ms) after every batch.

    The clock values never decrease. For each series of fixed edges, such as the ends of fixed windows, values are at an
    edge and 1 ms before an edge. Other values leave the clock unchanged, or move it by 1 ms, by at most one of the
    definition's distances, or farther.

    Args:
        operator: The operator's name.
        options: Its options.
        seed: The seed; the same seed draws the same schedule.
        batches: The number of batches.
    """
    definition, domain = registration_of(operator).declare(options), registration_of(operator).domain
    generator = random.Random(seed)
    aligned, reach = domain.aligned(definition), domain.reach(definition)
    distances = (*domain.distances(definition), *domain.edges(definition))
    # A clock at an edge reveals closing 1 ms late; a clock 1 ms before an edge reveals closing 1 ms early.
    around = [(one, by) for one in aligned for by in (0, -1)] + [(one, 1) for one in aligned[:1]]
    batches = max(batches, 2 * len(aligned))
    around = around[:batches]
    steps = ["edge"] * len(around) if aligned else ["far", "distance"]
    spare = ["still", "one", "near", "distance", "far", *["edge"] * bool(aligned)]
    steps += [generator.choice(spare) for _ in range(batches - len(steps))]
    generator.shuffle(steps)
    generator.shuffle(around)
    edges, schedule = cycle(around), list[int]()
    for step in steps[:batches]:
        least = _least(schedule, reach, generator)
        if step == "edge":
            edge, by = next(edges)
            schedule.append(_next(edge, by, least + generator.choice((0, 1, generator.randint(0, reach)))))
        else:
            schedule.append(least + _moved(step, distances, min(distances), reach, generator))
    return tuple(schedule)


def draw_schedules_for(definitions: Iterable[OnBoard], count: int, seed: int) -> list[tuple[int, ...]]:
    """Draw clock schedules for several queries, each of which runs all the given definitions.

    A schedule contains the clock (ms) after each of 4 to 10 batches, and its values never decrease. If fixed edges
    exist, about half of the values are at an edge, or 1 ms before or after it. Other values leave the clock unchanged,
    or move it by 1 ms, by at most one distance of a definition, farther, or past all open state.

    Args:
        definitions: The definitions.
        count: The number of schedules.
        seed: The seed of the draws.
    """
    aboard = list(definitions)
    generator = random.Random(seed)
    edges = list(dict.fromkeys(aligned for one in aboard for aligned in _aligned(one)))
    distances, reach = _times(aboard)
    steps, hits = cycle(generator.sample(STEPS, len(STEPS))), Counter[_Goal]()
    schedules = []
    for _ in range(count):
        batches = generator.randint(FEWEST_BATCHES, MOST_BATCHES)
        kinds = ["edge"] * (batches // 2 if edges else 0)
        kinds += [next(steps) for _ in range(batches - len(kinds) - 1)]
        generator.shuffle(kinds)
        schedule: list[int] = []
        for kind in [*kinds, next(steps)]:
            least = _least(schedule, reach, generator)
            if kind == "edge":
                schedule.append(_at_most_edges(edges, hits, least, reach, generator))
            else:
                schedule.append(least + _moved(kind, distances, distances[len(distances) // 2], reach, generator))
            hits.update(_hit(edges, schedule[-1:]))
        schedules.append(tuple(schedule))
    return schedules


def _aligned(on_board: OnBoard) -> tuple[Aligned, ...]:
    registration = registration_of(on_board[0])
    return registration.domain.aligned(registration.declare(on_board[1]))


def _times(aboard: Sequence[OnBoard]) -> tuple[list[int], int]:
    """Return the distances and edges (ms) of all definitions, and the largest reach (ms)."""
    distances, reach = {1}, 1
    for operator, options in aboard:
        domain, definition = registration_of(operator).domain, registration_of(operator).declare(options)
        distances.update(domain.distances(definition), domain.edges(definition))
        reach = max(reach, domain.reach(definition))
    return sorted(distances), reach


def _least(schedule: Sequence[int], reach: int, generator: random.Random) -> int:
    """Return the smallest possible next value of the clock (ms); the first value is larger than the reach of all
    definitions.
    """
    return schedule[-1] if schedule else reach + generator.randint(1, reach)


def _moved(kind: str, distances: Sequence[int], near: int, reach: int, generator: random.Random) -> int:
    """Draw the step of the clock (ms) for a kind of step."""
    match kind:
        case "one":
            return 1
        case "near":
            return generator.randint(1, max(1, near))
        case "distance":
            return max(0, generator.choice(distances) + generator.randint(-1, 1))
        case "far":
            return generator.randint(1, 3 * reach)
        case "past everything":
            return 4 * reach + generator.randint(1, reach)
    return 0


def _at_most_edges(
    edges: Sequence[Aligned], hits: Mapping[_Goal, int], least: int, reach: int, generator: random.Random
) -> int:
    """Return a clock value (ms) at or next to the most edges; edges with fewer hits so far count more."""
    values = {
        _next(aligned, by, start)
        for aligned in edges
        for by in _PLACES
        for start in (least, least + generator.randint(0, reach))
    }
    # Use `fsum`, whose result doesn't depend on the order of the set that `_hit` returns.
    worth = {value: fsum(0.1 ** hits[goal] for goal in _hit(edges, (value,))) for value in sorted(values)}
    return generator.choice([value for value in worth if worth[value] == max(worth.values())])


def _next(aligned: Aligned, by: int, least: int) -> int:
    """Return the first value (ms), at or after `least`, that is `by` ms after an edge."""
    first = aligned.offset + by
    return first + max(0, -(-(least - first) // aligned.step)) * aligned.step


def _hit(edges: Iterable[Aligned], values: Iterable[int]) -> set[_Goal]:
    """Return the edges that the values hit exactly, 1 ms before, or 1 ms after."""
    return {
        (aligned, by)
        for value in values
        for aligned in edges
        for by in _PLACES
        if value - by >= aligned.offset and (value - by - aligned.offset) % aligned.step == 0
    }


def _text(aligned: Aligned, by: int) -> str:
    return f"clock {_PLACES[by]} {aligned.of}"
