"""Where a changelog goes: tables that every batch reaches exactly once."""
