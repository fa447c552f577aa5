"""The check of a user's own job: any streaming query, against any oracle, on drawn histories of its own columns."""
