"""The stages of a foreign-key join on Spark: the logic, input messages and output messages of each stage.

The sender (by left key) subscribes to right keys. The right side (by foreign key) responds to subscriptions and to
every change of a right row. The receiver (by left key) joins the responses with the left rows. `foreign_key_join` runs
the stages in one query, `decoupled_foreign_key_join` in three queries. Source: KIP-213, "Workflow", "Original Value
Hash", "Tombstones & Foreign Key Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from pyspark.sql import types as T

from ...reference.definitions.joins import ForeignKeyJoin
from ..runtime.codec import digest_of
from ..runtime.inputs import OperatorInput
from ..runtime.keyed import StageOf, declaration_of
from ..runtime.logic import Arrived, Key, Logic, LogicOutput, changed, joined, key_of
from ..runtime.stages import SEEN, To, dropped_before, parts
from .referring import ReferredLogic, ReferredState, ReferringLogic, ReferringTables


class Instruction(StrEnum):
    """The instruction of a subscription to a right key (KIP-213, `SubscriptionWrapper`)."""

    DELETE_KEY_NO_PROPAGATE = "DELETE_KEY_NO_PROPAGATE"
    DELETE_KEY_AND_PROPAGATE = "DELETE_KEY_AND_PROPAGATE"
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


class Subscription(NamedTuple):
    """A message from a left row to its current or former right key; only the last message of a change contains the row.

    Attributes:
        foreign_key: The right key; None if there is no foreign key, and the message only contains the row.
        instruction: The instruction to the right key.
        digest: The hash of the left value, None for a tombstone.
        carries: Whether the message contains the row.
        refers: Whether the current row has a foreign key.
        left: The row's value.
    """

    foreign_key: Key | None
    instruction: Instruction | None
    digest: bytes | None
    carries: bool = False
    refers: bool = False
    left: Any = None


class SenderLogic(ReferringLogic):
    """The sender's logic for a left row: it stores the foreign key, if any, and subscribes to right keys."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def take(self, key: Key, state: list[Key], row: Arrived, clock: int) -> list[LogicOutput]:
        """Change the row; return the subscriptions to send, the last of which contains the row."""
        new, *names = row.value
        before, after = (state[0] if state else None), self.foreign_key_of(new, names)
        state[:] = [] if after is None else [after]
        sent = self.subscriptions(before, after, digest_of(new)) or [Subscription(None, None, digest_of(new))]
        sent[-1] = Subscription(*sent[-1][:3], carries=True, refers=after is not None, left=new)
        blank = (None,) * len(names)
        return [changed(row, (*(one.foreign_key or blank), *one[1:]), row.timestamp) for one in sent]

    def foreign_key_of(self, value: Any, names: Sequence[Any]) -> Key | None:
        """Return the foreign key of a row; None for a tombstone."""
        return None if value is None else parts(names)

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        """Return the subscriptions of a change: first unsubscribe from the old key, then subscribe to the new key."""
        if after is None:
            return [] if before is None else [Subscription(before, Instruction.DELETE_KEY_AND_PROPAGATE, digest)]
        asked = Subscription(after, self.instruction_for(before, after), digest)
        if before is None or before == after:
            return [asked]
        # The hash identifies a row in a response, and this unsubscription gets none.
        return [Subscription(before, Instruction.DELETE_KEY_NO_PROPAGATE, None), asked]

    def instruction_for(self, before: Key | None, after: Key) -> Instruction:
        """Return the instruction to the new foreign key: always respond if an older result may have to be removed."""
        if before not in (None, after) or self.join.answers_all:
            return Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
        return Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE


class Subscribed(NamedTuple):
    """A subscribed left row in a foreign key's state: the hash of its value."""

    digest: bytes | None


class Response(NamedTuple):
    """A message to a left key: the left row itself, a right key's response, or the row and then the response.

    Attributes:
        answers: Whether the message contains a response.
        digest: The hash of the left value that the response refers to.
        right: The right value of a response; None if there is no right row.
        carries: Whether the message contains the row.
        asked: Whether the change of the left row gets a response.
        refers: Whether a row has a foreign key.
        left: A row's value.
    """

    answers: bool
    digest: bytes | None
    right: Any = None
    carries: bool = False
    asked: bool = True
    refers: bool = False
    left: Any = None


class ResponderLogic(ReferredLogic):
    """The logic of a foreign key: it responds to subscriptions, and to all subscribers when its right row changes."""

    stored = Subscribed

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def take_left(self, key: Key, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        """Take a subscription."""
        timestamp, reason, instruction, digest, carries, refers, left, *left_key = row.value
        if reason is not None:
            return [dropped_before(row, reason, timestamp, (*left_key, *Response(False, None)))]
        sender, response = key_of(left_key), None
        if instruction is not None:
            response = self.receive(state, sender, digest, Instruction(instruction), timestamp)
        answer, stamp = response or (Response(False, digest), timestamp)
        if carries:
            answer = Response(*answer[:3], carries=True, asked=instruction is not None, refers=refers, left=left)
        return [self.message(row, sender, answer, stamp)] if carries or response else []

    def receive(
        self, state: ReferredState, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Response, int] | None:
        """Follow a subscription's instruction; return the response and its timestamp (ms), if any."""
        right = state.right
        if instruction in (Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE):
            self.unsubscribe(state, key)
            if instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
                return None
            # A response to a left change has the later timestamp of both rows; in a left join, the left row's
            # timestamp.
            stamp = max(timestamp, right.timestamp) if right is not None and self.join.join == "inner" else timestamp
            return Response(True, digest), stamp
        state.lefts[key] = Subscribed(digest)
        if right is not None:
            return Response(True, digest, right.value), max(timestamp, right.timestamp)
        if instruction is Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
            return Response(True, digest), timestamp
        return None

    def unsubscribe(self, state: ReferredState, key: Key) -> None:
        """Forget a left row."""
        state.lefts.pop(key, None)

    def left_change(self, state: ReferredState, row: Arrived, key: Key, left: Subscribed) -> LogicOutput:
        """Return the response to a subscribed row when the right row changes."""
        return self.message(row, key, Response(True, left.digest, row.value), row.timestamp)

    def message(self, row: Arrived, key: Key, answer: Response, timestamp: int | None) -> LogicOutput:
        """Return a message to a left key."""
        return changed(row, (*key, *answer), timestamp)


class LeftState:
    """The receiver's state of a left row: its value and digest, and whether it has a foreign key and a result."""

    def __init__(
        self, value: Any = None, digest: bytes | None = None, refers: bool = False, shown: bool = False
    ) -> None:
        self.value = value
        self.digest = digest
        self.refers = refers
        self.shown = shown


class ReceiverLogic(Logic[LeftState]):
    """The receiver's logic for a left row: it joins the row with the responses to its current value."""

    keeps_null_keys = True

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def empty(self) -> LeftState:
        """Return a state without row and result."""
        return LeftState()

    def pack(self, state: LeftState) -> tuple[Any, ...] | None:
        """Pack the row and its state, unless there is neither a row nor a result."""
        if state.value is None and not state.shown:
            return None
        return (state.value, state.digest, state.refers, state.shown)

    def unpack(self, fields: tuple[Any, ...]) -> LeftState:
        """The row again."""
        value, digest, refers, shown = fields
        return LeftState(value, None if digest is None else bytes(digest), refers, shown)

    def take(self, key: Key, state: LeftState, row: Arrived, clock: int) -> list[LogicOutput]:
        """Process a row, a response, or a row and then a response."""
        timestamp, reason, answers, digest, right, carries, asked, refers, left = row.value
        if reason is not None:
            return [dropped_before(row, reason, timestamp)]
        if carries:
            state.value, state.digest, state.refers = left, digest, refers
        if answers:
            return [] if self.is_stale(state, digest) else [self.emit(state, row, right, timestamp)]
        return [] if asked or not self.owes_an_answer(state) else [self.emit(state, row, None, timestamp)]

    def owes_an_answer(self, state: LeftState) -> bool:
        """Return whether a change must be emitted without a response, because it sent no subscription."""
        return self.join.answers_all and (state.shown or (state.value is not None and self.join.keeps_null))

    def is_stale(self, state: LeftState, digest: bytes | None) -> bool:
        """Return whether a response refers to an earlier value of the row."""
        return digest != state.digest

    def emit(self, state: LeftState, row: Arrived, right: Any, timestamp: int) -> LogicOutput:
        """Return the row joined with the right value, or a tombstone."""
        alone = self.join.join == "left" and (self.join.keeps_null or state.refers)
        state.shown = state.value is not None and (right is not None or alone)
        return changed(row, joined(state.value, right) if state.shown else None, timestamp)


class ForeignKeyStages(NamedTuple):
    """The logic of each stage."""

    sender: SenderLogic
    right: ResponderLogic
    receiver: ReceiverLogic


def foreign_key_stages(join: ForeignKeyJoin) -> ForeignKeyStages:
    """Return the logic of each stage of a foreign-key join."""
    return ForeignKeyStages(SenderLogic(join), ResponderLogic(join), ReceiverLogic(join))


def foreign_key_hops(right_width: int, left_width: int) -> tuple[To, To]:
    """Return the senders of messages: subscriptions to right keys of `right_width` columns, responses to left keys of
    `left_width` columns.
    """
    return To(right_width, len(Subscription._fields) - 1, with_sender=True), To(left_width, len(Response._fields))


@dataclass(frozen=True)
class ForeignKeyTables(ReferringTables):
    """Both tables of a foreign-key join, with their columns resolved, and the stages between the tables.

    Attributes:
        stages: The logic of each stage.
        settings: The settings of the stages: `state_groups`, `report_dropped`, `declaration`.
    """

    stages: ForeignKeyStages
    settings: dict[str, Any]

    @property
    def subscription_type(self) -> T.StructType:
        """The fields of a `Subscription`, without the foreign key."""
        subscription = T.StructType().add("instruction", "string").add("digest", "binary")
        return subscription.add("carries", "boolean").add("refers", "boolean").add("left", self.lefts.value_type)

    @property
    def response_type(self) -> T.StructType:
        """The fields of a `Response`, without the left key."""
        answer = T.StructType().add("answers", "boolean").add("digest", "binary").add("right", self.rights.value_type)
        answer = answer.add("carries", "boolean").add("asked", "boolean").add("refers", "boolean")
        return answer.add("left", self.lefts.value_type)

    @property
    def hops(self) -> tuple[To, To]:
        """The functions that address subscriptions and responses."""
        return foreign_key_hops(len(self.refers), len(self.lefts.keys))

    def sender(self) -> StageOf:
        """Declare the stage that converts left rows to subscriptions, by left key."""
        return StageOf(
            self.stages.sender,
            [self.left_rows],
            self.key_fields,
            T.StructType(self.to_fields),
            self.hops[0],
            T.StructType([*SEEN, *self.subscription_type.fields, *self.key_fields]),
        )

    def right(self, inputs: Sequence[OperatorInput]) -> StageOf:
        """Declare the stage that responds to subscriptions and to changes of right rows, by foreign key."""
        subscription = T.StructType([*self.key_fields, T.StructField("digest", T.BinaryType())])
        state = T.StructType().add("right", self.rights.value_type).add("timestamp", "long")
        return StageOf(
            self.stages.right,
            inputs,
            self.to_fields,
            state.add("subscriptions", T.ArrayType(subscription)),
            self.hops[1],
            T.StructType([*SEEN, *self.response_type.fields]),
        )

    def receiver(self, inputs: Sequence[OperatorInput]) -> StageOf:
        """Declare the stage that joins responses with left rows, by left key."""
        state = T.StructType().add("left", self.lefts.value_type).add("digest", "binary")
        return StageOf(
            self.stages.receiver,
            inputs,
            [field for _, field in self.lefts.keys],
            state.add("refers", "boolean").add("shown", "boolean"),
        )


def foreign_key_tables(
    tables: ReferringTables,
    join: ForeignKeyJoin,
    *,
    report_dropped: bool,
    state_groups: int | None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None,
) -> ForeignKeyTables:
    """Return the tables of a foreign-key join with the stages between the tables."""
    settings: dict[str, Any] = {"state_groups": state_groups, "report_dropped": report_dropped}
    settings["declaration"] = declaration_of("foreign_key_join", join, foreign_key=tables.foreign_key)
    stages = (logic or foreign_key_stages)(join)
    return ForeignKeyTables(tables.lefts, tables.rights, tables.refers, stages, settings)
