"""A left semi join with a table above a union dies in PushDownLeftSemiAntiJoin; the batch query runs."""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
BATCHES = [{"a": [("x", 10, 1)], "b": []}]


def query(a, b):
    table = spark.sql("select * from values ('x', 1), ('y', 2) as t(tk, w)")
    below = a.join(table, F.expr("k = tk"), "left").where("v > 0").select("k", "ts", "v")
    return below.union(b).join(table.alias("s"), F.expr("k = s.tk"), "left_semi")


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


rows = spark.createDataFrame([], "k string, ts timestamp, v int")
print("as a batch:", query(rows, rows).collect())
try:
    print("as a stream:", stream(query))
except Exception as error:
    sys.exit(f"as a stream: {[line.strip() for line in str(error).splitlines() if 'Rule' in line][:1]}")
