"""Shared modules of the slowly changing dimensions, `scd1` and `scd2`."""
