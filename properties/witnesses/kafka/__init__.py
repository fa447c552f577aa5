"""The witness on the real Kafka Streams, in its test driver."""
