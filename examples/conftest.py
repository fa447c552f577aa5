"""The template is a repository with settings of pytest of its own: tests/exhaustive/test_template.py runs it."""

collect_ignore = ["template"]
