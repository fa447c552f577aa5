"""Foreign-key joins on Spark: each left row refers, by a part of its value, to one right row.

*Fused*, in one query of three stages: the sender (by left key) asks the right keys concerned; the right side (by
foreign key) answers, and so does every change of a right row; the receiver (by left key) joins the answers with the
left rows. A left row rides along with the question, so that each input is read once, be it another join's changelog.
Source: KIP-213, "Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.joins import ForeignKeyJoin
from .columns import ColumnLike
from .keyed import (
    Arrived,
    Key,
    Told,
    changed,
    dropped,
    joined,
    joined_type,
    keyed,
    require_same_order,
    two_sides,
)
from .stages import (
    StageLogic,
    at_stage,
    digest_of,
    dropped_before,
    finished,
    messages,
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


def foreign_key_join(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    foreign_key: ColumnLike | Sequence[ColumnLike],
    order: ColumnLike | None = None,
    right_key: ColumnLike | Sequence[ColumnLike] | None = None,
    right_timestamp: ColumnLike | None = None,
    right_value: ColumnLike | None = None,
    right_order: ColumnLike | None = None,
    join: Literal["inner", "left"] = "inner",
    null_foreign_key: Literal["ignore", "keep"] = "ignore",
    protocol: Literal["kip", "answer"] = "kip",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None = None,
) -> DataFrame:
    """Join each row of a table with the row of another that it refers to, and give the changelog by left key.

    All messages of a batch are delivered in it, in the order in which the rows that set them off arrived: the changelog
    is that of immediate delivery, and none of the protocol's races can come up.

    Args:
        left: The changes of the referring table, streaming or batch: a row whose value is null deletes its key.
        right: The changes of the table referred to.
        key: The left key: one or several columns. A row in which one of them is null is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. It only stamps the
            changes: of two rows of a key the one that arrives last stands.
        value: The column that holds a row's value; several can be put into a struct.
        foreign_key: What a left row refers to, such as `F.col("value.artist")`: one or several columns, of the types of
            the right key. Where one of them is null the row has no foreign key; a tombstone's plays no part.
        order: The order of arrival across both inputs, such as an offset; without it a batch is taken by timestamp, of
            equal ones the right row first.
        right_key: The right key, where it isn't called as the left one; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value.
        right_order: Its order of arrival.
        join: `inner` or `left`.
        null_foreign_key: `ignore` or `keep`; see `ForeignKeyJoin`.
        protocol: `kip` or `answer`; see `ForeignKeyJoin`. Without races they differ in useless tombstones alone.
        report_dropped: Whether rows that were dropped are told too, a right row without left key.
        state_groups: As in `keyed`, for each stage: None keeps one state for each left key and for each foreign key.
            The state is as large as both tables, and each left row's foreign key is kept twice more; the subscriptions
            to one foreign key are one state, which is read and written whole when a batch concerns it.
        logic: Makes what decides in each stage, of a declaration; another than `foreign_key_stages` for seeded bugs.

    Returns:
        As `keyed`, without windows, under the left key: `value struct<left, right>` is null in a tombstone. A streaming
        result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the foreign key is of another type than the right key, or
            there is no such join or option.

    Source: KIP-213.
    """
    declared = ForeignKeyJoin("foreign_key", join, null_foreign_key, protocol)
    stages = (logic or foreign_key_stages)(declared)
    lefts, rights = two_sides(
        left,
        right,
        key=key,
        timestamp=timestamp,
        value=value,
        order=order,
        right_key=right_key,
        right_timestamp=right_timestamp,
        right_value=right_value,
        right_order=right_order,
    )
    require_same_order(lefts, rights)
    refers = named_columns(left, "foreign_key", foreign_key)
    require_same_types(refers, rights.keys)
    settings: dict[str, Any] = {"state_groups": state_groups, "report_dropped": report_dropped, "timed": False}

    key_fields, to_fields = numbered("key", lefts.keys), numbered("to", refers)
    row_type = T.StructType([T.StructField("left", lefts.value_type), *to_fields])
    row = F.struct(lefts.value.alias("left"), *(column.alias(at.name) for column, at in renamed("to", refers)))
    question = T.StructType().add("instruction", "string").add("digest", "binary")
    question = question.add("carries", "boolean").add("refers", "boolean").add("left", lefts.value_type)
    sent = keyed(
        [at_stage(lefts._replace(keys=renamed("key", lefts.keys), value=row, value_type=row_type), 1)],
        stages.sender,
        kept_type=T.StructType(to_fields),
        value_type=T.StructType([*to_fields, *question.fields]),
        **settings,
    )

    to = [(F.col(f"value.{at.name}"), at) for at in to_fields]
    from_left = [F.col(field.name) for field in key_fields]
    questions = messages(sent, lefts, 2, to, [*(F.col(f"value.{name}") for name in question.names), *from_left])
    subscription = T.StructType([*key_fields, T.StructField("digest", T.BinaryType())])
    answer = T.StructType().add("answers", "boolean").add("digest", "binary").add("right", rights.value_type)
    answer = answer.add("carries", "boolean").add("asked", "boolean").add("refers", "boolean")
    answer = answer.add("left", lefts.value_type)
    changes = at_stage(rights._replace(keys=renamed("to", rights.keys)), 2)
    answered = keyed(
        [questions._replace(spread=spread(to, from_left)), changes],
        stages.right,
        kept_type=T.StructType()
        .add("right", rights.value_type)
        .add("timestamp", "long")
        .add("subscriptions", T.ArrayType(subscription)),
        value_type=T.StructType([*key_fields, *answer.fields]),
        **settings,
    )

    back = [(F.col(f"value.{ours.name}"), field) for ours, (_, field) in zip(key_fields, lefts.keys, strict=True)]
    answers = messages(answered, lefts, 3, back, [F.col(f"value.{name}") for name in answer.names])
    told = keyed(
        [answers],
        stages.receiver,
        kept_type=T.StructType()
        .add("left", lefts.value_type)
        .add("digest", "binary")
        .add("refers", "boolean")
        .add("shown", "boolean"),
        value_type=joined_type(lefts.value_type, rights.value_type),
        **settings,
    )
    return finished(told)


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


class SenderLogic(StageLogic[list[Key]]):
    """What happens to a left row: it remembers its foreign key (at most one), and asks the right keys concerned."""

    def __init__(self, join: ForeignKeyJoin) -> None:
        self.join = join

    def empty(self) -> list[Key]:
        """No foreign key."""
        return []

    def pack(self, kept: list[Key]) -> tuple[Any, ...] | None:
        """The foreign key, if there is one."""
        return kept[0] if kept else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        """The foreign key again."""
        return [tuple(fields)]

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
