"""What a Spark session runs on: the JVM, the workers of a cluster, a Connect server, the disk."""
