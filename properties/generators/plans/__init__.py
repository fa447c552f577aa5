"""Plans drawn as histories are: trees of Spark's streaming operators, the rows they are run over, and their text."""
