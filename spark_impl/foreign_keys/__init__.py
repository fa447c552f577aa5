"""Shared modules of the joins by foreign key."""
