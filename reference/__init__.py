"""The meaning of each operator, in plain Python: the oracle that everything else is checked against."""
