"""The stages of a foreign-key join on Spark: what decides in each, and how each reads and tells its messages.

The sender (by left key) asks the right keys concerned; the right side (by foreign key) answers, and so does every
change of a right row; the receiver (by left key) joins the answers with the left rows. `foreign_key_join` runs them in
one query, `decoupled_foreign_key_join` in three.
Source: KIP-213, "Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.joins import ForeignKeyJoin
from .columns import ColumnLike
from .keyed import (
    Arrived,
    Input,
    Key,
    Told,
    changed,
    declaration_of,
    dropped,
    joined,
    joined_type,
    keyed,
    require_same_order,
    two_sides,
)
from .stages import (
    Columns,
    ReferringLogic,
    StageLogic,
    at_stage,
    digest_of,
    dropped_before,
    named_columns,
    numbered,
    parts,
    renamed,
    require_same_types,
    spread,
)


class Instruction(StrEnum):
    """What a subscription asks of a right key (KIP-213, `SubscriptionWrapper`)."""

    DELETE_KEY_NO_PROPAGATE = "DELETE_KEY_NO_PROPAGATE"
    DELETE_KEY_AND_PROPAGATE = "DELETE_KEY_AND_PROPAGATE"
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


class Subscription(NamedTuple):
    """From a left row to the right key that it names, or named; the last one of a change carries the row.

    Attributes:
        foreign_key: Whom it asks; None where there is no one to ask, and the row is all that is sent.
        instruction: What it asks.
        digest: The hash of the left value, None for a tombstone.
        carries: Whether it carries the row.
        refers: Whether the row, as it is now, has a foreign key.
        left: The row's value.
    """

    foreign_key: Key | None
    instruction: Instruction | None
    digest: bytes | None
    carries: bool = False
    refers: bool = False
    left: Any = None


class SenderLogic(ReferringLogic):
    """What happens to a left row: it remembers its foreign key (at most one), and asks the right keys concerned."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def take(self, key: Key, kept: list[Key], row: Arrived, clock: int) -> list[Told]:
        """Take a change of the row: give the subscriptions to send, the row along with the last one."""
        new, *names = row.value.values()
        before, after = (kept[0] if kept else None), self.foreign_key_of(new, names)
        kept[:] = [] if after is None else [after]
        sent = self.subscriptions(before, after, digest_of(new)) or [Subscription(None, None, digest_of(new))]
        sent[-1] = sent[-1]._replace(carries=True, refers=after is not None, left=new)
        blank = (None,) * len(names)
        return [changed(row, (*(one.foreign_key or blank), *one[1:]), row.timestamp) for one in sent]

    def foreign_key_of(self, value: Any, names: Sequence[Any]) -> Key | None:
        """Give what a row refers to; a tombstone refers to nothing."""
        return None if value is None else parts(names)

    def subscriptions(self, before: Key | None, after: Key | None, digest: bytes | None) -> list[Subscription]:
        """Give whom a change asks for what: it unsubscribes before it subscribes."""
        if after is None:
            return [] if before is None else [Subscription(before, Instruction.DELETE_KEY_AND_PROPAGATE, digest)]
        asked = Subscription(after, self.asks(before, after), digest)
        if before is None or before == after:
            return [asked]
        # It is answered by no one, and carries no hash.
        return [Subscription(before, Instruction.DELETE_KEY_NO_PROPAGATE, None), asked]

    def asks(self, before: Key | None, after: Key) -> Instruction:
        """Give what is asked of the new foreign key: an answer in any case, where an older result may have to go."""
        if before not in (None, after) or self.join.answers_all:
            return Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE
        return Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE


class RightRow(NamedTuple):
    """A right row: its value and timestamp (ms)."""

    value: Any
    timestamp: int


class RightKept:
    """What a foreign key keeps: its row, if there is one, and the digests of those that are subscribed to it."""

    def __init__(self, row: RightRow | None, subscribed: dict[Key, bytes | None]) -> None:
        self.row = row
        self.subscribed = subscribed


class Answer(NamedTuple):
    """To a left key: what the right key says, or its own row on the way back, or both: then the row comes first.

    Attributes:
        answers: Whether it is a response.
        digest: The hash of the left value that it belongs to.
        right: Of a response: the right value, None where there is none.
        carries: Whether it carries the row.
        asked: Of a row: whether its change has asked a right key.
        refers: Of a row: whether it has a foreign key.
        left: Of a row: its value.
    """

    answers: bool
    digest: bytes | None
    right: Any = None
    carries: bool = False
    asked: bool = True
    refers: bool = False
    left: Any = None


class RightLogic(StageLogic[RightKept]):
    """What happens to a foreign key: its right row, and the left rows that are subscribed to it."""

    keeps_null_keys = True

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def empty(self) -> RightKept:
        """No row, no subscription."""
        return RightKept(None, {})

    def pack(self, kept: RightKept) -> tuple[Any, ...] | None:
        """The row and the subscriptions, if there are any."""
        if kept.row is None and not kept.subscribed:
            return None
        return (*(kept.row or (None, None)), [(*key, digest) for key, digest in kept.subscribed.items()])

    def unpack(self, fields: tuple[Any, ...]) -> RightKept:
        """The row and the subscriptions again."""
        value, timestamp, subscribed = fields
        row = None if value is None else RightRow(value, timestamp)
        return RightKept(row, {tuple(one[:-1]): one[-1] for one in subscribed})

    def take(self, key: Key, kept: RightKept, row: Arrived, clock: int) -> list[Told]:
        """Take a right row, or a subscription."""
        if row.side == "right":
            return [dropped(row, "null key")] if parts(key) is None else self.change(kept, row)
        timestamp, reason, instruction, digest, carries, refers, left, *left_key = row.value.values()
        if reason is not None:
            return [dropped_before(row, reason, timestamp, (*left_key, *Answer(False, None)))]
        sender, response = tuple(left_key), None
        if instruction is not None:
            response = self.receive(kept, sender, digest, Instruction(instruction), timestamp)
        answer, stamp = response or (Answer(False, digest), timestamp)
        if carries:
            answer = answer._replace(carries=True, asked=instruction is not None, refers=refers, left=left)
        return [self.message(row, sender, answer, stamp)] if carries or response else []

    def receive(
        self, kept: RightKept, key: Key, digest: bytes | None, instruction: Instruction, timestamp: int
    ) -> tuple[Answer, int] | None:
        """Do what a subscription says, and give the response and its timestamp (ms), if it wants one."""
        right = kept.row
        if instruction in (Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE):
            self.unsubscribe(kept, key)
            if instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
                return None
            # As any answer to a left change it is stamped by the later row, but in a left join by the left row alone.
            stamp = max(timestamp, right.timestamp) if right is not None and self.join.join == "inner" else timestamp
            return Answer(True, digest), stamp
        kept.subscribed[key] = digest
        if right is not None:
            return Answer(True, digest, right.value), max(timestamp, right.timestamp)
        if instruction is Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
            return Answer(True, digest), timestamp
        return None

    def unsubscribe(self, kept: RightKept, key: Key) -> None:
        """Forget a left row."""
        kept.subscribed.pop(key, None)

    def change(self, kept: RightKept, row: Arrived) -> list[Told]:
        """Change the right row, and answer everyone who is subscribed to it, in the order of their keys."""
        assert row.timestamp is not None
        kept.row = None if row.value is None else RightRow(row.value, row.timestamp)
        return [
            self.message(row, key, Answer(True, digest, row.value), row.timestamp)
            for key, digest in sorted(kept.subscribed.items(), key=lambda subscribed: subscribed[0])
        ]

    def message(self, row: Arrived, key: Key, answer: Answer, timestamp: int) -> Told:
        """Give a message to a left key."""
        return changed(row, (*key, *answer), timestamp)


class LeftKept:
    """What the receiver keeps of a left row: its value, digest, whether it has a foreign key, and a result is shown."""

    def __init__(
        self, value: Any = None, digest: bytes | None = None, refers: bool = False, shown: bool = False
    ) -> None:
        self.value = value
        self.digest = digest
        self.refers = refers
        self.shown = shown


class ReceiverLogic(StageLogic[LeftKept]):
    """What happens to a left row: it is joined with the answers that its present value has asked for."""

    keeps_null_keys = True

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def empty(self) -> LeftKept:
        """No row, and nothing shown."""
        return LeftKept()

    def pack(self, kept: LeftKept) -> tuple[Any, ...] | None:
        """The row, if there is one or a result of it is shown still."""
        if kept.value is None and not kept.shown:
            return None
        return (kept.value, kept.digest, kept.refers, kept.shown)

    def unpack(self, fields: tuple[Any, ...]) -> LeftKept:
        """The row again."""
        value, digest, refers, shown = fields
        return LeftKept(value, None if digest is None else bytes(digest), refers, shown)

    def take(self, key: Key, kept: LeftKept, row: Arrived, clock: int) -> list[Told]:
        """Take a row, a response, or a row and then a response."""
        timestamp, reason, answers, digest, right, carries, asked, refers, left = row.value.values()
        if reason is not None:
            return [dropped_before(row, reason, timestamp)]
        if carries:
            kept.value, kept.digest, kept.refers = left, digest, refers
        if answers:
            return [] if self.is_stale(kept, digest) else [self.tell(kept, row, right, timestamp)]
        return [] if asked or not self.owes_an_answer(kept) else [self.tell(kept, row, None, timestamp)]

    def owes_an_answer(self, kept: LeftKept) -> bool:
        """Whether a change that asked no one is told: no one else can answer it."""
        return self.join.answers_all and (kept.shown or (kept.value is not None and self.join.keeps_null))

    def is_stale(self, kept: LeftKept, digest: bytes | None) -> bool:
        """Whether a response was asked for by another value than the present one."""
        return digest != kept.digest

    def tell(self, kept: LeftKept, row: Arrived, right: Any, timestamp: int) -> Told:
        """Tell the row with what it joins, or that it joins nothing."""
        alone = self.join.join == "left" and (self.join.keeps_null or kept.refers)
        kept.shown = kept.value is not None and (right is not None or alone)
        return changed(row, joined(kept.value, right) if kept.shown else None, timestamp)


class ForeignKeyStages(NamedTuple):
    """What decides in each stage."""

    sender: SenderLogic
    right: RightLogic
    receiver: ReceiverLogic


def foreign_key_stages(join: ForeignKeyJoin) -> ForeignKeyStages:
    """Give what decides in each stage of a foreign-key join."""
    return ForeignKeyStages(SenderLogic(join), RightLogic(join), ReceiverLogic(join))


ColumnsLike = ColumnLike | Sequence[ColumnLike]


class ForeignKeyTables(NamedTuple):
    """Both tables of a foreign-key join, resolved, and the stages between them.

    Attributes:
        lefts: The referring table.
        rights: The table referred to.
        refers: The foreign key of a left row.
        stages: What decides in each stage.
        settings: How each stage runs: `state_groups`, `report_dropped`, `timed`.
    """

    lefts: Input
    rights: Input
    refers: Columns
    stages: ForeignKeyStages
    settings: dict[str, Any]

    @property
    def key_fields(self) -> list[T.StructField]:
        """The fields of a left key in messages."""
        return numbered("key", self.lefts.keys)

    @property
    def to_fields(self) -> list[T.StructField]:
        """The fields of a foreign key in messages."""
        return numbered("to", self.refers)

    @property
    def question_type(self) -> T.StructType:
        """What the sender tells beside the foreign key: a `Subscription`'s other fields."""
        question = T.StructType().add("instruction", "string").add("digest", "binary")
        return question.add("carries", "boolean").add("refers", "boolean").add("left", self.lefts.value_type)

    @property
    def answer_type(self) -> T.StructType:
        """What the right side tells beside the left key: an `Answer`'s fields."""
        answer = T.StructType().add("answers", "boolean").add("digest", "binary").add("right", self.rights.value_type)
        answer = answer.add("carries", "boolean").add("asked", "boolean").add("refers", "boolean")
        return answer.add("left", self.lefts.value_type)

    def asked(self) -> DataFrame:
        """Give what the sender tells, by left key: whom it asks for what."""
        row_type = T.StructType([T.StructField("left", self.lefts.value_type), *self.to_fields])
        names = (column.alias(at.name) for column, at in renamed("to", self.refers))
        row = F.struct(self.lefts.value.alias("left"), *names)
        one = self.lefts._replace(keys=renamed("key", self.lefts.keys), value=row, value_type=row_type)
        return keyed(
            [at_stage(one, 1)],
            self.stages.sender,
            kept_type=T.StructType(self.to_fields),
            value_type=T.StructType([*self.to_fields, *self.question_type.fields]),
            **self.settings,
        )

    def answered(self, questions: Input, changes: Input) -> DataFrame:
        """Give what the right side tells, by foreign key: its answers to questions, and to changes of right rows."""
        subscription = T.StructType([*self.key_fields, T.StructField("digest", T.BinaryType())])
        to = questions.keys
        names = [F.col(field.name) for field in self.key_fields]
        kept = T.StructType().add("right", self.rights.value_type).add("timestamp", "long")
        return keyed(
            [questions._replace(spread=spread(to, names)), changes],
            self.stages.right,
            kept_type=kept.add("subscriptions", T.ArrayType(subscription)),
            value_type=T.StructType([*self.key_fields, *self.answer_type.fields]),
            **self.settings,
        )

    def told(self, answers: Input) -> DataFrame:
        """Give what the receiver tells: the changelog, by left key."""
        kept = T.StructType().add("left", self.lefts.value_type).add("digest", "binary")
        return keyed(
            [answers],
            self.stages.receiver,
            kept_type=kept.add("refers", "boolean").add("shown", "boolean"),
            value_type=joined_type(self.lefts.value_type, self.rights.value_type),
            **self.settings,
        )


def foreign_key_tables(
    left: DataFrame,
    right: DataFrame,
    *,
    foreign_key: ColumnsLike,
    join: ForeignKeyJoin,
    report_dropped: bool,
    state_groups: int | None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None,
    **columns: Any,
) -> ForeignKeyTables:
    """Find the columns of both tables; `columns` are those of `two_sides`.

    Raises:
        BadInput: A column is missing or of the wrong type, or the foreign key is of another type than the right key.
    """
    lefts, rights = two_sides(left, right, **columns)
    require_same_order(lefts, rights)
    refers = named_columns(left, "foreign_key", foreign_key)
    require_same_types(refers, rights.keys)
    shown = ", ".join(field.name for _, field in refers)
    settings: dict[str, Any] = {"state_groups": state_groups, "report_dropped": report_dropped, "timed": False}
    settings["declaration"] = declaration_of("foreign_key_join", join, foreign_key=shown)
    return ForeignKeyTables(lefts, rights, refers, (logic or foreign_key_stages)(join), settings)
