"""A streaming query that ran in production: its checkpoint, the rows that each batch read, and those that it wrote."""
