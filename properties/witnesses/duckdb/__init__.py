"""The witness on DuckDB, which runs one SQL statement over many histories at once."""
