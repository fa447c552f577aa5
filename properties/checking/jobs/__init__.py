"""The check of a user's own job: compares any streaming query with any oracle, on random histories of the query's
inputs.
"""
