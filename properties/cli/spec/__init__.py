"""The commands of `streamproof spec`."""
