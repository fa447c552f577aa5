"""The forms in which a job is given its rows: event times, payloads, Kafka's records."""
