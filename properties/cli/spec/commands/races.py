"""The command `spec races`: the races of the foreign-key join, on the reference or on Kafka's own code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from .....reference.core.errors import BadInput, MissingTool
from ....witnesses.kafka.versions import DEFAULT, use_version, version_in_use
from ...options import KafkaVersion
from ...terminal import EXITS, STYLES, results, steps
from ..printing import count_of

if TYPE_CHECKING:
    from ....models.races import Raced

PlayedOn = StrEnum("PlayedOn", {"REFERENCE": "reference", "KAFKA": "kafka"})
Join = StrEnum("Join", "INNER LEFT")


def play_races(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[RACE]…", help="Races, such as delete-insert; all by default.")
    ] = None,
    on: Annotated[PlayedOn, typer.Option("--on", help="The code that the races are played on.")] = PlayedOn.REFERENCE,
    join: Annotated[Join, typer.Option(help="The join: an inner join ends stale, a left join doesn't.")] = Join.INNER,
    every: Annotated[
        bool,
        typer.Option("--every-interleaving", help=("Play every order of the messages, not only the race's own order.")),
    ] = False,
    answered: Annotated[
        bool,
        typer.Option(
            "--answered",
            help="Change Kafka's inner join so that it answers every change of a left row, and ends right.",
        ),
    ] = False,
    kafka_version: KafkaVersion = None,
) -> None:
    """Play the races of the foreign-key join, message by message, and print each result when no message waits.

    Exits 0 if each race ends as known (an inner join stale, a left join right), 1 if a race ends differently, 2 if
    Kafka Streams can't run here.
    """
    from .....specs.races import chosen
    from ....models.races import is_in, raced

    if answered and (on is not PlayedOn.KAFKA or join is not Join.INNER):
        raise BadInput("--answered changes the inner join of Kafka's code: give --on kafka, and leave out --join")
    use_version(kafka_version)
    races = chosen(names or [], join.value)
    with steps() as progress:
        progress(f"{count_of(len(races), 'race')} of the {join.value} join on {on.value}")
        try:
            found = raced(races, on.value, join.value, every, answered=answered)
        except MissingTool as missing:
            results.out(f"Kafka Streams can't be asked: {missing}")
            raise typer.Exit(EXITS["inconclusive"]) from None
    results.print(_table(found, every))
    version = version_in_use() if on is PlayedOn.KAFKA else DEFAULT
    known = [one.race.join == join.value and is_in(one.race, version) and not answered for one in found]
    as_known = [bool(one.wrong) == can for one, can in zip(found, known, strict=True)]
    verdict = "conforms" if all(as_known) else "violated"
    played, wrong = sum(one.played for one in found), sum(one.wrong for one in found)
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/] {join.value} join on {on.value}{', answered' if answered else ''}: "
        f"{wrong:,} of {count_of(played, 'order')} end wrong, "
        f"in {sum(bool(one.wrong) for one in found)} of {count_of(len(found), 'race')}; "
        f"known is that {'each' if all(known) else sum(known) or 'none'} can"
    )
    raise typer.Exit(EXITS[verdict])


def _table(found: list[Raced], every: bool) -> Table:
    table = Table("race", "asks", "then silent", *(["played", "wrong"] if every else []), "shown at the end", "meant")
    for one in found:
        counts = [f"{one.played:,}", f"{one.wrong:,}"] if every else []
        race = one.race
        table.add_row(race.name, race.asks, race.silent, *counts, _shown(one.shown), _shown(one.meant))
    return table


def _shown(table: Mapping[Any, Any]) -> str:
    """Return a table in the notation of the documentation, such as `l: (a|r1, x)`."""
    return ", ".join(f"{key}: {_pair(*pair)}" for key, pair in table.items()) or "nothing"


def _pair(left: Mapping[str, Any], right: Any) -> str:
    named = "null" if left["foreign_key"] is None else left["foreign_key"]
    return f"({left['value']}|{named}, {json.dumps(right) if right is None else right})"
