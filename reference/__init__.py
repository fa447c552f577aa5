"""What each operator means, in plain Python: the oracle that everything else is checked against."""
