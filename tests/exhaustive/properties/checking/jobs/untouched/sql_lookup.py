"""Orders with the name of their customer, in SQL over a table of a catalog."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.enableHiveSupport().appName("lookup").getOrCreate()
spark.sql("USE shop")
if not spark.catalog.tableExists("shop.customers"):
    raise SystemExit("there are no customers")
orders = (
    spark.readStream.schema("id STRING, customer STRING, at TIMESTAMP")
    .option("header", "true")
    .csv("/landing/orders/year=*/month=*/*.csv")
)
orders.createOrReplaceTempView("orders")
named = spark.sql("""
    SELECT o.id, o.at, coalesce(c.name, 'unknown') AS name
    FROM orders AS o LEFT JOIN shop.customers AS c ON o.customer = c.customer
    WHERE o.id IS NOT NULL
""")
named.writeStream.format("parquet").option("path", "/lake/named").option(
    "checkpointLocation", "/cp/named"
).start().awaitTermination()
