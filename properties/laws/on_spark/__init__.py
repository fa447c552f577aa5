"""The laws that judge an operator's output on Spark."""
