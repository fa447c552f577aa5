"""Where a project of Declarative Pipelines is described."""

from __future__ import annotations

from pathlib import Path

SPECIFICATIONS = ("spark-pipeline.yml", "spark-pipeline.yaml")
"""The names of the file that describes a project."""


def project_of(folder: Path) -> Path | None:
    """Return the file that describes the project of a folder; None: it isn't the folder of a project."""
    return next((folder / name for name in SPECIFICATIONS if (folder / name).is_file()), None)
