"""subtract of a table emits a row again in each batch that has it (SPARK-59290)."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 10, 1)]}, {"a": [("x", 20, 1)]}]


def query(a):
    return a.select("k").subtract(spark.sql("select 'y' as k"))


def stream(query):
    folder, out = pathlib.Path(tempfile.mkdtemp()), []
    for number, batch in enumerate(BATCHES):
        for name in 'a':
            (folder / name).mkdir(exist_ok=True)
            rows = [json.dumps({"k": k, "ts": f"2026-01-01 00:00:{s}", "v": v}) for k, s, v in batch.get(name, [])]
            if name in batch:
                (folder / name / f"{number}.json").write_text("\n".join(rows))
        frames = [spark.readStream.schema("k string, ts timestamp, v int").json(str(folder / name)) for name in 'a']
        writer = query(*frames).writeStream.option("checkpointLocation", str(folder / "checkpoint")).outputMode("update")
        writer = writer.foreachBatch(lambda rows, _: out.extend(map(str, rows.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(out)


print("different rows:", one := ["Row(k='x')"])
print("as Spark runs it:", two := stream(query))
sys.exit(one != two)
