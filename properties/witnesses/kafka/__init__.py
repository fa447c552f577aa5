"""The witness that is the real Kafka Streams, in its test driver."""
