# Databricks notebook source
"""Orders with the name and region of their customer, from one table to another table."""

# COMMAND ----------

customers = spark.read.table("shop.customers").select("customer_id", "name", "region")
orders = spark.readStream.table("shop.orders")

# COMMAND ----------

# A left join, because guests have no customer, and new customers are added to the table tomorrow.
enriched = orders.join(customers, on="customer_id", how="left").select(
    "order_id", "ordered_at", "customer_id", "amount", "express", "name", "region"
)

# COMMAND ----------

query = (
    enriched.writeStream.outputMode("append")
    .option("checkpointLocation", "/Volumes/shop/checkpoints/order_regions")
    .trigger(availableNow=True)
    .toTable("shop.order_regions")
)
