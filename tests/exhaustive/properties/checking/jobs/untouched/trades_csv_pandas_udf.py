"""The worth of trades, that come as lines of CSV; a vectorized function converts them."""

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_csv, pandas_udf

RATES = {"EUR": 1.0, "USD": 0.5, "GBP": 1.25}


@pandas_udf("double")
def in_euros(price: pd.Series, quantity: pd.Series, currency: pd.Series) -> pd.Series:
    return price * quantity * currency.map(RATES).fillna(0.0)


def main():
    spark = SparkSession.builder.appName("trades").getOrCreate()
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "localhost:9092")
        .option("subscribe", "trades")
        .load()
        .select(col("value").cast("string").alias("line"))
    )
    columns = "symbol STRING, traded_at TIMESTAMP, price DOUBLE, quantity INT, currency STRING"
    trades = lines.select(from_csv("line", columns, {"sep": ","}).alias("trade")).select("trade.*")
    known = trades.where("price IS NOT NULL AND quantity IS NOT NULL")
    worth = known.withColumn("worth", in_euros("price", "quantity", "currency"))
    query = (
        worth.select("symbol", "traded_at", "worth")
        .writeStream.format("parquet")
        .option("path", "hdfs:///trades/worth")
        .option("checkpointLocation", "hdfs:///trades/checkpoint")
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()


main()
