"""Orders that nobody paid within 30 minutes of placing them, from Kafka to the table of reminders."""

import json
import os

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json, timestamp_micros, unix_micros
from pyspark.sql.streaming.state import GroupStateTimeout

PAY_WITHIN_US = 30 * 60 * 1_000_000
DECIDE_AFTER_MS = 30 * 60 * 1000


def decide(key, frames, order):
    """Keep the events of an order until a timeout 30 minutes after the order, and then decide whether it was paid."""
    decided, kept = order.get if order.exists else (False, "[]")
    if decided:
        return
    events = json.loads(kept)
    if not order.hasTimedOut:
        for frame in frames:
            events += [(int(at_us), bool(paid)) for at_us, paid in zip(frame["at_us"], frame["paid"], strict=True)]
    order.update((False, json.dumps(events)))
    placed = [at_us for at_us, paid in events if not paid]
    if not placed:
        return
    placed_us = min(placed)
    decided_ms = -(-placed_us // 1000) + DECIDE_AFTER_MS
    if decided_ms > order.getCurrentWatermarkMs():
        # 1 ms earlier, because a timeout fires only once the watermark is past its time
        order.setTimeoutTimestamp(decided_ms - 1)
        return
    order.update((True, "[]"))
    if not any(paid and 0 <= at_us - placed_us <= PAY_WITHIN_US for at_us, paid in events):
        yield pd.DataFrame({"order_id": [key[0]], "placed_us": [placed_us]})


spark = SparkSession.builder.appName("unpaid-orders").getOrCreate()

raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", os.environ.get("KAFKA", "localhost:9092"))
    .option("subscribe", "orders")
    .option("failOnDataLoss", "false")
    .load()
)
orders = raw.select(from_json(col("value").cast("string"), "order_id BIGINT, at TIMESTAMP, paid BOOLEAN").alias("o"))
events = orders.select("o.*").withWatermark("at", "10 minutes")

unpaid = (
    events.select("order_id", "at", unix_micros("at").alias("at_us"), "paid")
    .groupBy("order_id")
    .applyInPandasWithState(
        decide,
        outputStructType="order_id bigint, placed_us bigint",
        stateStructType="decided boolean, events string",
        outputMode="append",
        timeoutConf=GroupStateTimeout.EventTimeTimeout,
    )
    .select("order_id", timestamp_micros("placed_us").alias("placed_at"))
)

unpaid.writeStream.option("checkpointLocation", "/checkpoints/unpaid_orders").toTable("shop.reminders")
spark.streams.awaitAnyTermination()
