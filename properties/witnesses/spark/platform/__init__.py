"""The platform of a Spark session: the JVM, the workers of a cluster, a Connect server, the disk."""
