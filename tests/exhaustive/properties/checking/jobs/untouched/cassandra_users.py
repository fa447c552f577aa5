"""New users from Kafka into Cassandra."""

import logging

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.types import StringType, StructField, StructType


def create_keyspace():
    session = Cluster(["cassandra"], auth_provider=PlainTextAuthProvider("c", "c")).connect()
    session.execute("CREATE KEYSPACE IF NOT EXISTS users WITH replication = {'class': 'SimpleStrategy'}")


def create_spark_connection():
    try:
        return (
            SparkSession.builder.appName("users")
            .config("spark.jars.packages", "com.datastax.spark:spark-cassandra-connector_2.12:3.4.1")
            .config("spark.cassandra.connection.host", "cassandra")
            .getOrCreate()
        )
    except Exception as e:
        logging.error(f"no session: {e}")


if __name__ == "__main__":
    spark_conn = create_spark_connection()
    df = (
        spark_conn.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "broker:29092")
        .option("subscribe", "users_created")
        .load()
    )
    schema = StructType([StructField("id", StringType(), False), StructField("name", StringType(), False)])
    users = (
        df.selectExpr("CAST(value AS STRING)").select(from_json(col("value"), schema).alias("data")).select("data.*")
    )
    query = (
        users.writeStream.format("org.apache.spark.sql.cassandra")
        .option("checkpointLocation", "/tmp/checkpoint")
        .option("keyspace", "users")
        .option("table", "created")
        .start()
    )
    query.awaitTermination()
