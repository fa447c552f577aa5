"""Find the modules, packages and files next to a script, as in a process of its own."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from ..users_code import users_modules
from .absent import forget_stand_ins, stand_in

HEIGHT = 4
"""The number of folders above a script's folder that are searched for a package that isn't installed."""
_WRITING = frozenset("wax+")
_imported: list[ModuleType] = []
"""The user's modules that the last run of a script imported."""
_own: dict[str, list[ModuleType]] = {}
"""For each script, the modules of its folder that were imported before its first run."""


def folders_of(file: str) -> list[Path]:
    """Return the folder of a script, and the folders above it that imports and reads may use."""
    folder = Path(file).resolve().parent
    own, above = folder, [*folder.parents][:HEIGHT]
    while (own / "__init__.py").is_file() and own != own.parent:
        own = own.parent
    above = [each for each in dict.fromkeys([own, *above]) if each not in (folder, Path(each.anchor))]
    return [folder, *above]


def package_of(path: Path, text: str) -> str | None:
    """Return the package of a script's relative imports (None: the script has no relative imports).

    If the folders are packages, the name is as in `python -m shop.jobs.visits`; in other folders, the longest relative
    import determines the name.
    """
    try:
        levels = [node.level for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    except SyntaxError:
        return None
    if not any(levels):
        return None
    folders = [path.parent]
    while (folders[-1] / "__init__.py").is_file() or len(folders) < max(levels):
        folders.append(folders[-1].parent)
    if (folders[-1] / "__init__.py").is_file() or len(folders) > max(levels):
        folders.pop()
    return ".".join(folder.name for folder in reversed(folders))


class Finder(MetaPathFinder):
    """Finds modules in the folders above a script, and stand-ins for well-known packages, if no other finder finds the
    module.

    Args:
        folders: The folders.
        skip: Called with the name of each ignored call of a stand-in that writes (None: all calls are refused).
    """

    def __init__(self, folders: Sequence[Path], skip: Callable[[str], None] | None) -> None:
        self.folders, self.skip = folders, skip

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module (None: this finder doesn't load the module)."""
        if "." not in fullname:
            for folder in self.folders:
                found = PathFinder.find_spec(fullname, [str(folder)])
                if found is not None and _has_code(found):
                    # at the beginning, because the workers also import from this folder
                    sys.path.insert(1, str(folder))
                    return found
        return stand_in(fullname, self.skip)


def _has_code(spec: ModuleSpec) -> bool:
    """Return whether a folder without `__init__.py` contains modules; a folder of data is no package."""
    if spec.origin is not None:
        return True
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    return any(next(folder.glob(pattern), None) for folder in folders for pattern in ("*.py", "*/*.py"))


@contextlib.contextmanager
def modules(file: str, skip: Callable[[str], None] | None) -> Iterator[None]:
    """Within the block, import the user's modules again, as a new process does, and missing modules as `Finder` does.

    The user's modules are the modules in the script's folder, and the modules that earlier scripts imported. A test's
    own modules are restored afterwards.
    """
    folders = folders_of(file)
    packages = [folders[0], *(folder for folder in folders[1:] if (folder / "__init__.py").is_file())]
    beside = tuple(f"{folder}{os.sep}" for folder in packages)
    there = [*sys.modules.items()]
    hidden = users_modules(
        name for name, one in there if one in _imported or (getattr(one, "__file__", None) or "").startswith(beside)
    )
    own = _own.setdefault(file, [one for one in hidden.values() if one not in _imported])
    for name, one in hidden.items():
        del sys.modules[name]
        # A folder without `__init__.py` isn't imported anew, so the folder's package would still have the old module as
        # an attribute.
        package, _, attribute = name.rpartition(".")
        if getattr(sys.modules.get(package), attribute, None) is one:
            delattr(sys.modules[package], attribute)
    before = {*sys.modules}
    try:
        with finding(file, skip):
            yield
    finally:
        _imported[:] = users_modules({*sys.modules} - before).values()
        for name, one in hidden.items():
            if one in own:
                sys.modules[name] = one
                package, _, attribute = name.rpartition(".")
                if package in sys.modules:
                    setattr(sys.modules[package], attribute, one)


@contextlib.contextmanager
def finding(file: str, skip: Callable[[str], None] | None) -> Iterator[None]:
    """Let code within the block import the modules that `Finder` finds for a script."""
    finder = Finder(folders_of(file), skip)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        forget_stand_ins()


@contextlib.contextmanager
def files(
    file: str, wrote: Callable[[str], None], instead_of: Callable[[str], str | None] = lambda path: None
) -> Iterator[None]:
    """Let code of this thread within the block read files by paths relative to a script.

    Args:
        file: The script's file.
        wrote: Called with the path of each file opened for writing.
        instead_of: Returns the path to open in place of a path (None: the path itself).
    """
    thread, folders, own_open, own_stat = threading.get_ident(), folders_of(file), io.open, os.stat

    def opened(path: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if threading.get_ident() == thread and isinstance(path, (str, os.PathLike)):
            path = instead_of(str(path)) or path
            if _WRITING & {*mode}:
                wrote(os.path.abspath(path))
            else:
                path = beside(of_container(path, folders, own_stat), folders, own_stat)
        return own_open(path, mode, *arguments, **named)

    def stat(path: Any, *arguments: Any, **named: Any) -> Any:
        if threading.get_ident() == thread and isinstance(path, (str, os.PathLike)) and not named.get("dir_fd"):
            path = beside(path, folders, own_stat)
        return own_stat(path, *arguments, **named)

    def no_log(handler: logging.FileHandler) -> Any:
        # discard logs, because their folder may exist only in production
        return own_open(os.devnull, "w", encoding="utf-8")

    with (
        mock.patch.object(logging.FileHandler, "_open", no_log),
        mock.patch.object(builtins, "open", opened),
        mock.patch.object(io, "open", opened),
        mock.patch.object(os, "stat", stat),
    ):
        yield


def of_container(path: Any, folders: Sequence[Path], stat: Callable[[Any], Any] = os.stat) -> Any:
    """Return an absolute path; if this machine lacks the path, such as a container's, return the matching file below a
    folder.
    """
    if not os.path.isabs(path):
        return path
    parts = Path(path).parts
    for candidate in (path, *(folder.joinpath(*parts[n:]) for folder in folders for n in range(1, len(parts)))):
        with contextlib.suppress(OSError, ValueError):
            stat(candidate)
            return candidate
    return path


def beside(path: Any, folders: Sequence[Path], stat: Callable[[Any], Any] = os.stat) -> Any:
    """Return a relative path; if the working directory lacks it, return the path below the first folder that contains
    it.
    """
    if os.path.isabs(path):
        return path
    for candidate in (path, *(folder / path for folder in folders)):
        with contextlib.suppress(OSError, ValueError):
            stat(candidate)
            return candidate
    return path
