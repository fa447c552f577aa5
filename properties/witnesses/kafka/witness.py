"""The witness on the real Kafka Streams, in its TopologyTestDriver, one record at a time.

Every history has a separate driver, because stream time never goes back; topologies are built once per operator and
options. Histories with manual delivery share a driver, and their messages wait outside the driver; see `interleaving`.
Keys are strings, values JSON text. Histories without a counterpart in Kafka Streams are refused with the reason.

Source: KIP-94, KIP-213, join semantics; for the behaviour of 4.3.1 see `docs/facts.md`, "Kafka Streams, observed".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.core.history import ClockAdvance, Cut, Delivery, History
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change, Key, Record, Window
from ...outcomes.outcomes import Grain, Outcome
from ...registration.kafka import Kafka
from ...registration.registration import registration_of
from ..base import Witness
from ..messages import Staged
from ..run_options import PLAIN, RunOptions
from .builder import KafkaDialect
from .interleaving import HeldPlay, PipedIn, every_interleaving, play_held, play_scripts, written
from .jvm import KafkaJvm, kafka_jvm
from .playing import functions_of, playing, topology_of
from .versions import release, version_in_use


@dataclass(frozen=True)
class KafkaWitness(Witness):
    """The real Kafka Streams.

    Attributes:
        dialect: The settings of Kafka Streams.
        version: The release, from 3.6 on; by default the option `--kafka-version` of this process, or the environment's
            release, or 4.3.1.

    Raises:
        BadInput: The version isn't a release, or is too old.
    """

    dialect: KafkaDialect = field(default_factory=KafkaDialect)
    version: str = field(default_factory=version_in_use)

    name = "kafka"
    grain = Grain.ARRIVAL

    def __post_init__(self) -> None:
        """Refuse a version that isn't a release."""
        release(self.version)

    def refuses(self, history: History) -> str | None:
        """Return the reason why Kafka Streams can't run a history, or None if it can.

        Raises:
            BadInput: The history is invalid: its operator, its options or a record.
        """
        name = history.operator
        definition = operator_named(name).declare(history.options)
        _check_records(history, definition)
        if history.clock != "stream_time":
            return f"kafka has no {history.clock} clock: its clock is stream time, which moves with every record"
        if any(isinstance(line, Delivery) for line in history.lines) and not history.has_schedule:
            return "kafka has no deliveries: its test driver delivers every message immediately"
        kafka = registration_of(name).kafka
        if kafka is None:
            return f"kafka has no {name}: use another witness"
        return next(iter(kafka.refusals(definition, history.records)), None)

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the real Kafka Streams' outcome of each history, arrival by arrival.

        Returns:
            Outcomes in the order of the histories, at grain `ARRIVAL`; Kafka counts dropped records only in a metric,
            so they aren't among the entries. For `sum`, `min` and `max` Kafka keeps the members in order, and Python
            computes the named aggregate; the last digit of a sum of floats may differ from a sum of sums.

        Raises:
            BadInput: Kafka has no counterpart for a history's operator, options, clock or lines; the message contains
                the reason.
            MissingTool: The jars of Kafka Streams can't be downloaded, or there is no Java to run them.
        """
        self._require_answerable(histories)
        if not histories:
            return []
        jvm = kafka_jvm(self.version)
        scheduled = [history for history in histories if history.has_schedule]
        held = iter(play_held(self.version, scheduled, self.dialect))
        return [
            next(held).outcome if history.has_schedule else _play(jvm, history, self.dialect) for history in histories
        ]

    def stage(self, histories: Sequence[History], strict: bool = True) -> list[Staged]:
        """Return the outcomes of histories with manual delivery, and the waiting messages after each arrival.

        Args:
            histories: The histories.
            strict: Whether a delivery from a route without waiting messages is refused, and not ignored.

        Raises:
            BadInput: As in `evaluate`; or a history's delivery isn't manual.
            MissingTool: As `evaluate`.
        """
        self._require_answerable(histories)
        for history in histories:
            if not history.has_schedule:
                raise BadInput(f"{history.name}: its messages are delivered immediately: use delivery manual")
        return play_held(self.version, histories, self.dialect, strict, watched=True)

    def play(self, plays: Sequence[HeldPlay]) -> None:
        """Run scripts of changes and deliveries on drivers whose messages wait outside; store the outcomes in the given
        plays.

        Raises:
            BadInput: As `evaluate`.
            MissingTool: As `evaluate`.
        """
        self._require_answerable([play.history for play in plays])
        play_scripts(self.version, plays, self.dialect)

    def complete(self, histories: Sequence[History]) -> list[Outcome]:
        """Return the outcomes of histories with manual delivery, after delivering the messages that wait at the end.

        A delivery from an empty route is ignored, because another release or dialect of Kafka may send other messages
        than the history names.

        Raises:
            BadInput: As `evaluate`.
            MissingTool: As `evaluate`.
        """
        plays = [HeldPlay(written(one.lines, completes=True), one, is_strict=False) for one in histories]
        self.play(plays)
        return [play.outcome for play in plays]

    def interleavings(self, histories: Sequence[History]) -> list[list[Outcome]]:
        """Return the outcomes of each history for every possible order of delivering Kafka's messages.

        Args:
            histories: Histories of the foreign-key join; their changes keep their order, and their deliveries are
                ignored.

        Raises:
            BadInput: As `evaluate`.
            MissingTool: As `evaluate`.
        """
        self._require_answerable(histories)
        played = every_interleaving(self.version, histories, self.dialect)
        return [[play.outcome for play in plays] for plays in played]

    def _require_answerable(self, histories: Sequence[History]) -> None:
        for history in histories:
            if (reason := self.refuses(history)) is not None:
                raise BadInput(f"{history.name}: {reason}")


def _check_records(history: History, definition: Any) -> None:
    arrivals = (line for line in history.lines if not isinstance(line, Cut))
    for arrival, record in enumerate(arrivals):
        if not isinstance(record, Record):
            continue
        try:
            if record.input not in definition.inputs:
                raise BadInput(f"unknown input {record.input!r}: use {' or '.join(definition.inputs)}")
            definition.check(record)
        except BadInput as error:
            raise BadInput(f"{history.name}: arrival {arrival}: {error}") from None


# A history goes to the JVM as one JSON text, and its outputs return as one JSON text.


def _play(jvm: KafkaJvm, history: History, dialect: KafkaDialect) -> Outcome:
    definition = operator_named(history.operator).declare(history.options)
    kafka = registration_of(history.operator).kafka
    assert kafka is not None
    keys = {record.key for record in history.records}
    # the key of records that only move stream time; such records' outputs don't belong to the history
    reserved = "heartbeat"
    while reserved in keys:
        reserved += "'"
    sends = list(_sends(history, definition, kafka, dialect, reserved))
    emitted = json.loads(_player(jvm, kafka, definition, dialect).apply(json.dumps([sent for _, _, sent in sends])))
    entries = [
        Entry(arrival, batch, change)
        for (arrival, batch, _), outputs in zip(sends, emitted, strict=True)
        for change in (_change(definition, kafka, *output) for output in outputs)
        if change.key != reserved
    ]
    return Outcome(history.name, Grain.ARRIVAL, entries, knows_dropped=False, is_stream=definition.is_stream)


def _sends(
    history: History, definition: Any, kafka: Kafka, dialect: KafkaDialect, reserved: Key
) -> Iterator[tuple[int, int, PipedIn]]:
    """Yield the records to send to the driver, each with its arrival and its batch."""
    clocks = kafka.clocks(definition)
    arrival = batch = 0
    for line in history.lines:
        if isinstance(line, Cut):
            batch += 1
            continue
        assert not isinstance(line, Delivery)
        beats = clocks if isinstance(line, ClockAdvance) else ()
        if isinstance(line, Record) and kafka.moves_all_clocks and not dialect.own_clocks:
            beats = tuple(name for name in clocks if name != line.input and line.key is not None)
        for name in beats:
            yield arrival, batch, (name, reserved, "0", line.timestamp)
        if isinstance(line, Record):
            yield arrival, batch, (line.input, line.key, kafka.sent(definition, line), line.timestamp)
        arrival += 1


def _change(definition: Any, kafka: Kafka, text: str | None, value: str | None, timestamp: int) -> Change:
    key, window = _windowed_key(text) if kafka.is_windowed and text is not None else (text, None)
    return Change(key, window, None if value is None else kafka.read(definition, key, value), timestamp)


def _windowed_key(text: str) -> tuple[Key, Window]:
    """Parse `[key@start/end]`; the key may contain any characters."""
    key, _, window = text[1:-1].rpartition("@")
    start, _, end = window.partition("/")
    return key, (int(start), int(end))


@lru_cache(maxsize=128)
def _player(jvm: KafkaJvm, kafka: Kafka, definition: Any, dialect: KafkaDialect) -> Any:
    """Return the java.util.function.Function that runs a history on a new driver."""
    functions = functions_of(jvm)
    play = functions.bound(playing(jvm), 1, *topology_of(jvm, kafka, definition, dialect))
    return functions.function(play)
