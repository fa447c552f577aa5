"""The divergences of the real Kafka Streams 4.3.1 from its own documents, each with its name and smallest history.

The reference follows the documents. Models in Python describe Kafka's own behaviour, with a switch for each defect. A
difference on a random history counts as explained only if the model with defects has exactly Kafka's output. A defect
is a cause of the difference if the model without this defect has another output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files

from ....reference import foreign_key_protocol, session_windows, windowed_table
from ....reference.core.clocks import Clock
from ....reference.core.errors import BadInput
from ....reference.core.history import LARGEST_TIMESTAMP_MS, History, parse_history
from ....reference.core.play import play
from ....reference.core.records import Change, Dropped, Key, Output, Record, Value
from ....reference.definitions.joins import ForeignKeyJoin, StreamStreamJoin
from ....reference.definitions.windows import SessionWindows, WindowedTable
from ....reference.session_store import Session
from ....reference.stream_stream_join import alone, pair
from ...outcomes.outcomes import Outcome, differences
from ...registration.registration import registration_of
from .builder import KafkaDialect
from .versions import DEFAULT, RELEASES, Stores, release

DIALECTS = {
    "plain": KafkaDialect(),
    "exact retention": KafkaDialect(exact_retention=True),
    "own clocks": KafkaDialect(own_clocks=True),
    "suppress": KafkaDialect(suppress=True),
    "keyless waits": KafkaDialect(keyless_waits=True),
}
"""The settings of Kafka that show a divergence; the witness's plain dialect avoids the other dialects' divergences."""


@dataclass(frozen=True)
class KafkaDivergence:
    """An observed difference between Kafka Streams and its documents.

    Attributes:
        name: The name in reports; the file of the smallest history is `divergent_histories/NAME.jsonl`.
        operator: The operator.
        sentence: Kafka's behaviour, in one sentence.
        source: The source that describes the behaviour.
        setting: The settings of Kafka that show the divergence; see `DIALECTS`.
        since: The first release that shows the divergence, from 3.6 on.
        fixed_in: The first release without the divergence, for each minor release with a fix, in order.
    """

    name: str
    operator: str
    sentence: str
    source: str
    setting: str = "plain"
    since: str = RELEASES[0]
    fixed_in: tuple[str, ...] = ()

    def is_in(self, version: str) -> bool:
        """Return whether a release shows the divergence. A fix is part of all later patches of its minor release, and
        of all later minor releases.
        """
        asked = release(version)
        fixes = [release(fixed) for fixed in self.fixed_in]
        is_fixed = any(fix <= asked and (fix[:2] == asked[:2] or fix == fixes[-1]) for fix in fixes)
        return release(self.since) <= asked and not is_fixed

    @property
    def history(self) -> History:
        """Return the smallest history that shows the divergence on in-memory stores."""
        return self.history_on("in memory")

    def history_on(self, stores: Stores) -> History:
        """Return the smallest history that shows the divergence on a kind of store."""
        folder = files(__package__) / "divergent_histories"
        of_stores = folder / f"{self.name}.{stores}.jsonl"
        path = of_stores if of_stores.is_file() else folder / f"{self.name}.jsonl"
        return parse_history(path.read_text(encoding="utf-8"), self.name, self.name)


CLOSED_REVISED = "closed-session-revised"
CLOSED_TWICE = "closed-pair-emitted-twice"
LATE_JOINS = "late-records-join"
NULL_WITHIN_GRACE = "null-within-grace"
NULL_TOLD_LATE = "null-emitted-late"
ZERO_WINDOW = "zero-window"
DELETED_UNSHOWN = "unshown-row-deleted"
DELETED_AGAIN = "deleted-row-deleted-again"
_SINCE_16407 = ("3.9.1", "4.0.1")

_ALL = {
    divergence.name: divergence
    for divergence in (
        KafkaDivergence(
            "session-forgotten-early",
            "session_windows",
            "a stored session becomes invisible one step before the operator closes it, and its aggregate is lost",
            "observed; no issue found",
            "exact retention",
        ),
        KafkaDivergence(
            CLOSED_REVISED,
            "session_windows",
            "with a long retention, a record that bridges a closed but still stored session revises it",
            "observed; no issue found",
            "exact retention",
        ),
        KafkaDivergence(
            "closed-sessions-not-emitted",
            "session_windows",
            "with the default retention, EmitStrategy.onWindowClose emits no closed session from in-memory stores; "
            "from RocksDB, Kafka's default, it loses the sessions whose segment, of a minute or more, has expired",
            "observed; no issue found",
            "exact retention",
        ),
        KafkaDivergence(
            "suppress-releases-early",
            "session_windows",
            "suppress(untilWindowCloses) emits a session a step before it closes, and again when it has been revised",
            "observed; no issue found",
            "suppress",
        ),
        KafkaDivergence(
            "closed-windows-not-emitted",
            "windowed_table",
            "with the default retention, EmitStrategy.onWindowClose loses windows, in memory if they start at least "
            "the retention before the newest window, on RocksDB, Kafka's default, if they start earlier than that",
            "KAFKA-12960 with KIP-825",
            "exact retention",
        ),
        KafkaDivergence(
            "join-has-two-clocks",
            "windowed_table",
            "each of two joined windowed aggregates has a separate stream time, so lateness depends on the side",
            "observed; no issue found",
            "own clocks",
        ),
        KafkaDivergence(
            CLOSED_TWICE,
            "windowed_table",
            "a join of windows emitted at their close reads the other side's open windows, and emits for each side",
            "found by this project; no issue found",
        ),
        KafkaDivergence(
            LATE_JOINS,
            "stream_stream_join",
            "records beyond the grace are not dropped; they still join records that the other side's store contains",
            "KAFKA-16123",
        ),
        KafkaDivergence(
            NULL_WITHIN_GRACE,
            "stream_stream_join",
            "an out-of-order row without a partner is emitted with null at once, although its grace isn't over",
            "KAFKA-19536",
        ),
        KafkaDivergence(
            NULL_TOLD_LATE,
            "stream_stream_join",
            "an unmatched row is emitted late: the time of the oldest waiting row is overwritten by rows still open",
            "found by this project; no issue found",
            since="3.8.1",
        ),
        KafkaDivergence(
            ZERO_WINDOW,
            "stream_stream_join",
            "with before, after and grace of zero no record is stored, so simultaneous records never join",
            "observed; no issue found",
        ),
        KafkaDivergence(
            DELETED_UNSHOWN,
            "foreign_key_join",
            "a left join emits a tombstone for a deleted row without a foreign key, although it has shown no result",
            "KIP-962; SubscriptionSendProcessorSupplier, leftJoinInstructions",
            since="3.7.2",
        ),
        KafkaDivergence(
            DELETED_AGAIN,
            "foreign_key_join",
            "a left join is silent if a deleted row is deleted again, although its result is still shown",
            "KIP-962; SubscriptionSendProcessorSupplier, leftJoinInstructions",
        ),
        KafkaDivergence(
            "null-key-waits",
            "foreign_key_join",
            "a left join requests the result of a deleted row, or a row without a foreign key, by a message without "
            "a key, which waits in both topics and overtakes others",
            "KIP-962; SubscriptionSendProcessorSupplier, leftJoinInstructions",
            "keyless waits",
        ),
        KafkaDivergence(
            "keyless-row-ignored",
            "foreign_key_join",
            "a left join skips rows without a foreign key",
            "KIP-962",
            fixed_in=("3.7.0",),
        ),
        KafkaDivergence(
            "lost-key-keeps-result",
            "foreign_key_join",
            "an inner join is silent if a row loses its foreign key, so its result is shown for ever",
            "KAFKA-16434",
            fixed_in=_SINCE_16407,
        ),
        KafkaDivergence(
            "gained-key-ignored",
            "foreign_key_join",
            "an inner join skips a row that gains a foreign key",
            "KAFKA-16407",
            fixed_in=_SINCE_16407,
        ),
        KafkaDivergence(
            "unmatched-update-answered",
            "foreign_key_join",
            "an inner join emits a tombstone for an update whose right row was missing, and is",
            "observed; gone with the change for KAFKA-16407",
            fixed_in=_SINCE_16407,
        ),
        KafkaDivergence(
            "left-join-answers-twice",
            "foreign_key_join",
            "a left join emits two changes if a row is deleted, moves or loses its foreign key",
            "KAFKA-16394, KAFKA-18713",
            since="3.7.2",
            fixed_in=_SINCE_16407,
        ),
    )
}
DIVERGENCES = {name: divergence for name, divergence in _ALL.items() if divergence.is_in(DEFAULT)}
"""The divergences that the default release shows."""
REPAIRED = {name: divergence for name, divergence in _ALL.items() if name not in DIVERGENCES}
"""The divergences that the default release no longer shows."""


def chosen(names: Sequence[str], version: str | None = None) -> list[KafkaDivergence]:
    """Return divergences by name; without names, all divergences, or all that a release is known to show.

    Args:
        names: The names.
        version: The release (None for all).

    Raises:
        BadInput: No divergence has a name; the message lists the known names. Or the text isn't the version of a
            release.
    """
    for name in names:
        if name not in _ALL:
            raise BadInput(f"unknown divergence {name!r}: use one of {', '.join(_ALL)}")
    return [_ALL[name] for name in names] or [one for one in _ALL.values() if version is None or one.is_in(version)]


def explained(history: History, outcome: Outcome, version: str = DEFAULT) -> tuple[str, ...]:
    """Return the divergences that explain Kafka's difference from the reference; no divergences if they don't explain
    all of it.

    Args:
        history: The history.
        outcome: Kafka's outcome of the history.
        version: The release of Kafka; the explanation may omit divergences that the release isn't known to show.
    """
    kafka = registration_of(history.operator).kafka
    if kafka is None or kafka.observed is None:
        return ()
    model = globals()[kafka.observed]
    of_operator = [each for each in DIVERGENCES.values() if each.operator == history.operator]
    absent = tuple(each.name for each in of_operator if not each.is_in(version))

    def answers(*without: str) -> bool:
        emitted = Outcome.of_play(history.name, play(history, partial(model, without=without)))
        return not differences(emitted, outcome)

    # A release may show a divergence only in part, so its smallest history may not show it.
    left_out = next((each for each in ((), absent) if answers(*each)), None)
    if left_out is None:
        return ()
    candidates = [each.name for each in of_operator if each.name not in left_out]
    alone_to_blame = [name for name in candidates if not answers(*left_out, name)]
    return tuple(alone_to_blame or candidates)


class KafkaSessionWindows(session_windows.Behaviour):
    """Kafka's session windows as in 4.3.1, with a store that never deletes sessions."""

    def __init__(self, windows: SessionWindows, clock: Clock, without: Collection[str] = ()) -> None:
        super().__init__(replace(windows, retention_ms=LARGEST_TIMESTAMP_MS), clock)
        self.without = without

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        """Return the stored sessions of a key within the gap of a timestamp, including closed sessions."""
        return super().near(key, timestamp, edge if CLOSED_REVISED in self.without else 0)


class KafkaWindowedTable(windowed_table.Behaviour):
    """Kafka's windowed tables as in 4.3.1, with the clocks of both sides moved by every record."""

    def __init__(self, table: WindowedTable, clock: Clock, without: Collection[str] = ()) -> None:
        super().__init__(table, clock)
        self.reads_ahead = table.with_ == "windowed_table" and table.emit == "close" and CLOSED_TWICE not in without
        self.moved_by = "events"

    def arrive(self, record: Record) -> list[Output]:
        """Process a record; with `CLOSED_TWICE`, the other side can join the record's window before the window
        closes.
        """
        self.moved_by = record.input
        emitted = super().arrive(record)
        if self.reads_ahead:
            for name, side in self.sides.items():
                for row, at in side.open.items():
                    if (joined := self.table.joined_row(row) if name == "right" else row) is not None:
                        self.join.tables["left" if name == "events" else "right"][joined] = at
        return emitted

    def advance(self) -> list[Output]:
        """Emit the rows of closed windows; an operator that joins windows before they close emits the other side's rows
        first.
        """
        if not self.reads_ahead:
            return super().advance()
        emitted: list[Output] = []
        for name in sorted(self.sides, key=lambda name: name == self.moved_by):
            for row in sorted(self.sides[name].close(self.clock.now), key=lambda row: (row[1], row[0])):
                emitted += self._change(name, row, *self.sides[name].emitted[row])
        return emitted


class KafkaStreamStreamJoin:
    """Kafka's stream-stream join as in 4.3.1, without the named defect, if any.

    Source: `KStreamKStreamJoin` and `InMemoryWindowStore` of Kafka Streams 4.3.1, as observed in its test driver.
    """

    def __init__(self, join: StreamStreamJoin, clock: Clock, without: Collection[str] = ()) -> None:
        self.join, self.clock, self.without = join, clock, without
        self.reach = {"left": join.after_ms, "right": join.before_ms}
        self.retention_ms = join.before_ms + join.after_ms + join.grace_ms
        self.stores: dict[str, dict[Key, list[Record]]] = {"left": defaultdict(list), "right": defaultdict(list)}
        self.stored_until = {"left": -1, "right": -1}
        self.waiting: list[Record] = []
        self.oldest_waiting: float = float("inf")

    def arrive(self, record: Record) -> list[Output]:
        """Process a record: emit rows that it closes by moving stream time, and then its pairs, or the record without a
        partner.
        """
        join, side, key = self.join, record.input, record.key
        if key is not None or join.null_key == "keep":
            self.clock.observe(record.timestamp)
        if key is None:
            emits = join.null_key == "keep" and join.emits_unmatched(side) and record.value is not None
            return [alone(record)] if emits else [Dropped(None, "null key")]
        if record.value is None:
            self.stored_until[side] = max(self.stored_until[side], record.timestamp)
            return [Dropped(key, "null value")]
        emitted: list[Output] = [*self._closed(side)] if record.timestamp == self.clock.now else []
        if LATE_JOINS in self.without and not join.is_open(side, record.timestamp, self.clock.now):
            return [*emitted, Dropped(key, "late")]
        partners = self._partners(record, key)
        for partner in partners:
            self.waiting = [row for row in self.waiting if row[:2] + row[3:] != partner[:2] + partner[3:]]
        emitted += [pair(record, partner) for partner in partners]
        if not partners and join.emits_unmatched(side):
            over = record.timestamp + self.reach[side] < self.clock.now and NULL_WITHIN_GRACE not in self.without
            if join.emit == "eager" or over:
                emitted.append(alone(record))
            else:
                self.waiting.append(record)
                self.oldest_waiting = min(self.oldest_waiting, record.timestamp)
        self.stored_until[side] = max(self.stored_until[side], record.timestamp)
        if self._is_stored(record):
            self.stores[side][key].append(record)
        return emitted

    def _partners(self, record: Record, key: Key) -> list[Record]:
        side, other = record.input, "right" if record.input == "left" else "left"
        found = []
        for row in self.stores[other][key]:
            left, right = (record, row) if side == "left" else (row, record)
            is_open = LATE_JOINS not in self.without or self.join.is_open(other, row.timestamp, self.clock.now)
            if self.join.within(left.timestamp, right.timestamp) and self._is_stored(row) and is_open:
                found.append(row)
        return sorted(found, key=lambda row: row.timestamp)

    def _is_stored(self, row: Record) -> bool:
        """Return whether a side's store still contains a row; the store's clock follows only that side's own
        records.
        """
        if (ZERO_WINDOW in self.without and not self.retention_ms) or LATE_JOINS in self.without:
            return True
        return row.timestamp > self.stored_until[row.input] - self.retention_ms

    def _closed(self, side: str) -> list[Change]:
        """Emit the unmatched rows that have closed, if the oldest unmatched row is known to have closed."""
        edge = self.clock.now - self.join.grace_ms
        if self.oldest_waiting + self.reach[side] >= edge and NULL_TOLD_LATE not in self.without:
            return []
        emitted: list[Change] = []
        still_open: set[str] = set()
        rows, self.waiting = sorted(self.waiting, key=lambda row: (row.timestamp, row.input == "left", row.key)), []
        self.oldest_waiting = float("inf")
        for index, row in enumerate(rows):
            self.oldest_waiting = row.timestamp  # Kafka's defect: the last row replaces the oldest
            if len(still_open) == 2:
                self.waiting += rows[index:]
                break
            if row.timestamp + self.reach[row.input] >= edge:
                still_open.add(row.input)
                self.waiting.append(row)
            else:
                emitted.append(alone(row))
        return emitted

    def advance(self) -> list[Output]:
        """Do nothing at a clock advance, because the advance arrives as a record, and in Kafka only records move the
        clock.
        """
        return []


class KafkaForeignKeyJoin(foreign_key_protocol.Protocol):
    """Kafka's foreign-key join as in 4.3.1, without the named divergence, if any."""

    def __init__(self, join: ForeignKeyJoin, clock: Clock, without: Collection[str] = ()) -> None:
        super().__init__(join, clock)
        self.left = _KafkaLeft(join, without)


class _KafkaLeft(foreign_key_protocol.Left):
    """The left side of the join, which itself responds to changes of rows without a foreign key, regardless of the
    shown result.
    """

    def __init__(self, join: ForeignKeyJoin, without: Collection[str]) -> None:
        super().__init__(join)
        self.without = without
        self.was_there = False

    def change(
        self, key: Key, new: Value, timestamp: int
    ) -> tuple[list[foreign_key_protocol.Subscription], list[Change]]:
        """Change a row."""
        self.was_there = key in self.table
        return super().change(key, new, timestamp)

    def _owes_an_answer(self, key: Key, new: Value) -> bool:
        owes = super()._owes_an_answer(key, new)
        if new is not None or self.join.join != "left":
            return owes
        if self.was_there:
            return owes if DELETED_UNSHOWN in self.without else True
        return owes if DELETED_AGAIN in self.without else False
