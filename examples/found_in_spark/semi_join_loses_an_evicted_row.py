"""A left semi join loses a row whose partner is evicted by the batch in which both come."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
KIND = "inner"
BATCHES = [{"a": [("z", 50, 1)], "b": [("z", 50, 1)]}, {"a": [("x", 55, 1)], "b": [("x", 55, 1), ("y", 59, 1)]}, {"a": [("x", 55, 1)], "b": [("x", 51, 1)]}]


def query(a, b):
    left = a.withWatermark("ts", "0 seconds")
    right = b.withWatermark("ts", "0 seconds").selectExpr("k as k2", "ts as ts2")
    within = F.expr("k = k2 and ts2 between ts - interval 5 seconds and ts + interval 5 seconds")
    return left.join(right, within, KIND).select("k", "ts", "v")


def stream(query):
    folder, out = pathlib.Path(tempfile.mkdtemp()), []
    for number, batch in enumerate(BATCHES):
        for name in 'ab':
            (folder / name).mkdir(exist_ok=True)
            rows = [json.dumps({"k": k, "ts": f"2026-01-01 00:00:{s}", "v": v}) for k, s, v in batch.get(name, [])]
            if name in batch:
                (folder / name / f"{number}.json").write_text("\n".join(rows))
        frames = [spark.readStream.schema("k string, ts timestamp, v int").json(str(folder / name)) for name in 'ab']
        writer = query(*frames).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(lambda rows, _: out.extend(map(str, rows.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(out)


print("inner join:", one := stream(query))
KIND = "left_semi"
print("left semi join:", two := stream(query))
sys.exit(one != two)
