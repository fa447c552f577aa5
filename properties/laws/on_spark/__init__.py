"""The laws that judge what an operator emits on Spark."""
