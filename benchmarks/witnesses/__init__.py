"""What it costs to run histories on each witness: time, memory, queries."""
