"""A limit above an aggregate dies with RocksDB: it takes the aggregate's state store for its own."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 10, 1)]}]


def query(a):
    return a.withWatermark("ts", "0 seconds").groupBy("k", F.window("ts", "10 seconds")).count().limit(3)


def stream(query):
    folder, out = pathlib.Path(tempfile.mkdtemp()), []
    for number, batch in enumerate(BATCHES):
        for name in 'a':
            (folder / name).mkdir(exist_ok=True)
            rows = [json.dumps({"k": k, "ts": f"2026-01-01 00:00:{s}", "v": v}) for k, s, v in batch.get(name, [])]
            if name in batch:
                (folder / name / f"{number}.json").write_text("\n".join(rows))
        frames = [spark.readStream.schema("k string, ts timestamp, v int").json(str(folder / name)) for name in 'a']
        writer = query(*frames).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(lambda rows, _: out.extend(map(str, rows.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(out)


print("with the default provider:", stream(query))
spark.conf.set("spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
try:
    print("with RocksDB:", stream(query))
except Exception as error:
    sys.exit(f"with RocksDB: {[line for line in str(error).splitlines() if 'assertion' in line][:1]}")
