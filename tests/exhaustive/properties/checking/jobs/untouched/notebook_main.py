# Databricks notebook source
# MAGIC %pip install mlflow

# COMMAND ----------

# MAGIC %run ./notebook_functions $threshold="100"

# COMMAND ----------


trades = read_topic("trades", "symbol STRING, at TIMESTAMP, price DOUBLE, volume BIGINT")
display(trades)

# COMMAND ----------

big = trades.filter(trades.volume > threshold())
query = (
    big.writeStream.format("delta")
    .queryName("big")
    .option("checkpointLocation", checkpoint("big"))
    .table("market.big_trades")
)

# COMMAND ----------

# MAGIC %sql
# MAGIC SELECT symbol, count(*) FROM market.big_trades GROUP BY symbol
