"""Coverage goals over histories of many definitions: an off-by-one error in each number of the options changes the
output.

A random definition has too few histories to cover the goals of all its neighbours (definitions with an off-by-one
error). All definitions of the operator therefore share each goal: an off-by-one number, or a clock off by 1 ms, must
change the output of some history. A job with this off-by-one error then disagrees with the reference on that history.
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
"""The largest number of histories to run for a goal; a goal that none of these histories covers counts as missing."""

_Group: TypeAlias = list[tuple[History, Played]]


def neighbour_goals_of(registration: Registration, option_sets: Iterable[Options] | None = None) -> tuple[str, ...]:
    """Return the names of an operator's neighbour goals: `a smaller gap_ms differs`, `a clock 1 ms behind differs`.

    Args:
        registration: The operator.
        option_sets: The options of the operator; by default sets of options that contain every legal pair of values.

    Raises:
        BadInput: The operator refuses one of the sets of options.
    """
    sets = draw_definitions(registration, 0, 0) if option_sets is None else option_sets
    return tuple(dict.fromkeys(one.pooled for options in sets for one in neighbours(registration.name, options)))


def neighbours_met(
    histories: Sequence[History], played: Sequence[Played], most_plays: int = MOST_PLAYS
) -> dict[str, History]:
    """Return the goals of `neighbour_goals_of` that histories of an operator cover, each with the covering history.

    For each goal, the search tries the first history of each definition that has the goal, then each second history,
    and so on. In this order, most goals need only a few runs, even with many histories.

    Args:
        histories: Histories of the operator, each with its own options.
        played: The reference's run of each history.
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
    """Yield the histories on which a neighbour's output differs; try one history of each definition, then a second, and
    so on.
    """
    rounds = zip_longest(*(zip(repeat(neighbour), group, strict=False) for neighbour, group in of_goal))
    in_turn = (one for of_round in rounds for one in of_round if one is not None)
    for neighbour, (history, own) in islice(in_turn, most_plays):
        if neighbour.differs(history, emitted(own)):
            yield history
