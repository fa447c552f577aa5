"""Plans, drawn like histories: trees of Spark's streaming operators, their rows, and their text."""
