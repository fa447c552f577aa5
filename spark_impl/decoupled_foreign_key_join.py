"""Foreign-key joins on Spark in three queries, with the messages between them on topics.

The sender reads the left rows and writes subscriptions; the right side reads subscriptions and right rows, and writes
responses; the receiver reads the responses. Each query has its own checkpoint, runs at its own pace, and may run in a
separate application. Messages wait until their reader runs, so the races of KIP-213 can happen.

The receiver reads the left rows too, and must read a row before any response to that row. The sender therefore appends
each row to the responses' topic before it appends the row's subscriptions: no response overtakes its row. Source:
KIP-213, "Workflow", "Original Value Hash".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StreamingQuery

from ..reference.core.errors import BadInput
from ..reference.definitions.joins import ForeignKeyJoin
from .foreign_keys.referring import referring_tables
from .foreign_keys.stages import ForeignKeyStages, ForeignKeyTables, foreign_key_tables
from .runtime.checkpoints import query_of
from .runtime.codec import EVERY_LEVEL
from .runtime.columns import ColumnLike
from .runtime.inputs import JoinInputLike, OperatorInput
from .runtime.keyed import staged
from .runtime.logic import BEFORE_ALL_TIMES
from .topics import Topics

Send = Callable[[DataFrame, str, int], None]


class TopicQuery(NamedTuple):
    """A query that writes its messages to topics.

    Attributes:
        name: `sender` or `right`.
        messages: The messages, as a streaming DataFrame.
        send: Appends a batch of messages to the topics; takes the producer's name and the batch's number.
    """

    name: str
    messages: DataFrame
    send: Send

    def start(self, checkpoint: str, **trigger: Any) -> StreamingQuery:
        """Start the query, or resume it from its checkpoint.

        Args:
            checkpoint: The query's checkpoint folder; no other query may use it.
            trigger: The trigger, as in Spark's `DataStreamWriter.trigger`, such as `availableNow=True`; by default
                Spark's default trigger.

        Raises:
            BadInput: The checkpoint is damaged.
        """
        query_of(self.messages.sparkSession, checkpoint)
        # The query's id is the producer's name: a repeated batch has the same id, a query with a new checkpoint
        # another.
        identity = cache(lambda: query_of(self.messages.sparkSession, checkpoint))

        def write(frame: DataFrame, batch: int) -> None:
            self.send(frame, f"{self.name}-{identity()}", batch)

        writer = self.messages.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()


class DecoupledForeignKeyJoin(NamedTuple):
    """The three queries of a decoupled foreign-key join.

    Attributes:
        sender: Converts left rows to subscriptions.
        right: Responds to subscriptions, and to every change of a right row.
        changelog: The receiver's output, with the columns of `foreign_key_join`'s result: write it to any sink.
    """

    sender: TopicQuery
    right: TopicQuery
    changelog: DataFrame


def decoupled_foreign_key_join(
    left: JoinInputLike,
    right: JoinInputLike,
    topics: Topics,
    *,
    foreign_key: ColumnLike | Sequence[ColumnLike],
    join: Literal["inner", "left"] = "inner",
    null_foreign_key: Literal["ignore", "keep"] = "ignore",
    protocol: Literal["kip", "answer"] = "answer",
    report_dropped: bool = False,
    state_groups: int | None = None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None = None,
) -> DecoupledForeignKeyJoin:
    """Join each row of a table with the referenced row of another table, in three queries.

    With `protocol="answer"`, the default here, the result is the join of both tables whenever no message waits, at any
    pace of the three queries. With `kip` an inner join follows KIP-213 to the letter, and its result can stay wrong: a
    left row that changes while a response to it waits may never get a response to its new value. Wrong results are
    rare, and nothing reports them. `answer` sometimes emits a tombstone without an earlier result, like every left
    join.

    If left values repeat (A, B, A), a result may temporarily join rows that never existed together, because the
    protocol identifies a left value by its hash. A later response corrects the result.

    Args:
        left: The referring table, streaming; see `inputs.table`. The order of arrival only matters within each input.
        right: The referenced table, streaming.
        topics: The topics on which messages wait: `file_topics(folder)`, `kafka_topics("broker:9092")`, or two `Topic`s
            of your own.
        foreign_key: As in `foreign_key_join`.
        join: `inner` or `left`.
        null_foreign_key: `ignore` or `keep`; see `ForeignKeyJoin`.
        protocol: `answer` or `kip`; see `ForeignKeyJoin`.
        report_dropped: Whether the changelog also contains dropped rows.
        state_groups: As in `foreign_key_join`.
        logic: As in `foreign_key_join`.

    Returns: The queries. An application that runs only one of the queries declares the whole join in the same way, and
        starts that query.

    Raises:
        BadInput: Any error of `foreign_key_join`, or an input isn't streaming.

    Source: KIP-213; `docs/facts.md`, "Races of the foreign-key join", for the wrong results of `kip`.
    """
    tables = foreign_key_tables(
        referring_tables(left, right, foreign_key),
        ForeignKeyJoin("foreign_key", join, null_foreign_key, protocol),
        report_dropped=report_dropped,
        state_groups=state_groups,
        logic=logic,
    )
    for rows in (tables.lefts, tables.rights):
        if not rows.frame.isStreaming:
            raise BadInput(
                f"{rows.side}: it is a batch DataFrame, and three queries need streams: use foreign_key_join"
            )
    messages = _Messages(tables, topics)
    return DecoupledForeignKeyJoin(
        TopicQuery("sender", messages.subscriptions(), messages.send_subscriptions),
        TopicQuery("right", messages.responses(), messages.send_responses),
        messages.changelog(),
    )


class _Messages:
    """The messages on the topics, and the order in which a query processes the messages.

    Within a batch right rows come before subscriptions, and left rows before responses. Messages are ordered by their
    sender's batch, then by their ordinal in that batch, then by route. A repeated batch has the same order.
    """

    def __init__(self, tables: ForeignKeyTables, topics: Topics) -> None:
        self.tables, self.topics = tables, topics
        self.keys = [field.name for field in tables.key_fields]
        self.to = [field.name for field in tables.to_fields]
        sent = T.StructType().add("timestamp", "long").add("reason", "string").add("cause", tables.lefts.order_type)
        sent = sent.add("batch", "long").add("ordinal", "integer")
        self.subscription_type = T.StructType(
            [*tables.key_fields, *tables.to_fields, *sent.fields, *T.StructType().add("instruction", "string").fields]
        ).add("digest", "binary")
        self.response_type = T.StructType(
            [*tables.key_fields, *tables.to_fields, *sent.fields, *tables.response_type.fields]
        )

    def send_subscriptions(self, emitted: DataFrame, producer: str, batch: int) -> None:
        """Send the left rows, and then their subscriptions."""
        emitted = emitted.persist()
        asks = F.col("value.instruction").isNotNull()
        rows = emitted.filter(F.col("value.carries") | F.col("reason").isNotNull())
        subscriptions, responses = self.topics
        row = {
            **self._common(batch),
            **{name: F.col(name) for name in self.keys},
            **{name: F.col(f"value.{name}") for name in ("digest", "carries", "refers", "left")},
            "asked": asks,
            "answers": F.lit(False),
            **{name: F.lit(None) for name in ("right", *self.to)},
        }
        responses.append(_selected(rows, row, self.response_type), self.keys, producer, batch)
        subscription = {
            **self._common(batch),
            **{name: F.col(name) for name in self.keys},
            **{name: F.col(f"value.{name}") for name in (*self.to, "instruction", "digest")},
        }
        sent = _selected(emitted.filter(asks), subscription, self.subscription_type)
        subscriptions.append(sent, self.to, producer, batch)
        emitted.unpersist()

    def send_responses(self, emitted: DataFrame, producer: str, batch: int) -> None:
        """Send the responses of right keys."""
        answer = {
            **self._common(batch),
            "cause": F.col("cause.order"),
            **{name: F.col(name) for name in self.to},
            **{name: F.col(f"value.{name}") for name in (*self.keys, *self.tables.response_type.names)},
        }
        self.topics.responses.append(_selected(emitted, answer, self.response_type), self.keys, producer, batch)

    def subscriptions(self) -> DataFrame:
        """Declare the sender's messages, by left key."""
        tables = self.tables
        sent = T.StructType([*tables.to_fields, *tables.subscription_type.fields])
        return staged([tables.sender()], value_type=sent, **tables.settings)

    def responses(self) -> DataFrame:
        """Declare the right side's responses to subscriptions and right rows, by foreign key."""
        tables, rights = self.tables, self.tables.rights
        found = self.topics.subscriptions.read(rights.frame.sparkSession, self.subscription_type)
        seen = [
            *(F.col(name) for name in ("timestamp", "reason", "instruction", "digest")),
            *(F.lit(False).alias(name) for name in ("carries", "refers")),
            F.lit(None).cast(tables.lefts.value_type).alias("left"),
            *(F.col(name) for name in self.keys),
        ]
        subscriptions = self._messages(found, [(F.col(at.name), at) for at in tables.to_fields], F.lit(1), seen)
        at = F.coalesce(F.unix_millis(rights.time), F.lit(BEFORE_ALL_TIMES))
        order = self._place(turn=F.lit(0), order=rights.order, at=at)
        changes = rights._replace(order=order, order_type=self.place_type)
        sent = T.StructType([*tables.key_fields, *tables.response_type.fields])
        return staged([tables.right([subscriptions, changes])], value_type=sent, **tables.settings)

    def changelog(self) -> DataFrame:
        """Declare the receiver's changelog, by left key; its `cause` is the order column's value."""
        tables = self.tables
        found = self.topics.responses.read(tables.lefts.frame.sparkSession, self.response_type)
        keys = [(F.col(name), field) for name, (_, field) in zip(self.keys, tables.lefts.keys, strict=True)]
        seen = [F.col(name) for name in ("timestamp", "reason", *tables.response_type.names)]
        turn = F.when(F.col("answers"), 1).otherwise(0)
        received = tables.receiver([self._messages(found, keys, turn, seen)])
        emitted = staged([received], value_type=tables.result_type, **tables.settings)
        place = F.struct("place.phase", "cause.*", F.col("ordinal").alias("step"))
        return emitted.withColumns({"cause": F.col("cause.order"), "place": place})

    def _common(self, batch: int) -> dict[str, Column]:
        columns = {name: F.col(name) for name in ("reason", "cause", "ordinal")}
        return columns | {"timestamp": F.unix_millis("timestamp"), "batch": F.lit(batch)}

    @property
    def place_type(self) -> T.StructType:
        """The type of the order in a batch: the input's rank (`turn`); then a message's batch, ordinal and route, or a
        row's order.
        """
        sent = T.StructType().add("turn", "integer").add("batch", "long").add("ordinal", "integer")
        return sent.add("route", "long").add("order", self.tables.lefts.order_type).add("at", "long")

    def _place(self, **known: Column) -> Column:
        fields = self.place_type.fields
        return F.struct(*(known.get(one.name, F.lit(None)).cast(one.dataType).alias(one.name) for one in fields))

    def _messages(
        self, found: DataFrame, keys: list[tuple[Column, T.StructField]], turn: Column, seen: list[Column]
    ) -> OperatorInput:
        sent = {"batch": F.col("batch"), "ordinal": F.col("ordinal"), "route": F.xxhash64(*self.to)}
        value = F.struct(*seen)
        return OperatorInput(
            side="messages",
            frame=found,
            keys=keys,
            time=F.timestamp_millis(F.coalesce("timestamp", F.lit(0))),
            order=self._place(turn=turn, **sent, order=F.col("cause")),
            order_type=self.place_type,
            value=value,
            value_type=found.select(value.alias("seen")).schema["seen"].dataType,
            as_tuples=EVERY_LEVEL,
        )


def _selected(frame: DataFrame, columns: dict[str, Column], schema: T.StructType) -> DataFrame:
    return frame.select(*(columns[field.name].cast(field.dataType).alias(field.name) for field in schema.fields))
