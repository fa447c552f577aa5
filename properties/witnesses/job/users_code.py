"""Distinguishes a user's code from the code of Python, of libraries and of streamproof."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_OURS = Path(__file__).resolve().parents[3]
_LIBRARIES = (
    *(Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib", "platlib")),
    *(_OURS / name for name in ("properties", "reference", "spark_impl", "streamproof")),
)
"""The folders of code that isn't the user's."""
OF_CLASSES = ("__module__", "__qualname__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__")
"""Members that Python adds to a class, which aren't the user's values."""


def is_users_class(kind: type) -> bool:
    """Return whether a class is the user's."""
    return kind.__module__ == "__main__" or is_users_module(sys.modules.get(kind.__module__))


def is_users_module(module: Any) -> bool:
    """Return whether a value is a module of the user's."""
    is_module = issubclass(type(module), ModuleType)  # not isinstance, because reading a user's object may raise
    file = getattr(module, "__file__", None) if is_module else None
    return bool(file) and is_users_file(str(file))


def users_modules(names: Iterable[str]) -> dict[str, ModuleType]:
    """Return the user's modules among imported modules, except the running program and pytest's `conftest`."""
    others = {*names} - {"__main__", "conftest"}
    return {name: one for name, one in [*sys.modules.items()] if name in others and is_users_module(one)}


def is_users_file(file: str) -> bool:
    """Return whether a file contains a user's code."""
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder) for folder in _LIBRARIES)


def names_of(code: CodeType) -> Iterator[str]:
    """Return the names of globals, attributes and modules that code and the functions within it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)
