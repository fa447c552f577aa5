"""The witness that runs Kafka Streams on its own broker, and returns the table once no record waits.

Histories of the foreign-key join share an application, each under separate keys; at a cut, all earlier records have
been processed. Within a batch, changes are sent immediately one after another, so an inner join may end stale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.core.history import ClockAdvance, Cut, History
from ....reference.core.operator import operator_named
from ....reference.core.records import Record, Table
from ....specs.races import OPERATOR
from ...outcomes.outcomes import Grain, Outcome
from ..base import Witness
from ..run_options import PLAIN, RunOptions
from .application import FOREIGN_KEY, INNER, INNER_BY_LEFT, LEFT, Settings, running
from .clients import clients_of
from .cohort import Pauses, play, tables


@dataclass(frozen=True)
class KafkaBrokerWitness(Witness):
    """Kafka Streams on a running broker.

    Attributes:
        settings: The settings of the application; each history has its own join and foreign key.
    """

    settings: Settings = field(default_factory=Settings)

    name = "kafka-broker"
    grain = Grain.END

    def refuses(self, history: History) -> str | None:
        """Return the reason why the witness can't run a history, or None if it can.

        Raises:
            BadInput: The history's operator or options are unknown or invalid.
        """
        operator_named(history.operator).declare(history.options)
        if history.operator != OPERATOR:
            return f"kafka-broker has no {history.operator}: it only plays {OPERATOR}"
        reason = refusal(history, _join(history))
        return None if reason is None else f"kafka-broker: {reason}"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the table of each history once no record waits, at grain `END`; the first call starts the broker.

        Raises:
            BadInput: A history is refused.
            MissingTool: The jars can't be downloaded, or there is no Java to run them.
            StreamproofError: The broker or Kafka Streams failed, or didn't process all records.
        """
        for history in histories:
            if (reason := self.refuses(history)) is not None:
                raise BadInput(f"{history.name}: {reason}")
        alike: dict[Settings, list[int]] = defaultdict(list)
        for index, history in enumerate(histories):
            named = {"join": _join(history), "foreign_key": str(history.options["foreign_key"])}
            alike[Settings(**{**vars(self.settings), **named})].append(index)
        outcomes: dict[int, Outcome] = {}
        if not histories:
            return []
        with clients_of(None, lambda step: None) as clients:
            for settings, indexes in alike.items():
                cohort = [histories[index] for index in indexes]
                with running(clients, settings) as application:
                    play(application, cohort, Pauses(), seed=0, own_times=True)
                    for index, rows in zip(indexes, tables(application.output(), cohort), strict=True):
                        table: Table = {(key, None): row for key, row in rows.items()}
                        outcomes[index] = Outcome(histories[index].name, Grain.END, final=table, knows_dropped=False)
        return [outcomes[index] for index in range(len(histories))]


def options_of(join: str, foreign_key: str = FOREIGN_KEY) -> dict[str, Any]:
    """Return the options of the reference's foreign-key join for a join of the application.

    Args:
        join: One of `JOINS`.
        foreign_key: The field of the left value that contains the right key.
    """
    if join == LEFT:
        return {"foreign_key": foreign_key, "join": "left", "null_foreign_key": "keep"}
    return {"foreign_key": foreign_key, "join": "inner"}


def refusal(history: History, join: str) -> str | None:
    """Return the reason why an application with this join can't run a history (None: the application can run it)."""
    if history.operator != OPERATOR:
        return f"it is a history of {history.operator}, but a broker only plays {OPERATOR}"
    if history.options.get("join", "inner") != options_of(join)["join"]:
        other = "left" if join in (INNER, INNER_BY_LEFT) else "inner"
        return f"it is a history of the {other} join: use --join {other}"
    if history.options.get("protocol", "kip") != "kip":
        return f"Kafka has no protocol {history.options['protocol']!r}: it follows KIP-213's instructions, protocol kip"
    if history.has_schedule or not all(isinstance(line, Record | Cut | ClockAdvance) for line in history.lines):
        return "a broker decides when a message arrives: leave delivery manual and the deliver lines out"
    if any(record.key is None for record in history.records):
        return "a record without a key can't be assigned to its history: leave it out"
    if history.options.get("null_foreign_key") == "ignore" and join == LEFT and _loses_key(history):
        return "Kafka has no left join that ignores null foreign keys: use null_foreign_key keep"
    return None


def _loses_key(history: History) -> bool:
    join: Any = operator_named(OPERATOR).declare(history.options)
    rows = (record.value for record in history.records if record.input == "left" and record.value is not None)
    return any(join.foreign_key_of(value) is None for value in rows)


def _join(history: History) -> str:
    return LEFT if history.options.get("join") == "left" else INNER
