"""The files that commands write: without `--force`, a command replaces only files that streamproof created."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...reference.core.errors import BadInput

_LOOKED_AT = 1 << 12
"""The number of characters to read to recognize a file that streamproof created."""


class OutputKind(NamedTuple):
    """A kind of file that commands write.

    Attributes:
        name: The kind's name in messages.
        ending: The extension of the file's name.
        is_ours: Whether streamproof created the file at a path, judging by its content.
    """

    name: str
    ending: str
    is_ours: Callable[[Path], bool]


def require_replaceable(path: Path, kind: OutputKind, force: bool) -> None:
    """Refuse an output file that isn't writable, or that streamproof didn't create, before a run.

    Args:
        path: The file.
        kind: The kind of file.
        force: Whether other extensions are accepted, and any file is replaced.

    Raises:
        BadInput: The file isn't streamproof's, its name has another extension, or its folder isn't writable.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # _require_writable reports a missing folder
    except OSError as error:
        raise BadInput(f"{path}: can't be written ({error.strerror}): name another path") from None
    if path.is_dir():
        raise BadInput(f"{path}: can't be written (it is a folder): name a file that ends in {kind.ending}")
    if path.exists() and not path.is_file():
        return  # writing to a pipe or a device replaces nothing
    if not force:
        if path.suffix.lower() != kind.ending:
            raise BadInput(f"{path}: the name of {kind.name} must end in {kind.ending}: rename it, or add --force")
        if path.exists() and not _is_ours(path, kind):
            raise BadInput(
                f"{path}: it exists already, and isn't {kind.name} of streamproof: name another file, or add --force "
                "to replace it"
            )
    _require_writable(path)


def _is_ours(path: Path, kind: OutputKind) -> bool:
    try:
        return path.stat().st_size == 0 or kind.is_ours(path)
    except (OSError, ValueError):  # the file is unreadable, or isn't UTF-8 or JSON
        return False


def _require_writable(path: Path) -> None:
    folder = path.absolute().parent
    while not os.path.exists(folder) and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise BadInput(f"{path}: can't be written ({folder} isn't a folder): name another path")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{path}: can't be written ({folder} is read-only for you): name another path")


def _is_report(path: Path) -> bool:
    content = json.loads(path.read_text(encoding="utf-8"))
    named = {"model", "module", "configuration", "verdict"}
    return isinstance(content, list) and all(isinstance(one, dict) and named <= one.keys() for one in content)


def _has_header(path: Path, *names: str) -> bool:
    """Return whether a file begins with a one-line JSON object with the given fields."""
    header = json.loads(_start(path).partition("\n")[0])
    return isinstance(header, dict) and {*names} <= header.keys()


def _start(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_LOOKED_AT)


CHART = OutputKind("a chart", ".svg", lambda path: 'aria-labelledby="chart-title chart-steps"' in _start(path))
REPORT = OutputKind("a report", ".json", _is_report)
BEHAVIOURS = OutputKind(
    "a file of behaviours", ".jsonl", lambda path: _start(path).startswith('[{"step": 1, "action": ')
)
HISTORY = OutputKind("a history", ".jsonl", lambda path: _has_header(path, "operator", "options"))
TRACE = OutputKind("a trace", ".jsonl", lambda path: _has_header(path, "trace"))
