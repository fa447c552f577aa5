"""The modules, packages and files that a script finds beside itself, as if it ran in its own process."""

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
"""How many folders above a script's are looked into for a package that isn't installed."""
_WRITING = frozenset("wax+")
_imported: list[ModuleType] = []
"""The user's modules that the last run of a script has imported."""
_own: dict[str, list[ModuleType]] = {}
"""Of each script the modules beside it that were there before its first run."""


def folders_of(file: str) -> list[Path]:
    """Return the folder of a script, and those above it that it may import from, or read files from."""
    folder = Path(file).resolve().parent
    own, above = folder, [*folder.parents][:HEIGHT]
    while (own / "__init__.py").is_file() and own != own.parent:
        own = own.parent
    above = [each for each in dict.fromkeys([own, *above]) if each not in (folder, Path(each.anchor))]
    return [folder, *above]


def package_of(path: Path, text: str) -> str | None:
    """Return the name of the package that a script's relative imports are of; None: it has no such imports.

    It is as in `python -m shop.jobs.visits` where the folders are packages, or as the longest import needs.
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
    """Finds what is nowhere else: modules in the folders above a script, and stand-ins of well-known packages.

    Args:
        folders: The folders.
        skip: Is told what is called in vain of a stand-in that writes; None: a call is refused.
    """

    def __init__(self, folders: Sequence[Path], skip: Callable[[str], None] | None) -> None:
        self.folders, self.skip = folders, skip

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how a module is loaded; None: by nothing here."""
        if "." not in fullname:
            for folder in self.folders:
                found = PathFinder.find_spec(fullname, [str(folder)])
                if found is not None and _has_code(found):
                    if str(folder) not in sys.path:
                        sys.path.insert(1, str(folder))  # before the standard library, from where workers import, too
                    return found
        return stand_in(fullname, self.skip)


def _has_code(spec: ModuleSpec) -> bool:
    """Whether a folder without `__init__.py` has modules: else it is one of data, and no package."""
    if spec.origin is not None:
        return True
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    return any(next(folder.glob(pattern), None) for folder in folders for pattern in ("*.py", "*/*.py"))


@contextlib.contextmanager
def modules(file: str, skip: Callable[[str], None] | None) -> Iterator[None]:
    """Let code within it import the user's modules anew, as a process of its own does; further as `Finder`.

    It is those beside the script, and those that scripts have imported. A test's own are there again afterwards.
    """
    folders = folders_of(file)
    packages = [folders[0], *(folder for folder in folders[1:] if (folder / "__init__.py").is_file())]
    beside = tuple(f"{folder}{os.sep}" for folder in packages)
    there = [*sys.modules.items()]
    hidden = users_modules(
        name for name, one in there if one in _imported or (getattr(one, "__file__", None) or "").startswith(beside)
    )
    own = _own.setdefault(file, [one for one in hidden.values() if one not in _imported])
    for name in hidden:
        del sys.modules[name]
    before = {*sys.modules}
    try:
        with finding(file, skip):
            yield
    finally:
        _imported[:] = users_modules({*sys.modules} - before).values()
        sys.modules.update({name: one for name, one in hidden.items() if one in own})


@contextlib.contextmanager
def finding(file: str, skip: Callable[[str], None] | None) -> Iterator[None]:
    """Let code within it find what `Finder` finds for a script."""
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
    """Let this thread's code within it read files by paths relative to a script.

    Args:
        file: The script's file.
        wrote: Is told the path of each file that is opened for writing.
        instead_of: Returns the path of the file that is opened in place of another; None: it is that file.
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
        return own_open(os.devnull, "w", encoding="utf-8")  # its folder may be there in production alone

    with (
        mock.patch.object(logging.FileHandler, "_open", no_log),
        mock.patch.object(builtins, "open", opened),
        mock.patch.object(io, "open", opened),
        mock.patch.object(os, "stat", stat),
    ):
        yield


def of_container(path: Any, folders: Sequence[Path], stat: Callable[[Any], Any] = os.stat) -> Any:
    """Return an absolute path as it is, or the file in one of the folders that a container has at that path."""
    if not os.path.isabs(path):
        return path
    parts = Path(path).parts
    for candidate in (path, *(folder.joinpath(*parts[n:]) for folder in folders for n in range(1, len(parts)))):
        with contextlib.suppress(OSError, ValueError):
            stat(candidate)
            return candidate
    return path


def beside(path: Any, folders: Sequence[Path], stat: Callable[[Any], Any] = os.stat) -> Any:
    """Return a relative path as it is, or in the first of the folders that has it, if the working directory hasn't."""
    if os.path.isabs(path):
        return path
    for candidate in (path, *(folder / path for folder in folders)):
        with contextlib.suppress(OSError, ValueError):
            stat(candidate)
            return candidate
    return path
