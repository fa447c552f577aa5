"""Exclude the template, which has its own pytest settings: tests/exhaustive/test_template.py runs the template."""

collect_ignore = ["template"]
