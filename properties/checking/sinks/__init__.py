"""Sinks judged: what each sink promises, and what was seen under every fault."""
