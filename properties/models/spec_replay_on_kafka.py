"""Replay TLC's behaviours of the foreign-key join on Kafka's own processors: after each action, Kafka must match the
model.

The replay compares the result, and the waiting messages of each route: the instruction of a subscription, the right
value of a response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...reference.core.errors import BadInput
from ...reference.core.history import Delivery, History
from ...reference.core.records import Record
from ...specs.pytla import Trace
from ...specs.races import meant, values_of
from ...specs.replay import Disagreement, ReplayResult
from ...specs.replays.common import Action, ModelConstants, steps_of
from ...specs.replays.foreign_key_join import MODULE, ForeignKeyJoinReplay
from ...specs.replays.foreign_key_kafka import WITHOUT_KEY
from ..witnesses.kafka.builder import KafkaDialect
from ..witnesses.kafka.divergences import explained
from ..witnesses.kafka.interleaving import HeldPlay, KafkaRoute, Overtaking, written
from ..witnesses.kafka.interleaving import ScriptStep as Taken
from ..witnesses.kafka.witness import KafkaWitness
from ..witnesses.messages import staged_by_protocol
from .spec_replay import Behaviour, ShownTable, table_of, tables_of

COHORT = 2_000
"""The largest number of behaviours that are played together."""
CHANGED = "kafka 4.3 answer"
"""Kafka's protocol with the change that removes the inner join's races; the replay changes Kafka's processors too."""


def replay_on_kafka(traces: Iterable[Trace], constants: ModelConstants, module: str) -> ReplayResult:
    """Replay behaviours on Kafka Streams, action by action.

    Kafka's left join emits rows without a foreign key; if the constants ignore such rows, their results are removed. If
    the constants name a mutant, Kafka doesn't contain the bug: the behaviour's changes and deliveries must then end
    with the join of the tables. A difference that a named divergence (a known difference of Kafka from its documents)
    explains isn't a disagreement.

    Args:
        traces: The behaviours, which are read in groups, so there may be many.
        constants: The constants of the behaviours' model.
        module: The name of the model's module.

    Raises:
        BadInput: The module or the protocol has no replay on Kafka, or a step is unreadable.
        MissingTool: The jars of Kafka Streams can't be downloaded, or there is no Java to run them.
    """
    if module != MODULE:
        raise BadInput(f"the behaviours of {module} can't be replayed on Kafka Streams: use {MODULE}")
    of_module = ForeignKeyJoinReplay(constants)
    is_changed = of_module.code == CHANGED
    if not is_changed and of_module.join.join == "inner" and of_module.join.protocol == "answer":
        raise BadInput(
            f"no Kafka Streams has the protocol {constants['Protocol']!r}: replay its behaviours on the reference, or "
            f"those of the protocol kip, kafka 4.3 or {CHANGED}"
        )
    kafka = KafkaWitness(dialect=KafkaDialect(answers=is_changed and of_module.join.join == "inner"))
    count = actions = 0
    found: list[Disagreement] = []
    divergences: Counter[str] = Counter()
    remaining = enumerate(traces, 1)
    while cohort := [_behaviour(number, trace, of_module) for number, trace in islice(remaining, COHORT)]:
        kafka.play([one.play for one in cohort])
        for one in cohort:
            if (disagreement := one.compared()) is not None:
                names = one.explained()
                divergences.update(names)
                found += [] if names else [disagreement]
        count += len(cohort)
        actions += sum(len(one.steps) for one in cohort)
    return ReplayResult(count, actions, tuple(found), divergences)


def _taken(action: Action) -> Taken:
    """Return the step of a Kafka play for an action."""
    line = action.line
    if not isinstance(line, Delivery):
        return line
    foreign_key = None if line.foreign_key == WITHOUT_KEY else line.foreign_key
    delivery = line._replace(foreign_key=foreign_key)  # type: ignore[arg-type]
    return Overtaking(delivery, action.overtaken) if action.overtaken else delivery


@dataclass
class _Behaviour(Behaviour):
    """A behaviour, and its play on Kafka."""

    play: HeldPlay

    def compared(self) -> Disagreement | None:
        """Return the first disagreement of Kafka with the model."""
        if self.of_module.mutant != "none":
            expected = self._shown(values_of(meant(self.play.history)))
            return self.disagreement(self._shown(table_of(self.play.entries)), expected, "when no message waits")
        emitted = tables_of(self.play.entries, lambda entry: entry.arrival, len(self.steps))
        return self.first_disagreement(map(self._shown, emitted), map(_named, self.play.waiting))

    def explained(self) -> tuple[str, ...]:
        """Return the divergences that explain a difference in Kafka's output; empty if waiting messages differ too."""
        if self.of_module.code != "none":
            return ()
        history = self.play.history.with_lines(action.line for _, action in self.steps)
        waiting = [_named(one) for one in self.play.waiting]
        return explained(history, self.play.outcome) if waiting == staged_by_protocol(history).waiting else ()

    def _shown(self, result: ShownTable) -> ShownTable:
        join = self.of_module.join
        if join.join == "left" and not join.keeps_null:
            return {key: pair for key, pair in result.items() if pair[0]["foreign_key"] is not None}
        return result


def _behaviour(number: int, trace: Trace, of_module: ForeignKeyJoinReplay) -> _Behaviour:
    steps = list(steps_of(trace, of_module))
    for step, action in steps:
        if action.overtaken and isinstance(action.line, Delivery) and action.line.foreign_key != WITHOUT_KEY:
            raise BadInput(
                f"step {step.number}: a message overtakes another on its route, but Kafka's topics keep their order: "
                "replay the behaviour on the reference"
            )
    keeps = {"protocol": "kip", **({"null_foreign_key": "keep"} if of_module.join.join == "left" else {})}
    records = tuple(action.line for _, action in steps if isinstance(action.line, Record))
    history = History(of_module.operator, {**of_module.options, **keeps}, records, name=f"behaviour {number}")
    is_mutant = of_module.mutant != "none"
    play = HeldPlay(
        written((_taken(action) for _, action in steps), completes=is_mutant),
        history,
        is_strict=False,
        is_watched=not is_mutant,
        keyless_waits=of_module.code != of_module.mutant,
    )
    return _Behaviour(number, of_module, steps, play)


def _named(waiting: Mapping[KafkaRoute, Any]) -> dict[Any, Any]:
    return {
        (channel, WITHOUT_KEY if foreign_key is None else foreign_key, key): messages
        for (channel, foreign_key, key), messages in waiting.items()
    }
