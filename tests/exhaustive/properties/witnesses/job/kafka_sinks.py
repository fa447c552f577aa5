"""Jobs that write to Kafka, checked in a process whose Spark has the connector; prints what the checks say, as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink, Violated, invariants
from streamproof.properties.laws.all import invariants as laws_of_jobs
from streamproof.properties.witnesses.job.sinks.kafka import _clients
from streamproof.properties.witnesses.kafka.functions import filled

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
OTHERS = [law.of_jobs for law in laws_of_jobs() if law.of_jobs != "a crash"]


def records(rows: DataFrame, *columns: str) -> DataFrame:
    value: Column = F.to_json(F.struct("user", "amount", *columns))
    return rows.select(F.col("user").alias("key"), value.alias("value"))


def plain(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    broker, topic = target.split("/")
    writer = records(clicks).writeStream.format("kafka").option("kafka.bootstrap.servers", broker)
    return writer.option("topic", topic).option("checkpointLocation", checkpoint).start()


def by_batch_and_row(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    broker, topic = target.split("/")

    def write(rows: DataFrame, batch: int) -> None:
        number = F.row_number().over(Window.orderBy("user", "at", "amount"))
        numbered = rows.withColumn("batch", F.lit(batch)).withColumn("row", number)
        writer = records(numbered, "batch", "row").write.format("kafka").option("kafka.bootstrap.servers", broker)
        writer.option("topic", topic).save()

    return clicks.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()


def said(sink: Sink) -> str:
    try:
        assert "a crash" in invariants(sink, CLICKS, histories=20, seconds=90, without=OTHERS).laws
    except Violated as violated:
        return str(violated)
    return "conforms"


def transactions() -> object:
    """Return what is read of a topic with a committed, an aborted and an open transaction."""
    clients = _clients()
    kafka, jvm = clients._kafka, clients.jvm
    text = kafka.common.serialization.Serdes.String().serializer()
    sink = Sink.kafka(plain)
    with tempfile.TemporaryDirectory() as folder, sink.at(Path(folder)) as (target, _):
        broker, topic = target.split("/")
        open_ones = []
        for number, end in ((1, "commitTransaction"), (2, "abortTransaction"), (3, "flush")):
            given = {"bootstrap.servers": broker, "transactional.id": f"t{number}"}
            producer = kafka.clients.producer.KafkaProducer(filled(jvm.java.util.Properties(), given), text, text)
            producer.initTransactions()
            producer.beginTransaction()
            producer.send(kafka.clients.producer.ProducerRecord(topic, "k", json.dumps({"n": number})))
            producer.flush()
            getattr(producer, end)()
            open_ones.append(producer)
        found = sink.read(target)
        for producer in open_ones:
            producer.close(jvm.java.time.Duration.ZERO)
    return found


if __name__ == "__main__":
    outcomes = {
        "plain": said(Sink.kafka(plain, without=["key"])),
        "known by batch and row": said(
            Sink.kafka(by_batch_and_row, once=["batch", "row"], without=["key", "batch", "row"])
        ),
        "transactions": transactions(),
    }
    print(json.dumps(outcomes))
