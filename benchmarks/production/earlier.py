"""An earlier commit of streamproof, laid out as it is installed, so that a process of its own can import it."""

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
"""One whose operators keep the state of a group of keys as one value, of which each batch reads and writes all."""
PACKAGE = "streamproof"
FOLDERS = ("reference", "spark_impl", "properties", "specs")


def lay_out(commit: str, folder: Path) -> Mapping[str, str]:
    """Put a commit's package into a folder, and return the environment in which Python imports it from there.

    Such a process is to run in that folder, for Python looks where it was started first; it finds `benchmarks` too.

    Args:
        commit: The commit.
        folder: The folder, in which `streamproof` is made.

    Raises:
        MissingTool: There is no Git here, or no such commit in this clone.
    """
    for name, below in {PACKAGE: PACKAGE, **{name: f"{PACKAGE}/{name}" for name in FOLDERS}}.items():
        words = ["git", "archive", "--format=tar", f"--prefix={below}/", f"{commit}:{name}"]
        try:
            packed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingTool(
                f"commit {commit} can't be read, which this benchmark measures too: `git fetch --unshallow` in {ROOT}"
            ) from error
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
