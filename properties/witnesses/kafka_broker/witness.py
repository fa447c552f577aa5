"""The witness that runs Kafka Streams on a broker of its own: it returns the table once nothing moves.

Histories of the foreign-key join share an application, each under keys of its own; at a cut, everything before it has
been processed. Within a batch the changes come back to back, so that an inner join may end stale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....reference.core.errors import BadInput
from ....reference.core.history import History
from ....reference.core.operator import operator_named
from ....reference.core.records import Table
from ....specs.races import OPERATOR
from ...outcomes.outcomes import Grain, Outcome
from ..base import Witness
from ..run_options import PLAIN, RunOptions
from .application import INNER, LEFT, Settings, running
from .cohort import Pauses, play, tables
from .races import refusal
from .run import clients_of


@dataclass(frozen=True)
class KafkaBrokerWitness(Witness):
    """Kafka Streams on a running broker.

    Attributes:
        settings: How the application runs; each history has its own join and foreign key.
    """

    settings: Settings = field(default_factory=Settings)

    name = "kafka-broker"
    grain = Grain.END

    def refuses(self, history: History) -> str | None:
        """Return the reason why the witness can't run a history, or None if it can.

        Raises:
            BadInput: The history's operator or options are unknown or refused.
        """
        operator_named(history.operator).declare(history.options)
        if history.operator != OPERATOR:
            return f"kafka-broker has no {history.operator}: it plays {OPERATOR} alone"
        reason = refusal(history, _join(history))
        return None if reason is None else f"kafka-broker: {reason}"

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the table of each history once nothing moves, at grain `END`; the broker is started for it.

        Raises:
            BadInput: A history is refused.
            MissingTool: The jars can't be fetched, or there is no Java to run them.
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


def _join(history: History) -> str:
    return LEFT if history.options.get("join") == "left" else INNER
