from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from streamproof.properties.generators.coverage import count_goals_met
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.reference.core.history import History, Line

SCHEDULE = (20, 45, 45, 90, 140)
SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, SCHEDULE)
Planted = Callable[[History], bool]


class Asked:
    """A planted failure, which also remembers every round of candidates."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.rounds: list[list[History]] = []

    def __call__(self, candidates: Sequence[History]) -> list[bool]:
        self.rounds.append(list(candidates))
        return [self.planted(candidate) for candidate in candidates]


@cache
def goals_of(lines: tuple[Line, ...]) -> Counter[str]:
    """The coverage goals that a history of SETTINGS meets: many tests ask for those of the same candidates."""
    return count_goals_met([History("session_windows", SETTINGS.options, lines, "batch")])


def merges_three(history: History) -> bool:
    return goals_of(history.lines)["merge of three or more"] > 0


def has_five_records_of_key_b(history: History) -> bool:
    return sum(record.key == "b" for record in history.records) >= 5


def failing(planted: Planted, arrivals: int = 20, seed: int = 1) -> History:
    profile = HistorySettings("session_windows", SETTINGS.options, SCHEDULE, arrivals)
    return next(history for history in draw_histories(profile, 500, seed) if planted(history))
