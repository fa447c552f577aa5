"""The witnesses: whoever says what comes out of a history."""
