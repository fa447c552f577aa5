"""What each operator means, in plain Python: the oracle that everything else is held to."""
