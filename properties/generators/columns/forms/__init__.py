"""The forms of a job's input rows: event times, payloads, and records of Kafka."""
