"""A run that reads Kafka, judged, in a process whose Spark has the connector; prints what the judge says, as JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof import Inconclusive, Input, Sink, StreamproofError, Violated, replay, windows
from streamproof.properties.witnesses.job.sinks.kafka import _clients
from streamproof.properties.witnesses.kafka.jvm import kafka_jvm
from streamproof.properties.witnesses.spark.session import spark_session

ORDERS = Input("user string, at timestamp, amount int", key="user", name="orders", format="kafka")
RULE = windows("1 hour", delay="10 minutes", aggregates={"total": ("sum", "amount")})


def totals(orders: DataFrame) -> DataFrame:
    rows = orders.select(F.from_json(F.col("value").cast("string"), "user string, at timestamp, amount int").alias("r"))
    hours = rows.select("r.*").withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour"))
    return hours.agg(F.sum("amount").alias("total"))


def judged(expect: Any, broker: str, folder: Path) -> str:
    reads = {"orders": {"format": "kafka", "kafka.bootstrap.servers": broker}}
    try:
        return str(replay(folder / "cp", totals, ORDERS, output=str(folder / "out"), expect=expect, reads=reads))
    except (StreamproofError, Violated, Inconclusive) as error:
        return str(error).splitlines()[0]


def delete(before: Mapping[str, Mapping[str, int]]) -> None:
    """Delete the records of topics that are before offsets, as a retention does."""
    clients, gateway = _clients(), kafka_jvm().gateway
    upto, java = clients.jvm.java.util.HashMap(), clients.jvm.java
    kinds, given = gateway.new_array(java.lang.Class, 1), gateway.new_array(java.lang.Object, 1)
    kinds[0] = java.lang.Long.TYPE
    records = java.lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete")
    made = records.getMethod("beforeOffset", kinds)  # py4j finds the other method of this name
    for topic, offsets in before.items():
        for part, offset in offsets.items():
            given[0] = java.lang.Long.valueOf(offset)
            upto.put(clients.jvm.org.apache.kafka.common.TopicPartition(topic, int(part)), made.invoke(None, given))
    clients.admin.deleteRecords(upto).all().get()


def main() -> None:
    spark = spark_session(any_provider=True)
    topic = Sink.kafka(lambda *frames: None)
    with tempfile.TemporaryDirectory() as name, topic.at(Path(name)) as (target, _):
        folder, (broker, orders) = Path(name), target.split("/")
        for number in range(4):
            values = [
                {"user": f"u{n % 3}", "at": f"2026-01-01T0{number}:{10 * (n % 6):02}:00Z", "amount": n}
                for n in range(40)
            ]
            lines = [(one["user"], json.dumps(one)) for one in values] + [("u0", "{not")] * (number == 1)
            frame = spark.createDataFrame(lines, "key string, value string")
            frame.write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", orders).save()
            source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
            source = source.option("subscribe", orders).option("startingOffsets", "earliest")
            writer = totals(source.load()).writeStream.option("checkpointLocation", f"{folder}/cp")
            writer.format("parquet").trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
        wrong = windows("1 hour", delay="10 minutes", aggregates={"total": ("max", "amount")})
        said: dict[str, str] = {}

        def judge(when: str) -> None:
            said.update({f"right{when}": judged(RULE, broker, folder), f"wrong{when}": judged(wrong, broker, folder)})

        judge("")
        delete(json.loads((folder / "cp/offsets/2").read_text().splitlines()[2]))
        judge(" without records")
        for log in ("offsets", "commits"):
            for batch in range(2):
                (folder / "cp" / log / str(batch)).unlink()
        judge(" without logs")
        print(json.dumps(said))


if __name__ == "__main__":
    main()
