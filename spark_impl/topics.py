"""Topics, as files or on Kafka: a query's messages wait there for another query.

A topic keeps the messages of each key in the order of appending. The foreign-key join's protocol requires nothing more
of a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.core.errors import BadInput

FOR_EVER = "36500d"
AS_WRITTEN = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Options for JSON; without the format, Spark truncates timestamps to milliseconds."""


class Topic(Protocol):
    """A topic: any class with these two methods."""

    def read(self, spark: SparkSession, schema: T.StructType) -> DataFrame:
        """Return the messages, from the oldest on, as a streaming DataFrame of the schema."""

    def append(self, messages: DataFrame, keys: Sequence[str], producer: str, batch: int) -> None:
        """Append the messages of a producer's batch, in key order.

        A producer that crashed between two topics appends the same messages of a batch again. A topic may store both
        copies (the protocol tolerates that) or ignore the repeated messages.

        Args:
            messages: The messages.
            keys: The columns of the messages' key; messages of one key go to one partition.
            producer: The name of the query, the same after restarts.
            batch: The number of the query's batch.
        """


@dataclass(frozen=True)
class FileTopic:
    """A topic of parquet files in a folder; it contains each message exactly once.

    Every batch becomes a separate folder, which appears at once and never changes. Files are never removed, so use a
    file topic for one machine, tests and small data.

    Attributes:
        folder: The folder of the files, on a file system that producer and consumer share; created if missing.
    """

    folder: Path

    def read(self, spark: SparkSession, schema: T.StructType) -> DataFrame:
        """Return the messages as a stream; a batch reads all existing files.

        Raises:
            BadInput: The folder is missing, and can't be created.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"topics: {self.folder} can't be created ({error.strerror}): name a writable folder"
            ) from None
        # Spark by default skips files a week older than the newest file, which a query that lags may not have read.
        options = {"recursiveFileLookup": "true", "maxFileAge": FOR_EVER}
        return spark.readStream.schema(schema).options(**options).parquet(str(self.folder))

    def append(self, messages: DataFrame, keys: Sequence[str], producer: str, batch: int) -> None:
        """Write the messages of a batch, unless they exist already; readers see all of them or none."""
        written = self.folder / f"{producer}-{batch:09d}"
        if written.exists():
            return
        hidden = self.folder / f"_{written.name}"  # the _ hides it from readers until it is renamed
        messages.write.mode("overwrite").parquet(str(hidden))
        hidden.rename(written)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic on Kafka, to which each message is written at least once, as JSON, partitioned by the JSON of its key.

    The topic needs Spark's Kafka connector on the class path: `spark.jars.packages` with
    `org.apache.spark:spark-sql-kafka-0-10_2.13:<Spark's version>`.

    Attributes:
        servers: The addresses, `host:port`, separated by commas.
        name: The topic's name. Its retention must be longer than the largest lag of its consumer; Spark fails if
            messages were deleted before it has read them.
    """

    servers: str
    name: str

    def read(self, spark: SparkSession, schema: T.StructType) -> DataFrame:
        """Return the messages as a stream, from the oldest on."""
        options = {"kafka.bootstrap.servers": self.servers, "subscribe": self.name, "startingOffsets": "earliest"}
        return decoded(spark.readStream.format("kafka").options(**options).load(), schema)

    def append(self, messages: DataFrame, keys: Sequence[str], producer: str, batch: int) -> None:
        """Send the messages of a batch; a repeated batch is sent again."""
        options = {"kafka.bootstrap.servers": self.servers, "topic": self.name}
        encoded(messages, keys).write.format("kafka").options(**options).save()


def encoded(messages: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return messages as `key string, value string`, both JSON."""
    return messages.select(
        F.to_json(F.struct(*keys), AS_WRITTEN).alias("key"), F.to_json(F.struct("*"), AS_WRITTEN).alias("value")
    )


def decoded(sent: DataFrame, schema: T.StructType) -> DataFrame:
    """Undo `encoded`."""
    return sent.select(F.from_json(F.col("value").cast("string"), schema, AS_WRITTEN).alias("m")).select("m.*")


class Topics(NamedTuple):
    """The two topics of a decoupled foreign-key join.

    Attributes:
        subscriptions: The messages from left keys to right keys.
        responses: The messages from right keys to left keys, and the left rows.
    """

    subscriptions: Topic
    responses: Topic


def file_topics(folder: str | Path) -> Topics:
    """Return topics as files below a folder.

    Raises:
        BadInput: The path is a file.
    """
    base = Path(folder)
    if base.exists() and not base.is_dir():
        raise BadInput(f"topics: {base} is a file: name a folder, which is created if missing")
    return Topics(FileTopic(base / "subscriptions"), FileTopic(base / "responses"))


def kafka_topics(servers: str, prefix: str = "foreign_key_join") -> Topics:
    """Return topics on Kafka, called `<prefix>-subscriptions` and `<prefix>-responses`.

    Raises:
        BadInput: An address has no port.
    """
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise BadInput(f"topics: {server.strip()!r} isn't a Kafka address: write host:port, such as broker:9092")
    return Topics(KafkaTopic(servers, f"{prefix}-subscriptions"), KafkaTopic(servers, f"{prefix}-responses"))
