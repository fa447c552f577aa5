"""The query of a job: how it is run over micro-batches, what moves its watermark, and what it must return."""
