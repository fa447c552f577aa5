"""Session windows below another aggregate are removed if their own aggregates aren't needed: each row is a session."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 10, 1), ("x", 15, 1)]}, {"a": [("y", 55, 1)]}, {"a": [("y", 56, 1)]}]


def query(a):
    sessions = a.withWatermark("ts", "0 seconds").groupBy("k", F.session_window("ts", "10 seconds")).count()
    ends = sessions.select("k", F.window_time("session_window").alias("ts"))
    return ends.groupBy("k", "ts").count().select("k", "ts")


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


print("of all sessions:", one := stream(query))
spark.conf.set("spark.sql.optimizer.excludedRules", "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAggregates")
print("without RemoveRedundantAggregates:", two := stream(query))
sys.exit(one != two)
