"""A deduplication, or a join without bounds, drops no late rows if the event time isn't selected (SPARK-58979)."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 50, 1)]}, {"a": [("y", 55, 1)]}, {"a": [("late", 10, 1)]}]


def query(a):
    return a.withWatermark("ts", "0 seconds").dropDuplicates(["k"]).select("k", "ts")


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


print("k of k, ts:", one := [row.split(",")[0] + ")" for row in stream(query)])
print("k:", two := stream(lambda a: query(a).select("k")))
sys.exit(one != two)
