"""Removes from a checkpoint the parts of a micro-batch that a dead process hadn't written."""

from __future__ import annotations

import re
from pathlib import Path


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last micro-batch with a commit in a checkpoint; -1: no commit."""
    return max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def undo_commit(checkpoint: Path) -> int:
    """Remove the last micro-batch's commit, and return the micro-batch's number; -1: no commit."""
    if (last := last_commit(checkpoint)) >= 0:
        remove(checkpoint / "commits" / str(last))
    return last


def undo_state(checkpoint: Path, number: int) -> None:
    """Remove a micro-batch's state from every other partition, as if their tasks hadn't finished."""
    for folder in (checkpoint / "state").glob("*/*"):
        if folder.name.isdigit() and int(folder.name) % 2:
            remove(*(path for path in folder.rglob(f"{number + 1}*") if re.match(rf"{number + 1}[._]", path.name)))


def remove(*files: Path) -> None:
    """Remove files and their Hadoop checksums."""
    for path in files:
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
