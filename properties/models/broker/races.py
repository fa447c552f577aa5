"""Choose the histories to play on a broker: the races of KIP-213 by name, drawn histories, or a user's history files.

A race is played without the lines that deliver messages, because a test can't control when a broker delivers them. At a
cut, the player waits until all earlier records have been processed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ....reference.core.errors import BadInput
from ....reference.core.history import CUT, History, read_history
from ....reference.core.records import Record
from ....specs.races import OPERATOR, RACES, lines_of
from ...generators.draws import HistorySettings, draw_histories
from ...witnesses.kafka_broker.application import INNER
from ...witnesses.kafka_broker.witness import options_of, refusal

DRAWN = "drawn"
"""The name that selects randomly drawn histories."""
ARRIVALS = 12
"""The number of records of a drawn history; the second half is sent once the first half has been processed."""


@dataclass(frozen=True)
class PlayedHistories:
    """The histories to play under one name.

    Attributes:
        name: The name of the race or the file, or `drawn`.
        histories: The histories.
    """

    name: str
    histories: tuple[History, ...]


def chosen(names: Sequence[str], count: int, join: str, seed: int) -> list[PlayedHistories]:
    """Return the histories to play; without names, every race of the join. A left join plays the races of both joins.

    Args:
        names: The names of races, `drawn`, and paths of history files.
        count: The number of histories for each name: the repetitions of a race or file, or the number to draw for
            `drawn`.
        join: One of `JOINS`.
        seed: The seed of drawn histories.

    Raises:
        BadInput: A name is unknown, or a file's history can't be played on a broker; the message contains the remedy.
    """
    found = [_chosen(name, count, join, seed) for name in names or of_join(join)]
    repeated = [one.name for index, one in enumerate(found) if one.name in [other.name for other in found[:index]]]
    if repeated:
        raise BadInput(f"{repeated[0]} is named twice: name it once, and give the number of plays with --histories")
    if len(fields := {str(one.histories[0].options["foreign_key"]) for one in found}) > 1:
        raise BadInput(
            f"the histories name their right rows in different fields ({', '.join(sorted(fields))}): "
            "run a command for each field"
        )
    return found


def of_join(join: str) -> list[str]:
    """Return the names of the races for a join."""
    return [name for name, race in RACES.items() if join != INNER or race.join == INNER]


def _chosen(name: str, count: int, join: str, seed: int) -> PlayedHistories:
    if name in RACES:
        history = race(name, join)
    elif name == DRAWN:
        return PlayedHistories(name, tuple(drawn(count, join, seed)))
    elif name.endswith(".jsonl"):
        history = read_history(Path(name))
        if (reason := refusal(history, join)) is not None:
            raise BadInput(f"{name}: {reason}")
    else:
        raise BadInput(f"unknown race {name!r}: use {', '.join(RACES)}, {DRAWN}, or a history file (.jsonl)")
    return PlayedHistories(history.name, (history,) * count)


def race(name: str, join: str) -> History:
    """Return the history of a race: the initial rows, a cut, and the racing changes."""
    shown = sum(isinstance(line, Record) for line in lines_of(RACES[name].setup))
    records = RACES[name].history().records
    return History(OPERATOR, options_of(join), (*records[:shown], CUT, *records[shown:]), name=name)


def changes_of(name: str) -> str:
    """Return the changes of a race in the notation of `specs/findings.md`; empty for an unknown name."""
    words = RACES[name].schedule.split() if name in RACES else []
    return " ".join(word for word in words if not word.startswith((">", "<")))


def drawn(count: int, join: str, seed: int) -> list[History]:
    """Draw histories with a cut in the middle: the second half is sent after the first half has been processed."""
    settings = HistorySettings(OPERATOR, options_of(join), (30,), ARRIVALS, keys=("a", "b"))
    histories = []
    for history in draw_histories(settings, count, random.Random(f"{seed} broker").getrandbits(32)):
        records, half = history.records, ARRIVALS // 2
        histories.append(replace(history, lines=(*records[:half], CUT, *records[half:]), clock="stream_time"))
    return histories
