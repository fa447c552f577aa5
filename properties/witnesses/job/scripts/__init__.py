"""Run scripts unchanged: the check returns drawn rows for their reads, and collects their writes."""
