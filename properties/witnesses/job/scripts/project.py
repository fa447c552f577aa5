"""Finds the files of a Declarative Pipelines project that aren't Python, such as its specification file."""

from __future__ import annotations

from pathlib import Path

SPECIFICATIONS = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""The names of a project's specification file."""
SUFFIXES = (".yml", ".yaml", ".sql")
"""The endings of pipeline files that aren't Python."""


def project_of(folder: Path) -> Path | None:
    """Return the specification file of a folder's project (None: the folder contains no project)."""
    return next((folder / name for name in SPECIFICATIONS if (folder / name).is_file()), None)
