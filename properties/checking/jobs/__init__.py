"""The check of a user's own job: any streaming query, against any oracle, over drawn histories of its own columns."""
