"""The numbers of an operator's options whose off-by-one changes the output, over histories of many definitions.

A drawn definition has too few histories to show each of its neighbours. Instead, each number of the operator, smaller
and larger, and each kind of edges, earlier and later, must change the output of a history of some definition. So a job
that is off by one in that number disagrees with the reference on that history, whatever the other numbers are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat, zip_longest
from typing import TypeAlias

from ...reference.core.history import History
from ...reference.core.play import Played
from ..registration.registration import Options, Registration
from .coverage import Neighbour, emitted, neighbours
from .options import draw_definitions

MOST_PLAYS = 2_000
"""The largest number of histories to run for a goal: a rarer goal counts as missing."""

_Group: TypeAlias = list[tuple[History, Played]]


def neighbour_goals_of(registration: Registration, option_sets: Iterable[Options] | None = None) -> tuple[str, ...]:
    """Return the names of an operator's neighbour goals: `a smaller gap_ms differs`, `a clock 1 ms behind differs`.

    Args:
        registration: The operator.
        option_sets: The operator's definitions; by default definitions that contain each pair of values.

    Raises:
        BadInput: The operator refuses options.
    """
    sets = draw_definitions(registration, 0, 0) if option_sets is None else option_sets
    return tuple(dict.fromkeys(one.pooled for options in sets for one in neighbours(registration.name, options)))


def neighbours_met(
    histories: Sequence[History], played: Sequence[Played], most_plays: int = MOST_PLAYS
) -> dict[str, History]:
    """Return the goals of `neighbour_goals_of` that histories of an operator meet, each with its history.

    The search tries a history of each definition with the goal, then the next history of each, and so on, until the
    goal is met. So each goal needs only a few runs, even with many histories.

    Args:
        histories: Histories of the operator, each with its own options.
        played: The reference's run of each.
        most_plays: The largest number of runs for a goal.
    """
    groups: dict[str, _Group] = defaultdict(list)
    for history, own in zip(histories, played, strict=True):
        groups[json.dumps([history.operator, history.options], sort_keys=True)].append((history, own))
    by_goal: dict[str, list[tuple[Neighbour, _Group]]] = defaultdict(list)
    for group in groups.values():
        for neighbour in neighbours(group[0][0].operator, group[0][0].options):
            by_goal[neighbour.pooled].append((neighbour, group))
    found = {goal: next(islice(_showing(of_goal, most_plays), 1), None) for goal, of_goal in by_goal.items()}
    return {goal: history for goal, history in found.items() if history is not None}


def _showing(of_goal: list[tuple[Neighbour, _Group]], most_plays: int) -> Iterator[History]:
    """Yield the histories for which a neighbour's output differs, a history of each definition in turn."""
    rounds = zip_longest(*(zip(repeat(neighbour), group, strict=False) for neighbour, group in of_goal))
    in_turn = (one for of_round in rounds for one in of_round if one is not None)
    for neighbour, (history, own) in islice(in_turn, most_plays):
        if neighbour.differs(history, emitted(own)):
            yield history
