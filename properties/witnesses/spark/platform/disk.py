"""Recognize a full disk in a failure's text, and return the folder and the remedy."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .cluster import SHARED_VARIABLE

_ROOM_BYTES = 16 << 20
"""The smallest free space of a folder that isn't full: a query's batches, state and checkpoint need some MB."""


def no_space(text: str, shared: Path | None = None) -> str | None:
    """Return the full folder and the remedy, if a failure's text is about a full disk or a limit; otherwise None.

    Args:
        text: The message of Java or Python.
        shared: The folder that queries write to, if it isn't the temporary directory.
    """
    if "File too large" in text:
        return "a file reached this process's size limit (`ulimit -f`): `ulimit -f unlimited`"
    if "No space left on device" not in text and "Disk quota exceeded" not in text:
        return None
    folders = _written_to(shared)
    full = {name: folder for name, folder in folders.items() if shutil.disk_usage(folder).free < _ROOM_BYTES}
    named = full or folders
    where = " and ".join(map(str, sorted(set(named.values()))))
    return f"no space left in {where}: free some space, or name another folder with {' and '.join(named)}"


def _written_to(shared: Path | None) -> Mapping[str, Path]:
    """Return the folders that a query writes to, by the option or variable that names them."""
    folders = {"TMPDIR": Path(tempfile.gettempdir())}
    if shared is not None:
        folders[f"--shared or {SHARED_VARIABLE}"] = shared
    if scratch := os.environ.get("SPARK_LOCAL_DIRS"):
        folders["SPARK_LOCAL_DIRS"] = Path(scratch.split(",")[0])
    return {name: folder for name, folder in folders.items() if folder.is_dir()}
