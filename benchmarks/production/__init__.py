"""The operators over many records, as in production."""
