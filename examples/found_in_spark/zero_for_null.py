"""A null in the state of a join is read as 0, once a union's inputs have no new data."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [], "b": [("x", 15, None)], "c": []}, {"c": [("x", 15, 7)]}]


def query(a, b, c):
    both = a.withWatermark("ts", "10 seconds").selectExpr("k", "ts", "1 as v").union(b.withWatermark("ts", "10 seconds"))
    other = c.withWatermark("ts", "10 seconds").selectExpr("k as k2", "ts as ts2")
    return both.join(other, F.expr("k = k2 and ts2 <= ts + interval 5 seconds")).select("k", "v")


def stream(query):
    folder, out = pathlib.Path(tempfile.mkdtemp()), []
    for number, batch in enumerate(BATCHES):
        for name in 'abc':
            (folder / name).mkdir(exist_ok=True)
            rows = [json.dumps({"k": k, "ts": f"2026-01-01 00:00:{s}", "v": v}) for k, s, v in batch.get(name, [])]
            if name in batch:
                (folder / name / f"{number}.json").write_text("\n".join(rows))
        frames = [spark.readStream.schema("k string, ts timestamp, v int").json(str(folder / name)) for name in 'abc']
        writer = query(*frames).writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(lambda rows, _: out.extend(map(str, rows.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(out)


print("as it is written:", one := ["Row(k='x', v=None)"])
print("as Spark runs it:", two := stream(query))
sys.exit(one != two)
