"""Counts words that come over a socket.

Usage: socket_word_count.py <hostname> <port>, with `nc -lk 9999` in another terminal.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split

if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("Usage: socket_word_count.py <hostname> <port>", file=sys.stderr)
        sys.exit(-1)

    host = sys.argv[1]
    port = int(sys.argv[2])

    spark = SparkSession.builder.appName("SocketWordCount").getOrCreate()

    # One row a line of text, in the column 'value'.
    lines = spark.readStream.format("socket").option("host", host).option("port", port).load()

    words = lines.select(explode(split(lines.value, " ")).alias("word"))
    counts = words.groupBy("word").count()

    query = counts.writeStream.outputMode("complete").format("console").start()
    query.awaitTermination()
