"""Rows with null keys are partners in a full join of streams; in a batch query they have none."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [(None, 10, 1)], "b": [(None, 10, 2)]}, {"a": [("z", 50, 1)], "b": [("z", 50, 1)]}]


def query(a, b):
    left = a.withWatermark("ts", "0 seconds")
    right = b.withWatermark("ts", "0 seconds").selectExpr("k as k2", "ts as ts2", "v as w")
    within = F.expr("k = k2 and ts2 between ts - interval 5 seconds and ts + interval 5 seconds")
    return left.join(right, within, "full").where("v is not null or w is not null").select("k", "v", "k2", "w")


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


frames = [spark.createDataFrame([(None, "2026-01-01 00:00:10", v)], "k string, t string, v int") for v in (1, 2)]
frames = [frame.selectExpr("k", "cast(t as timestamp) as ts", "v") for frame in frames]
print("as a batch:", one := sorted(map(str, query(*frames).collect())))
print("as a stream:", two := [row for row in stream(query) if "'z'" not in row])
sys.exit(one != two)
