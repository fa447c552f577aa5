"""The files of Declarative Pipelines that are no Python."""

from __future__ import annotations

from pathlib import Path

SPECIFICATIONS = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""The names of the file that describes a project."""
SUFFIXES = (".yml", ".yaml", ".sql")
"""The endings of the files that declare a pipeline and are no Python."""


def project_of(folder: Path) -> Path | None:
    """Return the file that describes the project of a folder; None: it isn't the folder of a project."""
    return next((folder / name for name in SPECIFICATIONS if (folder / name).is_file()), None)
