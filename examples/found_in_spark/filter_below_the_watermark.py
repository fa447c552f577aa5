"""A filter above an aggregate moves below withWatermark: other rows no longer move the watermark."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 10, 1)]}, {"a": [("y", 50, 1)]}, {"a": [("x", 11, 1)]}, {"a": [("x", 55, 1)]}]


def query(a):
    counts = a.withWatermark("ts", "0 seconds").groupBy("k", F.window("ts", "10 seconds")).count()
    return counts.where("k = 'x'").select("k", "count")


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


print("where k = 'x':", one := stream(query))
rules = ("PushDownPredicates", "PushPredicateThroughNonJoin")
spark.conf.set("spark.sql.optimizer.excludedRules", ",".join("org.apache.spark.sql.catalyst.optimizer." + rule for rule in rules))
print("the same, where filters stay:", two := stream(query))
sys.exit(one != two)
