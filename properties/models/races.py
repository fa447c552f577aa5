"""Play the races of the foreign-key join: each race by its schedule, or in every order of its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ...reference.core.play import play
from ...reference.core.records import Key
from ...reference.foreign_key_protocol import Protocol
from ...specs.races import RACES, Race, interleavings, meant, values_of
from ...specs.replays.foreign_key_join import completed
from ..witnesses.kafka.builder import KafkaDialect
from ..witnesses.kafka.versions import asks_as_3_9_0, release, version_in_use
from ..witnesses.kafka.witness import KafkaWitness

Player: TypeAlias = Literal["reference", "kafka"]


class Raced(NamedTuple):
    """The result of a race.

    Attributes:
        race: The race.
        played: The number of orders of the race's messages that were played.
        wrong: The number of orders whose final result isn't the join of the tables.
        shown: The final values by key of the first wrong order, or of the first order if none is wrong.
        meant: The correct values by key.
    """

    race: Race
    played: int
    wrong: int
    shown: Mapping[Key | None, Any]
    meant: Mapping[Key | None, Any]


def raced(
    races: Sequence[Race],
    on: Player,
    join: str = "inner",
    every: bool = False,
    version: str | None = None,
    answered: bool = False,
) -> list[Raced]:
    """Play races, and judge the final values; timestamps aren't judged, because they depend on the order of messages.

    Args:
        races: The races.
        on: The code that plays the races: `reference` or `kafka`.
        join: `inner` or `left`. A race of one join (inner or left) can also be played on the other join. Deliveries
            without a waiting message are then skipped, and messages that wait at the end are delivered.
        every: Whether to play the races in every order of their messages, instead of their own schedules.
        version: The release of Kafka; None for the current release.
        answered: Whether Kafka's inner join is changed to respond to every change of a left row; the join then sends
            more messages, so a race has more orders.

    Raises:
        MissingTool: Kafka Streams is requested, but isn't installed.
    """
    histories = [race.history(join) for race in races]
    results: list[list[Any]]
    if on == "kafka":
        version = version_in_use() if version is None else version
        kafka = KafkaWitness(version=version, dialect=KafkaDialect(answers=answered))
        outcomes = kafka.interleavings(histories) if every else [[one] for one in kafka.complete(histories)]
        results = [[one.result for one in of_race] for of_race in outcomes]
    else:
        each = [list(interleavings(one)) if every else [completed(one)] for one in histories]
        results = [[play(one, Protocol).result for one in of_race] for of_race in each]
    found = []
    for race, history, of_race in zip(races, histories, results, strict=True):
        right = values_of(meant(history))
        shown = [values_of(table) for table in of_race]
        wrong = [one for one in shown if one != right]
        found.append(Raced(race, len(shown), len(wrong), (wrong or shown)[0], right))
    return found


def races_of(version: str) -> list[tuple[Raced, bool]]:
    """Play each race, in its join and in every order of its messages, on a release of Kafka.

    Returns:
        The result of each race, and whether the release is known to have the race.

    Raises:
        BadInput: The version isn't a release, or is too old.
        MissingTool: The release of Kafka Streams isn't installed.
    """
    found: list[Raced] = []
    for join in ("inner", "left"):
        found += raced([race for race in RACES.values() if race.join == join], "kafka", join, True, version)
    return [(one, is_in(one.race, version)) for one in found]


def is_in(race: Race, version: str) -> bool:
    """Return whether a release of Kafka is known to have a race, in the race's join."""
    if race.join == "left":  # before 3.7 a left join sent no message to the right key that a row had left
        return asks_as_3_9_0(version) and release(version) >= (3, 7)
    return race.name not in ("move-update", "right-delete-update") or not asks_as_3_9_0(version)
