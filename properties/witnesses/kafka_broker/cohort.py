"""Runs a cohort on a broker: many histories at the same time, with distinct keys; each change is sent at its due
time.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from ....reference.core.history import History
from ....reference.core.records import Key, Record, Value
from ....specs.races import OPERATOR
from ...generators.cohorts import record_batches
from ...registration.kafka import as_text
from ...registration.key_space import owner, prefixed_key
from ...registration.registration import registration_of
from .application import Application
from .clients import Received, Sent

CHUNK = 5000
"""The largest number of records per call."""
PER_MS = 8
"""The number of records per millisecond that can be sent on time; with pauses, histories start far enough apart."""


class Pauses(NamedTuple):
    """The range of a history's pause before each of its changes (ms), both ends included."""

    least: int = 0
    most: int = 0


class Due(NamedTuple):
    """A record, and its due time in ms after the start of the batch."""

    at: int
    sent: Sent


@dataclass(frozen=True)
class Timing:
    """The durations of a run of a cohort (many histories at the same time).

    Attributes:
        sending: The seconds until all records were sent.
        quiet: The seconds until all records were processed, including sending.
        late_ms: The largest delay (ms) with which a record of the last batch was sent.
    """

    sending: float
    quiet: float
    late_ms: int


def prefixed(index: int, record: Record, definition: Any) -> Record:
    """Return a record with a history's own keys: the record's key, and the foreign key in the record's value."""
    rename = partial(prefixed_key, index)
    value = record.value
    if record.input == "left":
        value = registration_of(OPERATOR).domain.renamed(definition, value, rename)
    assert record.key is not None
    return record._replace(key=rename(record.key), value=value)


def due(
    histories: Sequence[History],
    batch: int,
    topics: dict[str, str],
    pauses: Pauses,
    generator: random.Random,
    first: int = 0,
) -> list[Due]:
    """Return the records of a batch of all histories, in the order of their due times.

    The changes of a history keep their order, with a pause before each. Without pauses, the changes are sent
    immediately one after another. With pauses, histories start one after another, because otherwise too many records
    would be sent at the same time.

    Args:
        histories: The histories.
        batch: The number of the batch.
        topics: The topic of each input.
        pauses: The range of the pauses.
        generator: The random generator of the pauses.
        first: The index of the first history, if other histories ran before.
    """
    found = []
    batched = [record_batches(history) for history in histories]
    paced = sum(len(batches[batch]) for batches in batched if batch < len(batches)) if any(pauses) else 0
    for index, (history, batches) in enumerate(zip(histories, batched, strict=True), first):
        at = (index - first) * paced // (PER_MS * len(histories))
        definition = registration_of(OPERATOR).declare(history.options)
        for record in batches[batch] if batch < len(batches) else []:
            at += generator.randint(*pauses)
            own = prefixed(index, record, definition)
            assert own.key is not None
            value = None if own.value is None else as_text(own.value)
            found.append(Due(at, Sent(topics[own.input], own.key, value, own.timestamp)))
    return sorted(found, key=lambda one: one.at)


def play(
    application: Application,
    histories: Sequence[History],
    pauses: Pauses,
    seed: int,
    progress: Callable[[str], None] = lambda step: None,
    first: int = 0,
    own_times: bool = False,
) -> Timing:
    """Run histories concurrently; at each cut between their batches, and at the end, wait until all records are
    processed.

    Args:
        application: The running application.
        histories: The histories.
        pauses: The range of the pauses before each change.
        seed: The seed of the pauses.
        progress: Called with each step.
        first: The index of the first history, if other histories ran before on the same application.
        own_times: Whether records keep the timestamps of their histories. If false, the timestamps increase with each
            sent record, as in production. Kafka Streams uses timestamps to choose its next input.

    Raises:
        StreamproofError: The application or its broker failed, or Kafka refused a record.
    """
    generator, topics = random.Random(seed), {"left": application.left, "right": application.right}
    batches = max((len(history.batches) for history in histories), default=0)
    sending = quiet = 0.0
    sent_before = 0
    late = 0
    for batch in range(batches):
        records = due(histories, batch, topics, pauses, generator, first)
        if not own_times:
            records = stamped(records, sent_before)
        sent_before += len(records)
        progress(f"{len(records):,} records of {len(histories):,} histories, {batch + 1} of {batches}")
        began = time.monotonic()
        late = _send(application, records, began)
        application.clients.flush()
        sent = time.monotonic() - began
        sending += sent
        quiet += sent + application.await_quiet()
    return Timing(sending, quiet, late)


def stamped(records: Sequence[Due], start: int) -> list[Due]:
    """Return records with consecutive timestamps (ms), from `start` on."""
    return [Due(at, sent._replace(timestamp=stamp)) for stamp, (at, sent) in enumerate(records, start)]


def _send(application: Application, records: Sequence[Due], began: float) -> int:
    """Send each record at its due time; return the largest delay (ms)."""
    late = 0
    for at, together in groupby(records, lambda one: one.at):
        sent = [one.sent for one in together]
        now = 1000 * (time.monotonic() - began)
        if now < at:
            time.sleep((at - now) / 1000)
        late = max(late, int(now) - at)
        for start in range(0, len(sent), CHUNK):
            application.clients.send(sent[start : start + CHUNK])
    return late


def tables(
    output: Sequence[Received], histories: Sequence[History], first: int = 0
) -> list[dict[Key, tuple[Value, int]]]:
    """Return the table of each history: the history's folded output, with each key's last value and timestamp (ms).

    Args:
        output: The records of the output topic; a key's records are in one partition, in order.
        histories: The histories, in the order in which they were sent.
        first: The index of the first history; the output of other histories is ignored.
    """
    found: list[dict[Key, tuple[Value, int]]] = [{} for _ in histories]
    registration = registration_of(OPERATOR)
    definitions = [registration.declare(history.options) for history in histories]
    for record in output:
        whose = owner(record.key)
        assert whose is not None
        index, key = whose[0] - first, whose[1]
        if not 0 <= index < len(histories):
            continue
        if record.value is None:
            found[index].pop(key, None)
        else:
            left, right = json.loads(record.value)
            definition = definitions[index]
            found[index][key] = [registration.domain.renamed(definition, left, _own), right], record.timestamp
    return found


def _own(key: Key) -> Key:
    """Return a key without the prefix of its history; a key without such a prefix stays unchanged."""
    owned = owner(key)
    return key if owned is None else owned[1]
