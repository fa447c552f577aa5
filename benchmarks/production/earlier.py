"""Exports an earlier commit of streamproof as an importable package, for a separate process."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from streamproof.reference.core.errors import MissingTool

from ..machine import ROOT

COMMIT = "ce10c6f"
"""A commit whose operators store a group's state as one value, which each batch reads and writes whole."""
PACKAGE = "streamproof"
FOLDERS = ("reference", "spark_impl", "properties", "specs")


def lay_out(commit: str, folder: Path) -> Mapping[str, str]:
    """Export a commit's package to a folder, and return the environment in which Python imports it from there.

    The process must start in that folder, because Python first searches the folder in which it starts. The process
    imports `benchmarks` from this clone.

    Args:
        commit: The commit.
        folder: The folder in which `streamproof` is created.

    Raises:
        MissingTool: Git is missing, or this clone lacks the commit.
    """
    for name, below in {PACKAGE: PACKAGE, **{name: f"{PACKAGE}/{name}" for name in FOLDERS}}.items():
        words = ["git", "archive", "--format=tar", f"--prefix={below}/", f"{commit}:{name}"]
        try:
            packed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingTool(
                f"commit {commit} can't be read, but this benchmark also measures it: `git fetch --unshallow` in {ROOT}"
            ) from error
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
