"""A streaming query that ran in production: its checkpoint, and the rows that each batch read and wrote."""
