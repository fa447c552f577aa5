"""The formats of a job's input rows: formats of event times, payloads, and records of a broker."""
